#!/usr/bin/env bash
# Lets the planner ship through proxies that drop, lose, repeat, refuse, cut, delay and chop, 200 times against a deployer
# that knows a message that it has had, and 200 times against one that does not.
#
#     scripts/faulty-proxy.sh       # 200 seeds
#     scripts/faulty-proxy.sh 1000
set -euo pipefail
cd "$(dirname "$0")/.."
SEEDS=${1:-200} cargo test --locked --package testing --test faulty -- --nocapture
