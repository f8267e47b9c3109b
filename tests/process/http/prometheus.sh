#!/usr/bin/env bash
# Prometheus reads a worker, a broker and a gateway of a cell: tests/process/http/prometheus.sh BIN_DIR
#
# promtool checks the pages, and a Prometheus scrapes them. As root the monitor runs as a user that
# only observes. vLLM's names have a colon, which promtool advises against, so only that is accepted
# about them. Exits with 77 and one line where Prometheus is missing.
set -euo pipefail
. "$(dirname "$0")/script.sh" "$1"
address_in() { sed -n "s/.* ready address=\([^ ]*:[0-9]*\).*/\1/p" "$1" | head -n 1; }
for program in prometheus promtool curl etcd; do
  command -v $program >/dev/null || skip "$program is not installed; tools/setup --ci installs it"
done

observer=65534
as_observer=()
[[ $EUID == 0 ]] && as_observer=(setpriv "--reuid=$observer" "--regid=$observer" --clear-groups)
[[ $EUID == 0 ]] || observer=$EUID
mkdir "$work/bin"
mkdir --mode 0700 "$work/state"
cp "$bin/leasehold-monitor" "$bin/brokerctl" "$work/bin"  # where that user may read them
chmod 0755 "$work" "$work/bin"

"$bin/leasehold-broker" --socket "$work/broker.sock" --socket-mode 0666 --capacity 64MiB \
  --state-dir "$work/state" --observer-uid "$observer" >"$work/broker.log" 2>&1 &
pids+=($!)
wait_for control status
"$bin/leasehold-worker" --broker "$work/broker.sock" --listen "$work/w1.sock" --name w1 \
  --model "$root/tools/models/leasehold-stories-q8_0.gguf" --metrics 127.0.0.1:0 \
  >"$work/worker.log" 2>&1 &
pids=($! "${pids[@]}")
start_etcd
"${as_observer[@]}" "$work/bin/leasehold-monitor" --broker "$work/broker.sock" --listen 127.0.0.1:0 \
  --cell "$work/cell.toml" >"$work/monitor.log" 2>&1 &
pids=($! "${pids[@]}")
wait_for grep "ready name=w1" "$work/worker.log"
wait_for grep "monitor ready" "$work/monitor.log"
worker=$(address_in "$work/worker.log")
monitor=$(address_in "$work/monitor.log")

control tenants admit ann --max-concurrent 8 --max-blocks 2000 >/dev/null
LEASEHOLD_BROKER="$work/broker.sock" "$bin/leasehold-tenant" --tenant ann --prompt "Once" --max-tokens 8 \
  >"$work/tenant.log" 2>&1
# The broker of a host that is a member of a cell, so that its page has the metrics of cells, too.
PYTHONPATH="$root/tools/client/python" python3 -B - "$work/broker.sock" <<'PY'
import asyncio
import sys

from leasehold_client.connection import Connection


async def join():
    agent = await Connection(sys.argv[1], lambda *_: None, lambda _: None).open()
    await agent.call("cell.attach", {"cell": "c"})
    await agent.call("cell.ceiling", {"incarnation": 1, "ceiling_boottime_ns": 2**63 - 1})


asyncio.run(join())
PY
"$bin/leasehold-gateway" --cell "$work/cell.toml" --listen "$work/gateway.sock" --metrics 127.0.0.1:0 \
  >"$work/gateway.log" 2>&1 &
pids=($! "${pids[@]}")
has_read_etcd() {
  local gateway
  gateway=$(sed -n 's/.*metrics[^ ]* ready address=\([^ ]*\).*/\1/p' "$work/gateway.log" | head -n 1)
  curl --silent --fail "http://$gateway/metrics" >"$work/gateway.txt" &&
    grep -q '^leasehold_gateway_etcd_age_seconds ' "$work/gateway.txt"
}
wait_for has_read_etcd || die "the gateway reads nothing from etcd"
has_counted() {
  curl --silent --fail "http://$worker/metrics" >"$work/worker.txt" &&
    grep -q '^leasehold_tenant_tokens_total{tenant="ann"}' "$work/worker.txt" &&
    curl --silent --fail "http://$monitor/metrics" >"$work/broker.txt" &&
    grep -q '^leasehold_broker_revocations_total{reason="released"} 1$' "$work/broker.txt" &&
    grep -q '^leasehold_monitor_cell_hosts{state="member"} 1$' "$work/broker.txt"
}
wait_for has_counted || die "the pages do not show the request"
if [[ $EUID == 0 ]]; then
  "${as_observer[@]}" "$work/bin/brokerctl" --socket "$work/broker.sock" status >/dev/null
  ! "${as_observer[@]}" "$work/bin/brokerctl" --socket "$work/broker.sock" tenants remove ann 2>"$work/refused.txt" ||
    die "an observer removed a tenant"
  grep -q "is not an operator" "$work/refused.txt"
fi

grep -v 'vllm:' "$work/worker.txt" | promtool check metrics
promtool check metrics <"$work/broker.txt"
promtool check metrics <"$work/gateway.txt"
code=0  # 3: it parses, and there is advice
promtool check metrics <"$work/worker.txt" >"$work/advice.txt" 2>&1 || code=$?
[[ $code == 3 ]] || { cat "$work/advice.txt"; die "promtool cannot parse the page"; }
promtool check rules "$root/tools/prometheus/rules.yml"
promtool test rules "$root/tests/process/http/rules_test.yml"
if grep -v "^vllm:.*metric names should not contain ':'$" "$work/advice.txt"; then die "advice"; fi

cat >"$work/prometheus.yml" <<YML
global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }
rule_files: ["$root/tools/prometheus/rules.yml"]
scrape_configs:
  - job_name: leasehold
    static_configs: [{ targets: ["$worker", "$monitor"] }]
YML
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" \
  --web.listen-address="127.0.0.1:$port" >"$work/prometheus.log" 2>&1 &
pids=($! "${pids[@]}")
value_of() { curl --silent --fail --data-urlencode "query=$1" "http://127.0.0.1:$port/api/v1/query"; }
has_value() { value_of "$1" | grep -q "\"$2\"\]"; }
wait_for has_value 'sum(up)' 2 || die "Prometheus does not reach both"
wait_for has_value 'leasehold_tokens_total{kind="generated"}' 8 || die "Prometheus has other tokens"
wait_for has_value 'leasehold_broker_up' 1 || die "Prometheus does not see the broker"
wait_for has_value 'count(leasehold:tokens:rate1m)' 2 || die "the rules record nothing"
rules=$(curl --silent "http://127.0.0.1:$port/api/v1/rules")
[[ $rules != *'"health":"err"'* ]] || die "a rule fails: $rules"
python3 "$(dirname "$0")/exported_names.py" "http://127.0.0.1:$port" "$root/tools/prometheus/rules.yml" \
  "$root/tools/grafana/leasehold.json" "$work/worker.txt" "$work/broker.txt" "$work/gateway.txt"
