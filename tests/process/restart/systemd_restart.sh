#!/bin/bash
# Tests a broker restart under systemd: kills the broker while a tenant decodes. systemd restarts it
# with its stored descriptors, and the tenant's text is the same as without the kill.
#
#   tests/process/restart/systemd_restart.sh BIN_DIR
#
# Needs root, systemd-nspawn, and a script that boots systemd on an overlay of the root file system
# (LEASEHOLD_BOOT_SYSTEMD, default ../shared/scripts/boot-systemd: start|exec|stop DIR). Not part of
# the test suite; exits with 77 if a requirement is missing.
set -euo pipefail
tree=$(cd "$(dirname "$0")/../../.." && pwd)
bin=${1:-$tree/build/quick/bin}
boot=${LEASEHOLD_BOOT_SYSTEMD:-$tree/../shared/scripts/boot-systemd}

skip() { echo "skipped: $1" >&2; exit 77; }
[ "$(id -u)" = 0 ] || skip "needs root"
command -v systemd-nspawn >/dev/null || skip "needs systemd-nspawn (package systemd-container)"
[ -x "$boot" ] || skip "needs $boot"

container=$(mktemp -d)
stop() {
  status=$?
  [ $status = 0 ] || "$boot" exec "$container" journalctl -u leasehold-broker -u 'leasehold-worker@*' \
    --no-pager -n 60 >&2 || true
  "$boot" stop "$container" >/dev/null 2>&1 || true
  rmdir "$container" 2>/dev/null || true
  rm -f "$container".{calm,killed,errors}
}
trap stop EXIT
"$boot" start "$container" || skip "systemd-nspawn cannot boot a container"
inside() { "$boot" exec "$container" "$@"; }

root=$container/root
for program in leasehold-broker leasehold-worker leasehold-tenant brokerctl; do
  install -m 0755 "$bin/$program" "$root/usr/bin/$program"
done
install -m 0644 "$tree"/tools/systemd/*.service "$root/etc/systemd/system/"
install -m 0644 "$tree/tools/models/leasehold-stories-q8_0.gguf" "$root/usr/share/model.gguf"
mkdir -p "$root/etc/leasehold"
echo 'LEASEHOLD_MODEL=/usr/share/model.gguf
LEASEHOLD_WORKER_ARGS=--slow-motion-us 200' >"$root/etc/leasehold/worker-w1.env"

control() { inside brokerctl --socket /run/leasehold/broker.sock "$@"; }
wait_for() { for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; return 1; }
ready() { control workers | grep -q ' ready'; }
decode() {
  inside leasehold-tenant --socket /run/leasehold/broker.sock --tenant ann \
    --prompt "Once upon a time" --max-tokens 200 --ignore-eos
}
main_pid() { inside systemctl show -p MainPID --value "$1"; }

inside systemctl daemon-reload
inside systemctl start leasehold-broker leasehold-worker@w1
wait_for ready || { echo "the worker is not ready" >&2; exit 1; }
control admit ann --ttl-ms 60000 --max-blocks 2000 --max-concurrent 8 >/dev/null
decode >"$container.calm"
broker=$(main_pid leasehold-broker)
worker=$(main_pid leasehold-worker@w1)

decode >"$container.killed" 2>"$container.errors" &
tenant=$!
wait_for grep -q . "$container.killed" || { echo "the tenant received no token" >&2; exit 1; }
kept=$(inside systemctl show -p NFileDescriptorStore --value leasehold-broker)
inside systemctl kill -s KILL leasehold-broker
wait "$tenant" || { echo "the tenant failed:" >&2; cat "$container.errors" >&2; exit 1; }

wait_for ready || { echo "the worker did not resume" >&2; exit 1; }
cmp "$container.calm" "$container.killed" || { echo "the text changed" >&2; exit 1; }
[ "$(main_pid leasehold-broker)" != "$broker" ] || { echo "the broker was not killed" >&2; exit 1; }
[ "$(main_pid leasehold-worker@w1)" = "$worker" ] || { echo "the worker restarted" >&2; exit 1; }
control status
echo "the broker restarted with $kept kept descriptors; $(wc -c <"$container.killed") bytes of text are unchanged"
