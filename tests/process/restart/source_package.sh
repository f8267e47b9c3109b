#!/bin/bash
# Makes a Debian source package of the last commit: its binary packages are those of CPack, its build
# dependencies are those of tools/setup, a distributor's name replaces the maintainer's, and lintian
# accepts it, where it is installed.
#
#   tests/process/restart/source_package.sh BUILD_DIR
#
# Exits with 77 and one line where dpkg-source or the history is missing.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
build=$(realpath "$1")
fail() { echo "$1" >&2; exit 1; }
skip() { echo "skipped: $1"; exit 77; }
command -v dpkg-source >/dev/null || skip "needs dpkg-source (package dpkg-dev)"
git -C "$root" rev-parse -q --verify HEAD >/dev/null 2>&1 || skip "the tree is no git repository"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

DEBFULLNAME='A Distributor' DEBEMAIL=packages@example.net "$root/tools/package/source-package" "$made" >"$made/log" 2>&1 ||
  fail "$(cat "$made/log")"
control=$(echo "$made"/leasehold-*/debian/control)
source=$(echo "$made"/*.dsc)
grep -q '^Maintainer: A Distributor <packages@example.net>$' "$source" || fail "another maintainer: $(cat "$source")"
names_of() { sed -n "$1" "$2" | sort; }
cpack=$(names_of 's/^set(CPACK_DEBIAN_.*_PACKAGE_NAME "\(.*\)")/\1/p' "$build/CPackConfig.cmake")
[ "$(names_of 's/^Package: //p' "$control")" = "$cpack" ] || fail "CPack makes other packages: $cpack"
for dependency in $(sed -n '/^Build-Depends:/,/^Standards/s/^ \([^ ,:]*\).*/\1/p' "$control"); do
  case $dependency in debhelper-compat | dh-python | python3) continue ;; esac
  grep -qw -- "$dependency" "$root/tools/setup" || fail "tools/setup does not install $dependency"
done
! "$root/tools/package/source-package" "$made" no-such-commit 2>"$made/error" || fail "an unknown commit was packaged"
grep -q 'no-such-commit is no commit' "$made/error" || fail "$(cat "$made/error")"
! command -v lintian >/dev/null || lintian --allow-root --fail-on error,warning "$source"
