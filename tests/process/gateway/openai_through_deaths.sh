#!/usr/bin/env bash
# OpenAI's Python client through the deaths of hosts: tests/process/gateway/openai_through_deaths.sh BIN_DIR
# Exits with 77 and one line where pip cannot install the client.
set -euo pipefail
. "$(dirname "$0")/../http/script.sh" "$1"

python_with openai
"$python" -B "$(dirname "$0")/openai_through_deaths.py" "$bin"
