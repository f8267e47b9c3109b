#!/usr/bin/env bash
# Runs batches of OpenAI's Python client on a worker that loses its leases and is killed:
#   tests/process/http/openai_batches.sh BIN_DIR
#
# Exits with 77 and one line where pip cannot install the client.
set -euo pipefail
. "$(dirname "$0")/script.sh" "$1"

python_with openai
start_broker
batches=(--batch-dir "$work/batches" --batch-quota 4MiB)
start_worker w1 --slow-motion-us 100 "${batches[@]}"
key=$(key_of ann)
other=$(key_of bob)
client() { "$python" "$(dirname "$0")/openai_batches.py" "http://$address/v1" "$key" "$other" "$@"; }
batch=$(client begin)

# Revocations do not end a batch, and neither does the worker's death.
for _ in 1 2 3; do wait_for control revoke --tenant ann --wait; done
kill -9 "${pids[0]}"
! grep -rl "$key" "$work/batches" || die "the API key is on the worker's disk"
start_worker w1 "${batches[@]}"
"$bin/leasehold-worker" --broker "$work/broker.sock" --listen "$work/w2.sock" --name w2 --model "$model" \
  --http 127.0.0.1:0 "${batches[@]}" >"$work/w2.txt" 2>&1 && die "two workers share a directory"
grep -q "another worker uses $work/batches" "$work/w2.txt" || die "no typed error of the second worker"
client end "$batch"

# A revoked key ends its batches; another key of the tenant reads why.
batch=$(client long)
second=$(key_of ann)
id=$("$python" -c "import hashlib, sys; print(hashlib.blake2b(sys.argv[1].encode(), digest_size=32).hexdigest()[:16])" "$key")
control keys revoke "$id" >/dev/null
key=$second client failed "$batch"
