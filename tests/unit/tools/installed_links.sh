#!/bin/bash
# Tests that each relative link of an installed document names a file of the documentation package, and
# that its anchor is a heading there.
#
#   tests/unit/tools/installed_links.sh BUILD_DIR
set -euo pipefail
build=$1
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
cmake --install "$build" --component doc --prefix "$scratch" >/dev/null

# The anchors that GitHub gives the headings of a document.
anchors() {
  sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

links=0
broken=0
while read -r document; do
  while read -r link; do
    path=${link%%#*}
    target=$document
    [ -z "$path" ] || target=$(dirname "$document")/$path
    links=$((links + 1))
    if [ ! -e "$target" ]; then
      echo "$(basename "$document"): no file $path is installed"
      broken=1
    elif [ "$path" != "$link" ] && ! anchors "$target" | grep -qxF -- "${link#*#}"; then
      echo "$(basename "$document"): no heading for $link"
      broken=1
    fi
  done < <(grep -o ']([^) ]*)' "$document" | sed 's/^](//; s/)$//' | grep -v '^[a-z]*:')
done < <(find "$scratch" -name '*.md')
echo "$links links"
[ "$links" -gt 0 ] && exit $broken
