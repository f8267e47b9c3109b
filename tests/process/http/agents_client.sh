#!/usr/bin/env bash
# Runs LangChain, pydantic-ai and openai-agents against a worker whose model has no template with tools:
# tests/process/http/agents_client.sh BIN_DIR
set -euo pipefail
. "$(dirname "$0")/script.sh" "$1"

python_with agents openai-agents langchain-openai 'pydantic-ai-slim[openai]'
start_broker
start_worker w1 --name-as org/chat --name-as story
key=$(key_of ann)
OPENAI_AGENTS_DISABLE_TRACING=1 LANGSMITH_TRACING=false \
  "$python" "$(dirname "$0")/agents_client.py" "http://$address/v1" "$key"
