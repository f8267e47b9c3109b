#!/usr/bin/env bash
# Runs ContextPilot's server beside a worker: tests/process/http/contextpilot_server.sh BIN_DIR
#
# A request that is sent to the worker with an id of ContextPilot's index leaves the index when its KV is
# gone, and no other does.
#
# Installs the server with pip below BIN_DIR, without what only its other parts import. Exits with 77 and
# one line where that is not possible.
set -euo pipefail
. "$(dirname "$0")/script.sh" "$1"

python_with contextpilot contextpilot==0.5.0 --no-deps
# The package names 600 MB of dependencies; its server imports these.
"$python" -c 'import fastapi, uvicorn, aiohttp, numpy, scipy, tqdm, httpx' 2>/dev/null ||
  "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 \
    fastapi uvicorn aiohttp numpy scipy tqdm httpx >"$work/pip.txt" 2>&1 ||
  skip "pip cannot install what ContextPilot needs: $(tail -n 1 "$work/pip.txt")"

# The server computes in processes that it forks from one of its threads, which can wait for ever for a lock
# that another thread held then. A fork server has one thread.
cat >"$work/serve.py" <<'PROGRAM'
import multiprocessing
import socket

if __name__ == "__main__":
    multiprocessing.set_start_method("forkserver")
    import uvicorn
    from contextpilot.server.http_server import app
    listener = socket.create_server(("127.0.0.1", 0))
    print("address=127.0.0.1:%d" % listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listener])
PROGRAM
(cd "$work" && exec "$python" serve.py) >"$work/index.log" 2>&1 &
pids+=($!)
wait_for grep -q '^address=' "$work/index.log" || die "ContextPilot does not start"
index=$(sed -n 's/^address=//p' "$work/index.log")

start_broker
# The key's lease, and the KV with it, ends with the request.
start_worker w1 --http-idle-ttl-ms 0 --kv-index-url "http://$index"
key=$(key_of ann)
post() { curl -sS --max-time 60 -H 'Content-Type: application/json' -H "Authorization: Bearer $key" "http://$1" -d "$2"; }
indexed() { curl -sS --max-time 20 "http://$index/requests" | grep -o 'req-[0-9a-f]*' | sort; }

post "$index/reorder" '{"contexts": [["Once upon a time", "a princess"], ["Once upon a time", "a pig"]]}' >"$work/order"
mapfile -t ids < <(indexed)
[ ${#ids[@]} = 2 ] || die "not two requests in the index: $(cat "$work/order")"
post "$address/v1/completions" \
  '{"model": "Leasehold Stories", "prompt": "Once upon a time", "max_tokens": 8, "request_id": "'"${ids[0]}"'"}' |
  grep -q '"finish_reason":"length"' || die "no completion"
only_the_other() { [ "$(indexed)" = "${ids[1]}" ]; }
wait_for only_the_other || die "the index has: $(indexed)"
