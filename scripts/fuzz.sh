#!/usr/bin/env bash
# Runs each fuzz target for a time, one after the other. A finding ends it with another exit code than 0 and stays in
# fuzz/artifacts.
#
#     scripts/fuzz.sh                    # 600 s each
#     scripts/fuzz.sh 60 part timestamp  # 60 s of these two
#
# The engine is libFuzzer where there are cargo-fuzz (`cargo install cargo-fuzz`), a nightly toolchain and a C++
# compiler; it goes on from what it learned before, which is kept in fuzz/grown. Elsewhere it is the mutator of
# fuzz/tests/short.rs, optimised, which learns nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-600}
shift || true
targets=("$@")
((${#targets[@]})) || targets=(diff envelope part rules sse timestamp)

if ! cargo +nightly fuzz --version >/dev/null 2>&1 || ! command -v c++ >/dev/null; then
  echo "Without libFuzzer, which needs cargo-fuzz, a nightly toolchain and a C++ compiler."
  for target in "${targets[@]}"; do
    FUZZ_SECONDS=$seconds cargo test --release --locked --package fuzz --test short "$target" -- --nocapture
  done
  exit
fi

fuzz() { cargo +nightly fuzz run --features libfuzzer ${CARGO_TARGET_DIR:+--target-dir "$CARGO_TARGET_DIR"} "$@"; }
for target in "${targets[@]}"; do
  printf '\n== %s, %s s of libFuzzer\n' "$target" "$seconds"
  grown=fuzz/grown/$target corpus=fuzz/corpus/$target
  mkdir -p "$grown"
  fuzz "$target" "$grown" "$corpus" -- -max_total_time="$seconds" -max_len=4096 -timeout=10 -print_final_stats=1
done
