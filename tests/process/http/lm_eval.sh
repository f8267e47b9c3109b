#!/usr/bin/env bash
# Scores endings of texts with lm-eval's local-completions: tests/process/http/lm_eval.sh BIN_DIR
#
# Installs lm-eval with pip below BIN_DIR, without torch, from the package index that pip is
# configured for. Exits with 77 and one line where that is not possible.
set -euo pipefail
. "$(dirname "$0")/script.sh" "$1"

python_with lm_eval 'lm_eval[api]'
start_broker
start_worker w1 --slow-motion-us 30 --http-idle-ttl-ms 0
key=$(key_of ann)

cat >"$work/items.jsonl" <<'END'
{"text": "Once", "endings": ["time a upon", "upon a time"], "best": 1}
{"text": "The little girl was very", "endings": ["happy.", "upon."], "best": 0}
{"text": "One day, Tom and his mom went to the", "endings": ["yes the.", "park."], "best": 1}
END
cat >"$work/endings.yaml" <<END
task: endings
dataset_path: json
dataset_kwargs: {data_files: {test: $work/items.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{text}}"
doc_to_choice: "{{endings}}"
doc_to_target: best
metric_list: [{metric: acc}]
END
export HF_HUB_OFFLINE=1 HF_HOME=$work/hf OPENAI_API_KEY=$key
name=$(curl -s -H "Authorization: Bearer $key" "http://$address/v1/models" |
  sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
"${python%/*}/lm_eval" run --model local-completions --tasks endings --include_path "$work" \
  --model_args "model=$name,base_url=http://$address/v1/completions,auth_token=$key" --batch_size 2 \
  --output_path "$work/out" --log_samples >"$work/lm_eval.log" 2>&1 ||
  { cat "$work/lm_eval.log"; die "lm_eval failed"; }
grep -rhq '"acc,none": 1.0' "$work/out" || { cat "$work/lm_eval.log"; die "an ending was misjudged"; }
