#!/bin/bash
# Makes the Debian packages of a build, installs them in a container with systemd, and runs the commands
# of QUICKSTART.md and OPERATING.md there: each prints what the document shows. Kills the worker and the
# broker: the same request gets the same text again, and an upgrade changes no text that streams.
# Removes the package: its units and programs are gone, its state stays.
#
#   tests/process/restart/package_test.sh BUILD_DIR
#   tests/process/restart/package_test.sh BUILD_DIR --record    Write what the commands print into the documents
#
# Exits with 77 and one line where no container can run (container.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/container.sh"

# ------------------------------------------------------------------------------ in the container

complete() {
  curl -sS --max-time 60 -H "Authorization: Bearer $key" -H "Content-Type: application/json" \
    http://127.0.0.1:8080/v1/completions -d "$1"
}
text() { complete '{"model": "Leasehold Stories", "prompt": "Once upon a time", "max_tokens": 60, "seed": 1, "temperature": 0}' |
  sed -n 's/.*"text":"\([^"]*\)".*/\1/p'; }
serves() { [ "$(text)" = "$expected" ]; }

main_pid() { systemctl show -p MainPID --value leasehold-worker@demo; }
has_restarted() { ready && [ "$(main_pid)" != "$worker" ]; }

# run_document NAME: as a reader would, in a folder of its own.
run_document() {
  mkdir -p /root/reader && cd /root/reader
  python3 /packages/transcript.py "/packages/$1" ${record:+--record} || die "$1 shows what is not printed"
  [ -z "$record" ] || cp "/packages/$1" "/recorded-$1"
}

# As the unit's user.
as_gateway() { setpriv --reuid=leasehold-gateway --regid=leasehold-gateway --clear-groups leasehold-gateway "$@" --check-config; }

broker_losses() { journalctl -u leasehold-worker@demo -o cat | grep -c 'broker disconnected' || true; }

# A text of a rebinding client streams while the package is upgraded.
upgrade() {
  local tenant worker losses
  losses=$(broker_losses)
  decode() { leasehold-tenant --tenant alice --prompt "Once upon a time" --max-tokens 400 --ignore-eos "$@"; }
  decode >/tmp/calm
  decode --rebind >/tmp/upgraded 2>/tmp/errors &
  tenant=$!
  wait_for grep -q . /tmp/upgraded || die "the tenant received no token"
  worker=$(main_pid)
  dpkg -i /packages/leasehold_*.deb || die "the package does not upgrade"
  wait "$tenant" || die "the tenant failed: $(cat /tmp/errors)"
  cmp /tmp/calm /tmp/upgraded || die "the upgrade changed the text"
  grep -q 'continuing under lease' /tmp/errors || die "the upgrade did not interrupt the text"
  wait_for has_restarted || die "an upgrade does not restart the worker"
  [ "$(broker_losses)" = "$losses" ] || die "the upgrade stopped the broker before the worker had drained"
}

