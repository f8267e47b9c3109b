#!/usr/bin/env bash
# Runs GuideLLM against a worker, with a tokenizer that this script writes: tests/process/http/guidellm_client.sh BIN_DIR
#
# Version 0.3 is the last one that needs no PyTorch, which has gigabytes.
set -euo pipefail
. "$(dirname "$0")/script.sh" "$1"

python_with guidellm 'guidellm==0.3.*'
start_broker
start_worker w1
key=$(key_of ann)
# Each byte is a token; GuideLLM makes prompts with it, and counts those that the server does not.
"$python" - "$work/tokenizer" <<'PYTHON'
import sys
import tokenizers
import transformers

bytes_of_text = tokenizers.pre_tokenizers.ByteLevel.alphabet()
made = tokenizers.Tokenizer(tokenizers.models.BPE({letter: i for i, letter in enumerate(sorted(bytes_of_text))}, []))
made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
made.decoder = tokenizers.decoders.ByteLevel()
transformers.PreTrainedTokenizerFast(tokenizer_object=made).save_pretrained(sys.argv[1])
PYTHON

# measure TYPE REQUESTS: the report says how many requests were whole, and their tokens.
measure() {
  HF_HUB_OFFLINE=1 GUIDELLM__OPENAI__API_KEY=$key "$(dirname "$python")/guidellm" benchmark \
    --target "http://$address" --rate-type "$1" ${3:+--rate "$3"} --max-requests "$2" \
    --processor "$work/tokenizer" --data "prompt_tokens=24,output_tokens=16" --output-path "$work/$1.json" \
    --disable-progress --disable-console-outputs >"$work/guidellm.log" 2>&1 || { tail -n 30 "$work/guidellm.log" >&2; die "$1"; }
  "$python" - "$work/$1.json" "$2" <<'PYTHON'
import json
import sys

made = json.load(open(sys.argv[1]))["benchmarks"][0]["requests"]
whole, other = made["successful"], made["errored"] + made["incomplete"]
assert len(whole) == int(sys.argv[2]) and not other, (len(whole), other)
assert all(one["output_tokens"] == 16 for one in whole), whole
print(f"{len(whole)} requests of 16 tokens")
PYTHON
}
measure synchronous 4
measure concurrent 12 4
