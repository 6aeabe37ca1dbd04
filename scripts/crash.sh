#!/usr/bin/env bash
# Kills an agent that keeps its tasks in SQLite, under load and at random points, with SIGKILL, and looks after each
# restart: every task that a client had been told of is there with every event that the client had seen, none is working,
# and webhooks get what they had not got.
#
#     scripts/crash.sh          # 100 times, a few minutes
#     scripts/crash.sh 5 --seed 7
#
# Exits with 1 when something was wrong.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet --release --locked --package testing --example crash --example hammer-agent
exec "${CARGO_TARGET_DIR:-target}/release/examples/crash" "$@"
