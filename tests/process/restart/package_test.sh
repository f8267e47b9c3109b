#!/bin/bash
# Makes the Debian package of a build, installs it in a container with systemd, starts broker and worker
# from its units, and serves a request through `curl`. Kills the worker and the broker: the same request
# gets the same text again, and after an upgrade. Removes the package: its units and programs are gone, its state stays.
#
#   tests/process/restart/package_test.sh BUILD_DIR
#
# Exits with 77 and one line where no container can run (container.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/container.sh"

# ------------------------------------------------------------------------------ in the container

complete() {
  curl -sS --max-time 60 --unix-socket /run/leasehold-worker-demo/http.sock \
    -H "Authorization: Bearer $key" -H "Content-Type: application/json" http://localhost/v1/completions -d "$1"
}
text() { complete '{"model": "Leasehold Stories", "prompt": "Once upon a time", "max_tokens": 60, "seed": 1, "temperature": 0}' |
  sed -n 's/.*"text":"\([^"]*\)".*/\1/p'; }
serves() { [ "$(text)" = "$expected" ]; }

main_pid() { systemctl show -p MainPID --value leasehold-worker@demo; }
has_restarted() { ready && [ "$(main_pid)" != "$worker" ]; }

use_package() {
  trap 'status=$?; [ $status = 0 ] || journalctl -u leasehold-broker -u "leasehold-worker@*" --no-pager -n 60' EXIT
  dpkg -i /package.deb || die "the package does not install"
  systemctl enable --now leasehold-broker.socket leasehold-broker leasehold-worker@demo leasehold-monitor || die "the units do not start"
  wait_for ready || die "the worker is not ready"
  brokerctl status | grep -q 'isolation *separate-users' || die "broker and workers are not separated"
  curl -sS http://127.0.0.1:8081/metrics | grep -q '^leasehold_broker_up 1$' || die "the monitor does not see the broker"
  brokerctl tenants admit alice --max-concurrent 4 --max-blocks 1024 >/dev/null
  local key expected stream worker
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

  worker=$(main_pid)
  dpkg -i /package.deb || die "the package does not upgrade"
  wait_for has_restarted || die "an upgrade does not restart the worker"
  wait_for serves || die "another text after an upgrade: $(text)"
  for program in $(dpkg -L leasehold | grep ^/usr/bin/); do
    [ -s "/usr/share/man/man1/${program##*/}.1.gz" ] || die "no man page of $program"
  done
  dpkg -r leasehold || die "the package is not removed"
  [ ! -e /usr/bin/brokerctl ] && ! systemctl is-active -q leasehold-broker || die "the package left programs or processes"
  [ -z "$(find /etc/systemd/system -name 'leasehold*' ! -name '*.service.d')" ] || die "removal left links to units"
  [ -e /var/lib/leasehold ] && [ -e /etc/leasehold/broker.toml ] || die "removal deleted the state"
  dpkg -P leasehold && [ ! -e /var/lib/leasehold ] || die "the purge left the state"
  echo "${#expected} bytes of text, the same after both deaths and an upgrade"
}

# -------------------------------------------------------------------------------- on this machine

# install_files ROOT BUILD_DIR
install_files() {
  rm -f "$1"/usr/bin/{leasehold-broker,leasehold-worker,brokerctl}
  install -m 0644 "$2"/leasehold_*.deb "$1/package.deb"
}

make_package() {
  command -v dpkg-shlibdeps >/dev/null || skip "needs dpkg-shlibdeps (package dpkg-dev)"
  cpack --config "$1/CPackConfig.cmake" -G DEB -B "$2" >"$2/cpack.log" 2>&1 || { cat "$2/cpack.log"; exit 1; }
  ! command -v lintian >/dev/null || lintian --allow-root --fail-on error "$2"/leasehold_*.deb || exit 1
}

case ${1:-} in
  inside) use_package; exit ;;
  boot) boot "$2" "$3"; exit ;;
esac
needs_container
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
make_package "$(realpath "${1:-$here/../../../build/quick}")" "$made"
in_container "$made"
