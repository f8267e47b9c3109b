#!/bin/bash
# Tests the hardening of the units in tools/systemd: `systemd-analyze security` rates each, with and
# without the drop-in for a card, at most 2.5. Skipped (77) where systemd-analyze is not installed.
set -euo pipefail

readonly most=2.5
command -v systemd-analyze >/dev/null || { echo "skipped: systemd-analyze is not installed"; exit 77; }
units=$(cd "$(dirname "$0")/../../../tools/systemd" && pwd)
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
cp "$units"/*.service "$scratch"

failed=0
for unit in "$scratch"/*.service "$units"/*.service; do
  rating=$(systemd-analyze security --no-pager --offline=true "$unit" 2>/dev/null |
    sed -n 's/.*Overall exposure level for .*: \([0-9.]*\) .*/\1/p')
  echo "$(basename "$unit") $([ "$(dirname "$unit")" = "$scratch" ] || echo "with its drop-in "): ${rating:-not rated}"
  awk -v rating="${rating:-10}" -v most=$most 'BEGIN { exit rating > most }' || failed=1
done
exit $failed
