#!/usr/bin/env bash
# Runs a command whose temporary files are in memory, where there is room for them: COMMAND [ARGUMENT ...]
# The tests make 25,000, half a gigabyte in all, and a disk takes time for each of them, twice.
set -euo pipefail

room() { df --output=avail --block-size=1M /dev/shm 2> /dev/null | tail -n 1; }
memory() { awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo 2> /dev/null; }

if (($(room || echo 0) > 2048)) && (($(memory || echo 0) > 8192)); then
  TMPDIR=$(mktemp -d /dev/shm/anonspark-tests-XXXXXX)
  chmod 711 "$TMPDIR"  # Tests of denied files run commands as another user.
  export TMPDIR
  trap 'rm -rf "$TMPDIR"' EXIT
fi
"$@"
