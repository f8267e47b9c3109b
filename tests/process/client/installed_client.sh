#!/usr/bin/env bash
# Installs the client library below a scratch prefix, builds the installed example as a project of its
# own, by CMake and by pkg-config, and runs it against a broker and a worker: the text is that of
# leasehold-tenant, also when its lease is revoked.
#
#   tests/process/client/installed_client.sh BUILD_DIR
set -euo pipefail
build=$(realpath "$1")
. "$(dirname "$0")/../http/script.sh" "$build/bin"
fail() { echo "$1" >&2; exit 1; }

prefix=$work/prefix
for component in client dev; do
  cmake --install "$build" --prefix "$prefix" --component "$component" >>"$work/install.log" 2>&1
done
library=$(find "$prefix" -name libleasehold-client.so)
example=$prefix/share/doc/libleasehold-client-dev/examples

# The interface is the two classes; nothing of Boost, fmt or this tree's other code is visible.
nm -D --defined-only --demangle "$library" | sed 's/^[^ ]* [^ ]* //' >"$work/symbols"
grep -q '^leasehold::api::Session::connect(' "$work/symbols" || fail "no Session::connect in $library"
! grep -v '^leasehold::api::\(Session\|Stream\)::' "$work/symbols" || fail "$library exports more than its interface"
! grep -E '#include [<"](boost|fmt|spdlog|nlohmann|common|ipc|tools)' -r "$prefix/include" || fail "the header needs more"

cmake -S "$example" -B "$work/story" -DCMAKE_PREFIX_PATH="$prefix" >"$work/story.log" 2>&1
cmake --build "$work/story" >>"$work/story.log" 2>&1
export PKG_CONFIG_PATH=$(dirname "$library")/pkgconfig
"${CXX:-c++}" -std=c++17 -Wall -Wextra -Wpedantic -Werror "$example/story.cpp" -o "$work/story17" \
  $(pkg-config --cflags --libs leasehold-client)
# A program for another minor version is refused when it is configured.
sed 's/LeaseholdClient [0-9.]*/LeaseholdClient 99.0/' "$example/CMakeLists.txt" >"$work/CMakeLists.txt"
cp "$example/story.cpp" "$work"
! cmake -S "$work" -B "$work/newer" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null 2>&1 || fail "version 99 was found"

export LEASEHOLD_BROKER=$work/broker.sock
"$bin/leasehold-broker" --socket "$LEASEHOLD_BROKER" --capacity 64MiB >"$work/broker.log" 2>&1 &
pids+=($!)
wait_for control status
"$bin/leasehold-worker" --broker "$LEASEHOLD_BROKER" --listen "$work/w1.sock" --name w1 \
  --model "$root/tools/models/leasehold-stories-q8_0.gguf" --slow-motion-us 100 >"$work/worker.log" 2>&1 &
pids=($! "${pids[@]}")
wait_for grep "ready name=w1" "$work/worker.log"
control tenants admit ann --max-concurrent 4 --max-blocks 2000 >/dev/null

"$bin/leasehold-tenant" --tenant ann --prompt "Once upon a time" --max-tokens 100 >"$work/expected" 2>"$work/tenant.log"
"$work/story/story" ann 100 >"$work/cmake" 2>"$work/story-1.log"
cmp "$work/expected" "$work/cmake"
LD_LIBRARY_PATH=$(dirname "$library") "$work/story17" ann 100 >"$work/revoked" 2>"$work/story-2.log" &
story=$!
wait_for grep -q . "$work/revoked"
control revoke --tenant ann >/dev/null
wait "$story"
cmp "$work/expected" "$work/revoked"
[ "$(grep -o ' [0-9]*\.[0-9]*' "$work/story-2.log" | wc -l)" = 2 ] || fail "not two leases: $(cat "$work/story-2.log")"
"$work/story/story" eve 2>"$work/refused" && fail "a tenant that was not admitted got a text"
grep -q 'UnknownTenant' "$work/refused"
cat "$work/story-2.log"
