# Sourced by the scripts of this folder with BIN_DIR as $1.
. "$(dirname "${BASH_SOURCE[0]}")/../../../tools/lib/processes.sh" "$1"

# python_with PACKAGE…: a Python with these packages from the index that pip is configured for, kept
# below BIN_DIR in the folder of the first one.
python_with() {
  local venv=$bin/$1-venv
  python=$venv/bin/python
  "$python" -c "import $1" 2>/dev/null && return
  python3 -m venv "$venv" >/dev/null 2>&1 || skip "python3 has no venv"
  "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 "$@" \
    >"$work/pip.txt" 2>&1 || skip "pip cannot install $1: $(tail -n 1 "$work/pip.txt")"
}
