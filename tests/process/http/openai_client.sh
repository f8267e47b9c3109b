#!/usr/bin/env bash
# Runs OpenAI's Python client against a worker: tests/process/http/openai_client.sh BIN_DIR
#
# Installs the client with pip below BIN_DIR, from the package index that pip is configured for. Exits
# with 77 and one line where that is not possible.
set -euo pipefail
. "$(dirname "$0")/script.sh" "$1"

python=$bin/openai-venv/bin/python
if ! "$python" -c 'import openai' 2>/dev/null; then
  python3 -m venv "$bin/openai-venv" >/dev/null 2>&1 || skip "python3 has no venv"
  "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 openai \
    >"$work/pip.txt" 2>&1 || skip "pip cannot install openai: $(tail -n 1 "$work/pip.txt")"
fi

"$bin/leasehold-broker" --socket "$work/broker.sock" --capacity 64MiB >"$work/broker.log" 2>&1 &
pids+=($!)
wait_for control status
"$bin/leasehold-worker" --broker "$work/broker.sock" --listen "$work/w1.sock" --name w1 \
  --model "$root/tools/models/leasehold-stories-q8_0.gguf" --slow-motion-us 30 \
  --http 127.0.0.1:0 >"$work/worker.log" 2>&1 &
pids=($! "${pids[@]}")
wait_for grep "ready name=w1" "$work/worker.log"
control tenants admit ann --max-concurrent 8 --max-blocks 2000 >/dev/null
key=$(control keys create --tenant ann | grep -o 'lh-[^ ]*' | head -n 1)
address=$(sed -n 's/.*HTTP ready address=\([^ ]*\).*/\1/p' "$work/worker.log")
"$python" "$(dirname "$0")/openai_client.py" "http://$address/v1" "$key"
# What was cancelled has given its lease back.
has_no_lease() { control leases >"$work/leases.txt" && ! grep ann "$work/leases.txt" | grep -q Live; }
wait_for has_no_lease
