#!/usr/bin/env bash
# Kills a working deployer at random points of a roll-out and starts it again: the environment is at the old or at the
# new build, nothing is half unpacked, and the task has ended with the truth.
#
#     scripts/killed-deployer.sh       # 100 times
#     scripts/killed-deployer.sh 1000
set -euo pipefail
cd "$(dirname "$0")/.."
KILLS=${1:-100} cargo test --locked --package testing --test rollouts_killed -- --nocapture
