#!/usr/bin/env bash
# Two test-runners that share a PostgreSQL, behind a proxy: shows that each serves the tasks of the other, then kills
# either of them in the middle of a stream, again and again, and says what became of the task and of those who followed.
#
#     scripts/replicas.sh          # 50 rounds, about eight minutes
#     scripts/replicas.sh 3
#     scripts/replicas.sh 0        # kills none; stays there to be called, until Ctrl-C
#
# PostgreSQL is Debian's (apt-get install postgresql): a server of its own in a temporary folder, gone at the end. The
# proxy is crates/testing/src/replicas.rs. Exits with 1 when something was wrong.
set -euo pipefail
cd "$(dirname "$0")/.."

compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null || {
  echo 'PostgreSQL is missing: apt-get install postgresql' >&2
  exit 2
}
exec cargo run --quiet --locked --package testing --example replicas -- "$@"
