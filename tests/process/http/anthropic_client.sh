#!/usr/bin/env bash
# Runs Anthropic's Python client against a worker: tests/process/http/anthropic_client.sh BIN_DIR
set -euo pipefail
. "$(dirname "$0")/script.sh" "$1"

python_with anthropic
start_broker
# The bundled model has no template with tools.
"$python" "$(dirname "$0")/with_template.py" "$model" "$work/tools.gguf" \
  "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in \
m.tool_calls or [] %}{{ c.function.name }}{% endfor %}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
model=$work/tools.gguf
start_worker w1 --slow-motion-us 30
LEASEHOLD_BROKER=$work/broker.sock "$python" "$(dirname "$0")/anthropic_client.py" \
  "http://$address" "$(key_of ann)" "$bin/brokerctl"
