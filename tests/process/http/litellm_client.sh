#!/usr/bin/env bash
# Runs LiteLLM against a worker: tests/process/http/litellm_client.sh BIN_DIR
set -euo pipefail
. "$(dirname "$0")/script.sh" "$1"

python_with litellm
start_broker
start_worker w1
key=$(key_of ann)
# Its table of prices is the one that it came with.
LITELLM_LOCAL_MODEL_COST_MAP=True LITELLM_LOG=ERROR \
  "$python" "$(dirname "$0")/litellm_client.py" "http://$address/v1" "$key" "Leasehold Stories"
