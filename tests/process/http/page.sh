#!/usr/bin/env bash
# The page of leasehold-monitor in headless Chromium: tests/process/http/page.sh BIN_DIR [SCREENSHOTS]
#
# Starts a broker, a worker, an etcd and a monitor, and page.py, which drives the page. Screenshots go to the folder, if one is
# named. Exits with 77 and one line where Chromium or etcd is missing.
set -euo pipefail
. "$(dirname "$0")/script.sh" "$1"
for program in chromium curl etcd; do
  command -v $program >/dev/null || skip "$program is not installed; tools/setup --ci installs it"
done

"$bin/leasehold-broker" --socket "$work/broker.sock" --capacity 64MiB --swap-capacity 8MiB >"$work/broker.log" 2>&1 &
broker=$!
pids+=("$broker")
wait_for control status
"$bin/leasehold-worker" --broker "$work/broker.sock" --listen "$work/w1.sock" --name w1 --slow-motion-us 4000 \
  --metrics "$work/metrics.sock" --model "$root/tools/models/leasehold-stories-q8_0.gguf" >"$work/worker.log" 2>&1 &
pids=($! "${pids[@]}")
start_etcd
"$bin/leasehold-monitor" --broker "$work/broker.sock" --listen 127.0.0.1:0 --cell "$work/cell.toml" \
  --worker-metrics "$work/metrics.sock" >"$work/monitor.log" 2>&1 &
pids=($! "${pids[@]}")
wait_for grep "ready name=w1" "$work/worker.log"
wait_for grep "monitor ready" "$work/monitor.log"
address=$(sed -n "s/.* ready address=\([^ ]*:[0-9]*\).*/\1/p" "$work/monitor.log")
python3 "$(dirname "$0")/page.py" "$address" "$work" "$bin" "$broker" "${2:-}" 2>&1 | tee "$work/page.log"
