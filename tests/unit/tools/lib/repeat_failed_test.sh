#!/usr/bin/env bash
# Tests tools/lib/repeat_failed on ctest runs made for it. Usage: repeat_failed_test.sh SCRIPT
set -uo pipefail
script=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
result=0

# A test that fails until it ran COUNT times: `failing NAME COUNT`.
failing() {
  cat >> "$dir/CTestTestfile.cmake" <<CMAKE
add_test([==[$1]==] bash -c "echo run >> '$dir/${1//\//_}'; echo 'trace of $1'; [ \$(wc -l < '$dir/${1//\//_}') -gt $2 ]")
CMAKE
}
# run: runs ctest as tools/test does, then the script; stores its output in $output, its exit code in
# $code.
run() {
  ctest --test-dir "$dir" -j 2 --output-on-failure > "$dir/log" 2>&1
  output=$("$script" "$dir" "$dir/log")
  code=$?
}
reset() { rm -rf "${dir:?}"/*; }
check() {  # check WHAT CODE PATTERN
  if [[ $code -ne $2 ]] || ! grep -q "$3" <<< "$output"; then
    echo "$1: exit code $code instead of $2, or no line like '$3' in:"
    echo "$output"
    result=1
  fi
}

reset; failing process/one: 1; failing unit/fine: 0
run; check "a process test that passes when repeated is flaky" 0 '^flaky: process/one:$'
check "the first log of a flaky test is shown" 0 'trace of process/one:'
check "flaky tests are counted" 0 '^flaky tests: 1$'

reset; failing fault/two: 2; run
check "the second repetition counts too" 0 '^flaky: fault/two:$'

reset; failing restart/three: 3; run
check "a test that fails three times fails the run" 1 '^failed: restart/three: (three times)$'

reset; failing unit/pure: 1; run
check "a pure test is never repeated" 1 '^failed: unit/pure: (not repeated'
[[ $(wc -l < "$dir/unit_pure:") -eq 1 ]] || { echo "the pure test ran again"; result=1; }

reset; for i in 1 2 3 4; do failing "process/n$i:" 1; done; run
check "more than three flaky tests fail the run" 1 '^failed: 4 tests'

reset; for i in 1 2 3; do failing "process/n$i:" 1; done; run
check "three flaky tests pass" 0 '^flaky tests: 3$'

exit $result
