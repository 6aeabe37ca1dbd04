#!/usr/bin/env bash
# Makes scenarios/payments-api.bundle, the project that the agents of the kit work on, from scenarios/payments-api.
#
#     scripts/payments-api.sh            # makes it anew: a few minutes, as the two commits get the ids of the story
#     scripts/payments-api.sh --check    # only says whether the bundle holds what the folders hold
#
# Branch main is at commit 9f3c2e1, of which one test fails; branch rounding is at a41d7c3, which mends it. A small
# program varies the last line of each commit's message until its id begins so. It wants git and Rust.
set -euo pipefail
cd "$(dirname "$0")/.."
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null LC_ALL=C
bundle=$PWD/scenarios/payments-api.bundle
sources=$PWD/scenarios/payments-api
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

git init --quiet --bare "$work/repository"
repository() { git --git-dir "$work/repository" "$@"; }

tree() { # tree FOLDER: keeps a folder, gives the id of its tree.
  GIT_INDEX_FILE=$work/index-${1##*/} git --git-dir "$work/repository" --work-tree "$1" add --all .
  GIT_INDEX_FILE=$work/index-${1##*/} repository write-tree
}

if [[ ${1:-} == --check ]]; then
  repository fetch --quiet "$bundle" '+refs/heads/*:refs/heads/*'
  for each in main:first:9f3c2e1 rounding:second:a41d7c3; do
    IFS=: read -r branch folder id <<<"$each"
    [[ $(repository rev-parse "$branch") == "$id"* ]] || { echo "branch $branch is not at $id" >&2; exit 1; }
    [[ $(repository rev-parse "$branch^{tree}") == "$(tree "$sources/$folder")" ]] ||
      { echo "branch $branch does not hold what $folder holds; scripts/payments-api.sh makes the bundle anew" >&2; exit 1; }
  done
  echo 'the bundle holds what the folders hold'
  exit
fi

target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release --locked --package testing --example commit-nonce
who='Payments Team <payments@example.com>'
commit() { # commit FOLDER TIME ID MESSAGE [PARENT]
  {
    printf 'tree %s\n' "$(tree "$1")"
    [[ -z ${5:-} ]] || printf 'parent %s\n' "$5"
    printf 'author %s %s +0000\ncommitter %s %s +0000\n\n%s\n' "$who" "$2" "$who" "$2" "$4"
  } | "$target/release/examples/commit-nonce" "$3" | repository hash-object -t commit -w --stdin
}
first=$(commit "$sources/first" 1791190800 9f3c2e1 'Refunds of a part')
echo "main is at $first"
second=$(commit "$sources/second" 1791277200 a41d7c3 'Refunds of a part keep their cents' "$first")
echo "rounding is at $second"
repository update-ref refs/heads/main "$first"
repository update-ref refs/heads/rounding "$second"
repository symbolic-ref HEAD refs/heads/main
repository bundle create --quiet "$bundle" HEAD main rounding
ls -l "$bundle"
