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
