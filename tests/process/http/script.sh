# Sourced by the scripts of this folder with BIN_DIR as $1.
. "$(dirname "${BASH_SOURCE[0]}")/../../../tools/lib/processes.sh" "$1"

# python_with MODULE [PACKAGE…]: a Python with these packages, or the one of the module's name, from the
# index that pip is configured for, kept below BIN_DIR in the folder of the module.
python_with() {
  local module=$1 venv=$bin/$1-venv
  [[ $# == 1 ]] || shift
  python=$venv/bin/python
  "$python" -c "import $module" 2>/dev/null && return
  python3 -m venv "$venv" >/dev/null 2>&1 || skip "python3 has no venv"
  "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 "$@" \
    >"$work/pip.txt" 2>&1 || skip "pip cannot install $*: $(tail -n 1 "$work/pip.txt")"
}

# put_in_etcd KEY VALUE
put_in_etcd() {
  printf '{"key":"%s","value":"%s"}' "$(printf %s "$1" | base64 -w 0)" "$(printf %s "$2" | base64 -w 0)" |
    curl --silent --fail --unix-socket "$work/etcd:1" http://etcd/v3/kv/put --data @- >/dev/null
}

# start_etcd: for anyone on this machine, with the cell c, in which h1 is a member. $work/cell.toml names it.
start_etcd() {
  (cd "$work" && exec etcd --data-dir etcd --unsafe-no-fsync --listen-client-urls unix://etcd:1 \
    --advertise-client-urls unix://etcd:1 --listen-peer-urls unix://peer:1 \
    --initial-advertise-peer-urls http://127.0.0.1:1 --initial-cluster default=http://127.0.0.1:1 \
    >etcd.log 2>&1) &
  pids=($! "${pids[@]}")
  wait_for put_in_etcd /leasehold/c/hosts/h1 '{"beat":"1","ttl_ms":0}' ||
    die "etcd does not start: $(cat "$work/etcd.log")"
  chmod 0666 "$work/etcd:1"
  printf 'etcd = ["unix:%s"]\ncell = "c"\n' "$work/etcd:1" >"$work/cell.toml"
  chmod 0644 "$work/cell.toml"
}
