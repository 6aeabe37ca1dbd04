#!/usr/bin/env bash
# Kills a planner at random points of its job and lets it go on with its journal: one deploy, and the whole log.
#
#     scripts/killed-planner.sh       # 50 times
#     scripts/killed-planner.sh 500
set -euo pipefail
cd "$(dirname "$0")/.."
KILLS=${1:-50} cargo test --locked --package testing --test planner_journal -- --nocapture
