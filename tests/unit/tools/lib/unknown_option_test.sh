#!/usr/bin/env bash
# Tests that a script of tools/ refuses an option that its program lacks, before it builds anything.
# Usage: unknown_option_test.sh ROOT
set -uo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/tests/checks"
cp -r "$1"/tests/checks/{bench,cell,demo,hosts,peer,perplexity,report,soak} "$dir/tests/checks"
mkdir "$dir/tools"
cp -r "$1"/tools/{bench,demo,lib,perplexity,soak} "$dir/tools"
# The first step of a build, which fails here.
printf '#!/bin/sh\necho builds >&2\nexit 1\n' > "$dir/tools/setup"
chmod +x "$dir/tools/setup"
result=0

check() {  # check CODE PATTERN SCRIPT ARGUMENT...
  local output code
  output=$("$dir/tools/$3" "${@:4}" 2>&1)
  code=$?
  if [[ $code -ne $1 || $output != $2 ]]; then
    echo "tools/${*:3}: exit code $code instead of $1, or not '$2': $output"
    result=1
  fi
}

refused() {  # refused SCRIPT ARGUMENT...
  check 2 '*: there is no option --nope; --help lists them' "$@" --nope
  check 2 '*: there is no option --nope; --help lists them' "$@" --nope=3
  check 2 '*: there is no option --No_pe; --help lists them' "$@" --No_pe
}

refused bench serve
refused bench engine --peer "$dir"
refused bench cell --long
refused demo
refused soak
refused perplexity
check 1 builds bench serve --rounds 3 --only tick --out="$dir"
check 1 builds bench engine --peer "$dir" --threads 1
check 1 builds bench cell --samples 3
check 1 builds demo --plain --out "$dir"
check 1 builds soak --kills=3 --no-store
check 1 builds perplexity --window 8 --peer "$dir"

exit $result
