#!/bin/bash
# Tests that systemd knows every key and value of the units in tools/systemd, of their drop-ins and of
# what the generator writes: `systemd-analyze verify` reports nothing. Skipped (77) where it is not installed.
set -euo pipefail

command -v systemd-analyze >/dev/null || { echo "skipped: systemd-analyze is not installed"; exit 77; }
units=$(cd "$(dirname "$0")/../../../tools/systemd" && pwd)
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
cp -r "$units"/*.service "$units"/*.socket "$units"/*.d "$scratch"
mkdir "$scratch/etc"
cat >"$scratch/etc/worker-w1.toml" <<'CONFIGURATION'
# http = "127.0.0.1:1"
http = '[::1]:8080' # IPv6
metrics="127.0.0.1:9464"
CONFIGURATION
echo 'http = "/run/leasehold-worker-w2/http.sock"' >"$scratch/etc/worker-w2.toml"
LEASEHOLD_CONFIGURATION=$scratch/etc sh "$units/leasehold-generator" "$scratch"
written=$(cd "$scratch" && grep -h '^ListenStream' leasehold-worker-*@*.socket | xargs)
[ "$written" = 'ListenStream=[::1]:8080 ListenStream=127.0.0.1:9464' ] || { echo "the generator wrote: $written"; exit 1; }
# The programs need not be installed.
sed -i 's|^ExecStart=.*|ExecStart=/bin/true|' "$scratch"/*.service

found=$(systemd-analyze verify --man=no "$scratch"/*.service "$scratch"/*.socket 2>&1) || true
echo "$found"
[ -z "$found" ]
