#!/usr/bin/env bash
# Hammers one agent process per store with mixed traffic at random, and says what was wrong.
#
#     scripts/hammer.sh                               # 60 s on the store in memory
#     scripts/hammer.sh 10 memory sqlite:/tmp/h.db    # 10 s on each
#
# SEED draws other visits (default: the time), CLIENTS is how many come at once (24), AGENT holds more flags for the
# agent, such as --keep-tasks 1000, which should be joined by HAMMER='--forgets --growth 20'. Exits with 1 when
# something was wrong.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
shift || true
stores=("$@")
((${#stores[@]})) || stores=(memory)
seed=${SEED:-$(date +%s)} clients=${CLIENTS:-24}

cargo build --quiet --release --locked --package testing --example hammer --example hammer-agent
programs=${CARGO_TARGET_DIR:-target}/release/examples
work=$(mktemp -d) agent=''
# shellcheck disable=SC2317 # called by the trap
clean() {
  [[ -z $agent ]] || kill -KILL "$agent" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT

status=0
wrong() { printf 'WRONG  %s\n' "$*"; status=1; }
for store in "${stores[@]}"; do
  printf '\n== %s, %s s, seed %s\n' "$store" "$seconds" "$seed"
  : >"$work/out" # not what the agent before has written
  # shellcheck disable=SC2086 # several flags
  "$programs/hammer-agent" --listen 127.0.0.1:0 --allow-local-webhooks --log error --store "$store" ${AGENT:-} \
    >"$work/out" 2>"$work/err" &
  agent=$!
  for ((i = 0; i < 100; i++)); do
    [[ ! -s $work/out ]] || break
    kill -0 "$agent" 2>/dev/null || { cat "$work/err" >&2; exit 2; }
    sleep 0.1
  done
  url=$(sed -n 's/.* is ready: \(.*\)\/\.well-known.*/\1/p' "$work/out")
  # shellcheck disable=SC2086 # several flags
  "$programs/hammer" "${url/localhost/127.0.0.1}" --seconds "$seconds" --seed "$seed" --clients "$clients" \
    --process "$agent" ${HAMMER:-} || status=1
  kill -TERM "$agent" 2>/dev/null || wrong 'the agent has gone'
  ended=0
  wait "$agent" || ended=$?
  agent=''
  ((ended == 0)) || wrong "the agent ended with $ended"
  [[ ! -s $work/err ]] || { wrong 'the agent complained:'; head -n 20 "$work/err"; }
done
exit "$status"
