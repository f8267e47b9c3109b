# Sourced by scripts three folders below the root that run programs of this tree, with BIN_DIR as $1:
# the work folder, what runs, and its end. Expects bash and `set -euo pipefail`.
bin=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d)
pids=()
clean_up() {
  local code=$?
  [[ $code == 0 || $code == 77 ]] || tail -n 20 "$work"/*.log >&2
  for pid in "${pids[@]}"; do kill "$pid" && wait "$pid" || true; done 2>/dev/null
  rm -rf "$work"
  exit "$code"
}
trap clean_up EXIT
skip() { echo "skipped: $1"; exit 77; }
die() { echo "failed: $1" >&2; exit 1; }
wait_for() { for _ in $(seq 600); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; return 1; }
control() { "$bin/brokerctl" --socket "$work/broker.sock" "$@"; }

start_broker() {
  "$bin/leasehold-broker" --socket "$work/broker.sock" --capacity 64MiB >"$work/broker.log" 2>&1 &
  pids+=($!)
  wait_for control status || die "the broker does not answer"
}
# start_worker NAME OPTION…: a worker whose HTTP door is at $address.
model=$root/tools/models/leasehold-stories-q8_0.gguf
start_worker() {
  "$bin/leasehold-worker" --broker "$work/broker.sock" --listen "$work/$1.sock" --name "$1" \
    --model "$model" --http 127.0.0.1:0 "${@:2}" >"$work/$1.log" 2>&1 &
  pids=($! "${pids[@]}")
  wait_for grep "ready name=$1" "$work/$1.log" || die "worker $1 is not ready"
  address=$(sed -n 's/.*HTTP ready address=\([^ ]*\).*/\1/p' "$work/$1.log")
}
# key_of TENANT: a new key of a tenant, which is admitted.
key_of() {
  control tenants admit "$1" --max-concurrent 8 --max-blocks 2000 >/dev/null
  control keys create --tenant "$1" | grep -o 'lh-[^ ]*' | head -n 1
}
