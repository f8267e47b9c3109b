#!/usr/bin/env bash
# Checks the metrics of a worker with promtool: tests/process/http/metrics_promtool.sh BIN_DIR
#
# Exits with 77 and one line where promtool is missing. vLLM's names have a colon, which promtool
# advises against, so only that is accepted about them.
set -euo pipefail
bin=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d)
pids=()
clean_up() {
  local code=$?
  [[ $code == 0 || $code == 77 ]] || tail -n 20 "$work"/*.log >&2
  for pid in "${pids[@]}"; do kill "$pid" && wait "$pid" || true; done 2>/dev/null
  rm -rf "$work"
  exit "$code"
}
trap clean_up EXIT
skip() { echo "skipped: $1"; exit 77; }
wait_for() { for _ in $(seq 600); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; return 1; }
control() { "$bin/brokerctl" --socket "$work/broker.sock" "$@"; }
command -v promtool >/dev/null || skip "promtool is not installed; tools/setup --ci installs it"
command -v curl >/dev/null || skip "curl is not installed; tools/setup --ci installs it"

"$bin/leasehold-broker" --socket "$work/broker.sock" --capacity 64MiB >"$work/broker.log" 2>&1 &
pids+=($!)
wait_for control status
"$bin/leasehold-worker" --broker "$work/broker.sock" --listen "$work/w1.sock" --name w1 \
  --model "$root/tools/models/leasehold-stories-q8_0.gguf" --metrics "$work/metrics.sock" \
  >"$work/worker.log" 2>&1 &
pids=($! "${pids[@]}")
wait_for grep "ready name=w1" "$work/worker.log"
control tenants admit ann --max-concurrent 8 --max-blocks 2000 >/dev/null
LEASEHOLD_BROKER="$work/broker.sock" "$bin/leasehold-tenant" --tenant ann --prompt "Once" --max-tokens 8 \
  >"$work/tenant.log" 2>&1
page() { curl --silent --fail --unix-socket "$work/metrics.sock" http://worker/metrics; }
has_counted() { page >"$work/all.txt" && grep -q '^leasehold_tenant_tokens_total{tenant="ann"}' "$work/all.txt"; }
wait_for has_counted

grep -v 'vllm:' "$work/all.txt" >"$work/own.txt"
promtool check metrics <"$work/own.txt"
# 3: it parses, and there is advice.
code=0
promtool check metrics <"$work/all.txt" >"$work/advice.txt" 2>&1 || code=$?
[[ $code == 3 ]] || { cat "$work/advice.txt"; exit 1; }
if grep -v "^vllm:.*metric names should not contain ':'$" "$work/advice.txt"; then exit 1; fi
