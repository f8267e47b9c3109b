# Sourced by the scripts of this folder with BIN_DIR as $1: the work folder, what runs, and its end.
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
wait_for() { for _ in $(seq 600); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; return 1; }
control() { "$bin/brokerctl" --socket "$work/broker.sock" "$@"; }
