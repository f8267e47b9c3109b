#!/usr/bin/env bash
# Runs Anthropic's Python client against a worker: tests/process/http/anthropic_client.sh BIN_DIR
set -euo pipefail
. "$(dirname "$0")/script.sh" "$1"

python_with anthropic
start_broker
# The model's context is short; this template writes tools in fewer tokens than the worker does.
cat >"$work/tools.jinja" <<'JINJA'
{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content }}
{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}
JINJA
start_worker w1 --slow-motion-us 30 --chat-template "$work/tools.jinja"
LEASEHOLD_BROKER=$work/broker.sock "$python" "$(dirname "$0")/anthropic_client.py" \
  "http://$address" "$(key_of ann)" "$bin/brokerctl"
