#!/bin/bash
# Tests the units, users, folders and configuration of tools/systemd. Kills the broker while a tenant
# decodes: systemd restarts it with its stored descriptors, and the tenant's text is the same as without
# the kill. Kills the worker, too: the one that systemd starts adopts its memory, and the text is the
# same. `systemctl reload` changes options and no text, and a drain may take longer than TimeoutStopSec.
# A call after `systemctl stop` starts the broker by its socket. The monitor serves metrics and page.
# The worker serves TCP addresses of its file by sockets of systemd.
#
#   tests/process/restart/systemd_restart.sh BIN_DIR
#
# Exits with 77 and one line where no container can run (container.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/container.sh"

# ------------------------------------------------------------------------------ in the container

decode() {
  leasehold-tenant --socket /run/leasehold/broker.sock --tenant ann \
    --prompt "Once upon a time" --max-tokens 200 --ignore-eos "$@"
}
user_of() { stat -c %U "/proc/$1"; }
monitor_sees() { wait_for eval "curl -sS http://127.0.0.1:8081/metrics | grep '^leasehold_broker_up $1\$' >/dev/null"; }
main_pid() { property MainPID "$1"; }
property() { systemctl show -p "$1" --value "$2"; }
has_changed() { journalctl -u "$1" --no-pager -o cat | grep -q "configuration changed: $2"; }

run_inside() {
  trap 'status=$?; [ $status = 0 ] || journalctl -u leasehold-broker -u "leasehold-worker@*" --no-pager -n 60' EXIT
  systemd-sysusers leasehold.conf
  systemd-tmpfiles --create leasehold.conf
  systemctl start leasehold-broker.socket leasehold-worker@w1
  wait_for ready || die "the worker is not ready"
  control tenants admit ann --ttl-ms 60000 --max-blocks 2000 --max-concurrent 8 >/dev/null
  systemctl start leasehold-monitor || die "the monitor does not start"
  monitor_sees 1 || die "the monitor does not see the broker"
  [ "$(user_of "$(main_pid leasehold-monitor)")" = leasehold-monitor ] || die "the monitor has another user"
  read_page
  serve_a_port
  decode >/tmp/calm
  reload_units
  restart_broker
  restart_worker
  drain_worker
  systemctl stop leasehold-broker
  control status >/dev/null || die "the socket did not start the broker"
}

read_page() {
  local page=http://127.0.0.1:8081
  curl -sS $page/ | grep '<title>Leasehold</title>' >/dev/null || die "the monitor serves no page"
  curl -sS $page/api/overview | grep '"isolation":"separate-users"' >/dev/null || die "the page has no data"
  curl -sS $page/api/leases | grep '"items":\[' >/dev/null || die "the page has no leases"
  [ "$(curl -sS -o /dev/null -w '%{http_code}' -H 'Host: attacker.example' $page/api/overview)" = 421 ] ||
    die "the monitor answers a foreign name"
}