use_package() {
  local record
  record=$(cat /packages/record)
  trap 'status=$?; [ $status = 0 ] || journalctl -u leasehold-broker -u "leasehold-worker@*" --no-pager -n 60' EXIT
  dpkg -i /packages/*.deb || die "the packages do not install"
  [ -e /usr/include/leasehold/client.hpp ] && ldconfig -p | grep libleasehold-client >/dev/null || die "no client library"
  python3 -c 'import importlib.metadata as m, leasehold_client as c
assert m.version("leasehold-client") == c.__version__ and c.Session' || die "no Python client"
  # QUICKSTART.md makes the worker slow, so texts last longer than what disturbs them.
  echo 'drain-timeout-ms = 200' >>/etc/leasehold/worker-demo.toml
  run_document QUICKSTART.md
  brokerctl status >/tmp/status && grep -q 'isolation *separate-users' /tmp/status || die "broker and workers are not separated"
  curl -sS http://127.0.0.1:8081/metrics | grep '^leasehold_broker_up 1$' >/dev/null || die "the monitor does not see the broker"
  local key expected stream
  key=$(brokerctl keys create --tenant alice -o json | sed -n "s/.*\"api_key\": *\"\([^\"]*\)\".*/\1/p")
  [ -n "$key" ] || die "no key"
  expected=$(text)
  [ ${#expected} -gt 100 ] || die "the text is too short: $(complete '{"prompt": "Once"}')"
  stream=$(complete '{"model": "Leasehold Stories", "prompt": "Once", "max_tokens": 8, "stream": true}')
  [[ $stream == *"data: [DONE]"* ]] || die "the stream has no end: $stream"

  systemctl kill -s KILL leasehold-worker@demo
  wait_for serves || die "another text after the death of the worker: $(text)"
  systemctl kill -s KILL leasehold-broker
  wait_for serves || die "another text after the death of the broker: $(text)"

  upgrade
  wait_for serves || die "another text after an upgrade: $(text)"
  [ "$(stat -c '%U:%G %a' /etc/leasehold/cell.toml)" = root:leasehold\ 640 ] || die "others can read cell.toml"
  [ "$(stat -c '%U:%G %a' /etc/leasehold/gateway-cell.toml)" = root:leasehold-gateway\ 640 ] || die "others can read gateway-cell.toml"
  as_gateway --cell /etc/leasehold/gateway-cell.toml || die "the gateway cannot read the file of its cell"
  ! as_gateway --cell /etc/leasehold/cell.toml 2>/tmp/errors || die "the gateway can read the agent's file"
  grep -q gateway-cell.toml /tmp/errors || die "the gateway names no file that it can read: $(cat /tmp/errors)"
  for program in $(dpkg -L leasehold leasehold-cell | grep ^/usr/bin/); do
    [ -s "/usr/share/man/man1/${program##*/}.1.gz" ] || die "no man page of $program"
  done
  grep -q '^slow-motion-us' /etc/leasehold/worker-demo.toml || die "the upgrade replaced the configuration"
  run_document OPERATING.md
  wait_for serves || die "another text after the restore: $(text)"
  dpkg -r leasehold-cell leasehold libleasehold-client-dev || die "the package is not removed"
  [ ! -e /usr/bin/brokerctl ] && ! systemctl is-active -q leasehold-broker || die "the package left programs or processes"
  [ -z "$(find /etc/systemd/system -name 'leasehold*' ! -name '*.service.d')" ] || die "removal left links to units"
  [ -e /var/lib/leasehold ] && [ -e /etc/leasehold/broker.toml ] || die "removal deleted the state"
  dpkg -P leasehold-cell leasehold && [ ! -e /var/lib/leasehold ] || die "the purge left the state"
  [ ! -e /run/leasehold-cell ] && [ -z "$(ls /etc/leasehold/*.toml 2>/dev/null)" ] || die "the purge left an agent's files"
  echo "${#expected} bytes of text, the same after both deaths and an upgrade"
}

# -------------------------------------------------------------------------------- on this machine

# install_files ROOT BUILD_DIR
install_files() {
  rm -f "$1"/usr/bin/{leasehold-broker,leasehold-worker,brokerctl}
  local tree
  tree=$(cd "$here/../../.." && pwd)
  mkdir "$1/packages"
  install -m 0644 "$2"/*.deb "$2/record" "$here/transcript.py" "$tree"/tools/package/{QUICKSTART,OPERATING}.md "$1/packages"
}

# Copies what was recorded out of the container, before its root is unmounted.
take_recorded() {
  local document
  for document in QUICKSTART OPERATING; do
    [ ! -e "$1/recorded-$document.md" ] || cp "$1/recorded-$document.md" "$here/../../../tools/package/$document.md"
  done
}

make_package() {
  command -v dpkg-shlibdeps >/dev/null || skip "needs dpkg-shlibdeps (package dpkg-dev)"
  cpack --config "$1/CPackConfig.cmake" -G DEB -B "$2" >"$2/cpack.log" 2>&1 || { cat "$2/cpack.log"; exit 1; }
  ! command -v lintian >/dev/null || lintian --allow-root --fail-on error,warning "$2"/*.deb || exit 1
}

case ${1:-} in
  inside) use_package; exit ;;
  boot) boot "$2" "$3"; exit ;;
esac
needs_container
command -v etcd etcdctl >/dev/null || skip "needs etcd (packages etcd-server and etcd-client)"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
make_package "$(realpath "${1:-$here/../../../build/quick}")" "$made"
[ "${2:-}" != --record ] && >"$made/record" || echo yes >"$made/record"
in_container "$made"
