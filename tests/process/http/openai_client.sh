#!/usr/bin/env bash
# Runs OpenAI's Python client against a worker: tests/process/http/openai_client.sh BIN_DIR
#
# Installs the client with pip below BIN_DIR, from the package index that pip is configured for. Exits
# with 77 and one line where that is not possible.
set -euo pipefail
. "$(dirname "$0")/script.sh" "$1"

python_with openai
start_broker
start_worker w1 --slow-motion-us 30 --http-idle-ttl-ms 0
key=$(key_of ann)
"$python" "$(dirname "$0")/openai_client.py" "http://$address/v1" "$key"
"$python" "$(dirname "$0")/openai_responses.py" "http://$address/v1" "$key"
"$python" "$(dirname "$0")/openai_responses.py" "http://$address/v1" "$key" tools
# What was cancelled has given its lease back.
has_no_lease() { control leases >"$work/leases.txt" && ! grep ann "$work/leases.txt" | grep -q Live; }
wait_for has_no_lease

# The bundled model has no template with tools, so the worker writes them into its texts; with this one,
# the template does.
cat >"$work/tools.jinja" <<'JINJA'
{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content }}
{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}{% endfor %}[assistant]
JINJA
start_worker w2 --chat-template "$work/tools.jinja"
"$python" "$(dirname "$0")/openai_responses.py" "http://$address/v1" "$key" tools

# Adapters of the bundled model.
start_worker w3 --slow-motion-us 300 --adapters "$root/tools/models"
control tenants admit ann --max-concurrent 8 --max-blocks 2000 --max-adapters 1 --max-adapter-bytes 16MiB >/dev/null
control tenants admit bob --max-adapters 1 --max-adapter-bytes 16MiB >/dev/null
add() { control adapters add "$1" --file "leasehold-stories-$2.gguf" "${@:3}" >/dev/null; }
add tuned lines --tenant ann
add other sailor --tenant ann
add shared sailor --shared
add theirs lines --tenant bob
"$python" "$(dirname "$0")/openai_adapters.py" "http://$address/v1" "$key" "$bin/brokerctl" "$work/broker.sock"
