#!/usr/bin/env bash
# Measures our bench-agent side by side with public A2A servers, with a harness that is not part of this project.
#
#     scripts/bench.sh HARNESS                                  # every phase and server, 5 rounds: about an hour
#     scripts/bench.sh HARNESS --phases http --servers A,B,F --workloads task --rounds 1 --secs 2
#     A2A_BENCH=HARNESS scripts/bench.sh
#
# HARNESS is the folder of the harness (README.md, bench.py, servers.conf, ...). It is copied to $WORK (default:
# a2a-bench under $XDG_CACHE_HOME or ~/.cache), where its servers are built once and its results stay; HARNESS itself is
# never written to. What comes after HARNESS goes to its bench.py. Our server is line F, built in release mode as
# crates/server/examples/bench-agent.rs; more flags for it stand in AGENT. A server that does not build is named and left
# out. The tables are printed at the end, and stand in $WORK/results/NAME.md (--name NAME, default: the time).
#
# It wants Rust, wrk, taskset, Python 3 and Node, two cores with nothing else on them, and the ports 9001 to 9008.
# BUILD_ONLY=1 makes everything ready and checks that each server does its work, without measuring.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'bench: %s\n' "$*" >&2; exit 2; }
harness=${A2A_BENCH:-}
if [[ ${1:-} && ${1:-} != --* ]]; then
  harness=$1
  shift
fi
[[ $harness ]] || fail 'where is the harness? scripts/bench.sh HARNESS, or A2A_BENCH=HARNESS'
[[ -f $harness/bench.py && -f $harness/servers.conf ]] || fail "$harness holds no bench.py and servers.conf"
for tool in cargo wrk taskset python3; do
  command -v "$tool" >/dev/null || fail "$tool is missing"
done
(($(nproc) >= 2)) || fail 'one core for the server and one for its clients are needed'

work=${WORK:-${XDG_CACHE_HOME:-$HOME/.cache}/a2a-bench}
mkdir -p "$work"
work=$(cd "$work" && pwd)
# What is built there already stays.
(
  cd "$harness"
  tar --mode=u+w --exclude=./results --exclude=./rust/target --exclude=./py/.venv --exclude=./js/node_modules -c .
) | tar -C "$work" -x --no-same-owner
mkdir -p "$work/results"

step() { printf '\n== %s\n' "$*" >&2; }
step 'our bench-agent'
cargo build --release --locked --package server --example bench-agent
agent=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)/release/examples/bench-agent

step 'the other servers'
rust() (
  cd "$work/rust"
  unset CARGO_TARGET_DIR
  cargo build --quiet --release --package "$1" "${@:2}"
)
missing=()
made() { # made KEY COMMAND...: a server that cannot be made is left out.
  "${@:2}" >"$work/build-$1.log" 2>&1 || { missing+=("$1"); printf '%s does not build: %s\n' "$1" "$work/build-$1.log" >&2; }
}
h1_mi() { [[ -x $work/rust/target/release/h1-mi ]] || { rust h1 --features mimalloc && cp "$work"/rust/target/release/{h1,h1-mi}; }; }
py() {
  [[ -x $work/py/.venv/bin/python ]] || python3 -m venv "$work/py/.venv"
  "$work/py/.venv/bin/pip" -q install -r "$work/py/requirements.txt"
}
js() { [[ -d $work/js/node_modules ]] || (cd "$work/js" && npm ci --silent); }
rust load || fail 'the load generator of the harness does not build'
made A rust limit
made B rust lf
made C rust tom
made D py
made E js
made Y h1_mi
made Z rust h1

conf=$work/servers.conf
{
  for key in "${missing[@]}"; do printf '/^%s|/d\n' "$key"; done
  printf '/^#\\{0,1\\}F|/d\n'
} >"$work/without.sed"
sed -f "$work/without.sed" "$harness/servers.conf" >"$conf"
printf 'F|ours|9006|/a2a/jsonrpc|7|%s {port} %s\n' "$agent" "${AGENT:-}" >>"$conf"

if [[ ${BUILD_ONLY:-} == 1 ]]; then
  step 'each server does its work'
  set -- --phases http --workloads msg,task,get,stream --rounds 1 --secs 1 "$@" --name ready
  rm -f "$work/results/ready.jsonl"
fi
name=$(date +%Y%m%d-%H%M%S)
if [[ " $* " =~ ' --name '([^ ]+) ]]; then name=${BASH_REMATCH[1]}; else set -- --name "$name" "$@"; fi
case " $* " in *' --rounds '*) ;; *) set -- --rounds 5 "$@" ;; esac
busy=$(cut -d ' ' -f 1 /proc/loadavg)
python3 - "$busy" <<<'import sys; sys.exit(float(sys.argv[1]) > 0.5)' ||
  printf 'bench: the load of this machine is %s; numbers of a busy one say little\n' "$busy" >&2

step "results/$name"
python3 "$work/bench.py" "$@" >&2
{
  python3 "$work/report.py" "$name"
  printf '\n%s, %s cores, load before %s; %s; %s\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
    "$(nproc)" "$busy" "$(rustc --version)" "$(git log -1 --format='at %h' 2>/dev/null || true)"
} | tee "$work/results/$name.md"