# The worker has no network, and serves the addresses in its file.
serve_a_port() {
  local file=/etc/leasehold/worker-w1.toml
  answers() { [ "$(curl -sS -o /dev/null -w '%{http_code}' "http://127.0.0.1:$1/$2" 2>/dev/null)" = 200 ]; }
  answers 8080 health || die "the worker does not serve its port"
  answers 9464 metrics || die "the worker does not serve its metrics"
  sed -i 's/:8080/:8082/' "$file"
  systemctl restart --no-block leasehold-worker@w1
  names_the_cure() { journalctl -u leasehold-worker@w1 -o cat | grep -q '8082.*systemctl daemon-reload'; }
  wait_for names_the_cure || die "no word of daemon-reload for a port that systemd does not know"
  systemctl daemon-reload
  systemctl restart leasehold-worker@w1
  answers 8082 health || die "the worker does not serve its new port"
  ! answers 8080 health || die "the worker still serves its old port"
  systemctl stop leasehold-worker@w1
  ! curl -sS --max-time 5 http://127.0.0.1:8082/health 2>/dev/null || die "a client started a stopped worker"
  has_no_socket() { [ "$(property ActiveState leasehold-worker-http@w1.socket)" = inactive ]; }
  wait_for has_no_socket || die "the socket of a stopped worker stays"
  systemctl start leasehold-worker@w1
  wait_for ready || die "the worker is not ready"
}

# Both processes read their files again while a text runs.
reload_units() {
  local broker worker tenant
  broker=$(main_pid leasehold-broker)
  worker=$(main_pid leasehold-worker@w1)
  echo 'reclaim-grace-ms = 4321' >>/etc/leasehold/broker.toml
  echo 'drain-timeout-ms = 60000' >>/etc/leasehold/worker-w1.toml
  decode >/tmp/reloaded 2>/tmp/errors &
  tenant=$!
  wait_for grep -q . /tmp/reloaded || die "the tenant received no token"
  systemctl reload leasehold-broker leasehold-worker@w1 || die "the units do not reload"
  wait_for has_changed leasehold-broker reclaim-grace-ms || die "the broker did not read its file"
  wait_for has_changed leasehold-worker@w1 drain-timeout-ms || die "the worker did not read its file"
  wait "$tenant" || die "the tenant failed: $(cat /tmp/errors)"
  cmp /tmp/calm /tmp/reloaded || die "the text changed"
  [ "$(main_pid leasehold-broker) $(main_pid leasehold-worker@w1)" = "$broker $worker" ] || die "a reload restarted a unit"
}

has_stopped() { [ "$(property ActiveState leasehold-worker@w1)" = inactive ]; }
is_draining() { [[ $(property StatusText leasehold-worker@w1) == Draining* ]]; }

# The worker asks systemd for more than TimeoutStopSec, so it is still there after twice that time, and
# the text ends by itself. It is stopped meanwhile, so that the text cannot end too early.
drain_worker() {
  local worker tenant drop_in=/run/systemd/system/leasehold-worker@.service.d
  worker=$(main_pid leasehold-worker@w1)
  mkdir -p "$drop_in"
  printf '[Service]\nTimeoutStopSec=1\n' >"$drop_in/short.conf"
  systemctl daemon-reload
  decode >/tmp/drained 2>/tmp/errors &
  tenant=$!
  wait_for grep -q . /tmp/drained || die "the tenant received no token"
  systemctl stop --no-block leasehold-worker@w1
  wait_for is_draining || die "the worker does not drain"
  kill -STOP "$worker"
  sleep 2
  kill -CONT "$worker" || die "systemd did not wait for the drain"
  wait "$tenant" || die "the tenant failed: $(cat /tmp/errors)"
  cmp /tmp/calm /tmp/drained || die "the text changed"
  wait_for has_stopped || die "the worker did not stop"
  [ "$(property Result leasehold-worker@w1)" = success ] || die "the worker failed"
}

restart_broker() {
  local broker worker tenant kept
  broker=$(main_pid leasehold-broker)
  worker=$(main_pid leasehold-worker@w1)

  decode >/tmp/killed 2>/tmp/errors &
  tenant=$!
  wait_for grep -q . /tmp/killed || die "the tenant received no token"
  [ "$(user_of "$broker") $(user_of "$worker")" = "leasehold leasehold-worker" ] || die "the users are wrong"
  control status | grep 'isolation *separate-users' >/dev/null || die "broker and workers are not separated"
  [[ $(systemctl show -p StatusText --value leasehold-broker) =~ ^Serving\ 1\ workers ]] || die "another status: $(property StatusText leasehold-broker)"
  kept=$(systemctl show -p NFileDescriptorStore --value leasehold-broker)
  systemctl kill -s KILL leasehold-broker
  wait "$tenant" || die "the tenant failed: $(cat /tmp/errors)"

  wait_for ready || die "the worker did not resume"
  cmp /tmp/calm /tmp/killed || die "the text changed"
  [ "$(main_pid leasehold-broker)" != "$broker" ] || die "the broker was not killed"
  [ "$(main_pid leasehold-worker@w1)" = "$worker" ] || die "the worker restarted"
  echo "the broker restarted with $kept kept descriptors; $(wc -c </tmp/killed) bytes of text are unchanged"
}

has_continued() { grep -q 'continuing under lease' /tmp/errors; }
has_adopted() { control status | grep -q '^rebinds by adopt .* of 1$'; }

# Prints what passes until the tenant reports that a token came under its new lease.
restart_worker() {
  local worker tenant began
  worker=$(main_pid leasehold-worker@w1)
  decode --rebind >/tmp/adopted 2>/tmp/errors &
  tenant=$!
  wait_for grep -q . /tmp/adopted || die "the tenant received no token"
  began=$(date +%s%N)
  systemctl kill -s KILL leasehold-worker@w1
  for _ in $(seq 3000); do has_continued && break; sleep 0.01; done
  has_continued || die "the text did not continue: $(cat /tmp/errors)"
  echo "from the worker's death to the next token: $((($(date +%s%N) - began) / 1000000)) ms"
  wait "$tenant" || die "the tenant failed: $(cat /tmp/errors)"

  cmp /tmp/calm /tmp/adopted || die "the text changed"
  [ "$(main_pid leasehold-worker@w1)" != "$worker" ] || die "the worker was not killed"
  wait_for has_adopted || die "the new worker adopted nothing: $(control status)"
  grep 'adopted' /tmp/errors
}

# -------------------------------------------------------------------------------- on this machine

# install_files ROOT BIN_DIR: programs, units, model and this script.
install_files() {
  local root=$1 bin=$2 tree program
  tree=$(cd "$(dirname "$0")/../../.." && pwd)
  for program in leasehold-broker leasehold-worker leasehold-tenant leasehold-monitor brokerctl; do
    install -m 0755 "$bin/$program" "$root/usr/bin/$program"
  done
  install -m 0644 "$tree"/tools/systemd/*.{service,socket} "$root/etc/systemd/system/"
  install -D "$tree/tools/systemd/leasehold-generator" "$root/etc/systemd/system-generators/leasehold-generator"
  mkdir -p "$root"/etc/{leasehold,sysusers.d,tmpfiles.d}
  install -m 0644 "$tree/tools/systemd/leasehold.sysusers.conf" "$root/etc/sysusers.d/leasehold.conf"
  install -m 0644 "$tree/tools/systemd/leasehold.tmpfiles.conf" "$root/etc/tmpfiles.d/leasehold.conf"
  install -m 0644 "$tree/tools/systemd/broker.toml" "$root/etc/leasehold/broker.toml"
  install -m 0644 "$tree/tools/systemd/monitor.toml" "$root/etc/leasehold/monitor.toml"
  install -m 0644 "$tree/tools/models/leasehold-stories-q8_0.gguf" "$root/usr/share/model.gguf"
  echo 'model = "/usr/share/model.gguf"
slow-motion-us = 200
http = "127.0.0.1:8080"
metrics = "127.0.0.1:9464"' >"$root/etc/leasehold/worker-w1.toml"
}

case ${1:-} in
  inside) run_inside; exit ;;
  boot) boot "$2" "$3"; exit ;;
esac
needs_container
in_container "$(realpath "${1:-$here/../../../build/quick/bin}")"
