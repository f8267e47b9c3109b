#!/usr/bin/env bash
# container_engine.sh BUILD: buildah makes both images of the Containerfile, and their programs run as its user.
# The programs of BUILD take the place of the stage that compiles, and a root of mmdebstrap that of Debian's images.
# 77: this machine lacks a program or the right.
set -euo pipefail
build=$1
root=$(cd "$(dirname "$0")/../../.." && pwd)
for program in buildah mmdebstrap; do
  command -v "$program" > /dev/null || { echo "skipped: the program $program is missing"; exit 77; }
done
[[ $(id -u) == 0 ]] || { echo "skipped: only root makes images here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BUILDAH_ISOLATION=chroot
engine() {
  buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"
}

cmake --install "$build" --prefix "$work/context/image/usr" --component main --strip > /dev/null
mmdebstrap --quiet --variant=minbase bookworm "$work/base.tar"
base=$(engine from scratch)
engine add --quiet "$base" "$work/base.tar" / > /dev/null
for tag in bookworm bookworm-slim; do
  engine commit --quiet "$base" "docker.io/library/debian:$tag" > /dev/null
done

# image NAME [OPTION]…: builds an image and prints a container of it.
image() {
  local name=$1
  shift
  engine build --quiet --pull-never --network host --build-context "build=$work/context" "$@" -t "$name" \
    -f "$root/tools/package/container/Containerfile" "$root" > /dev/null
  engine from --pull-never "localhost/$name"
}

gateway=$(image leasehold-gateway --target gateway)
[[ $(engine run "$gateway" -- id -u) == 10001 ]] || { echo "the gateway's image has another user"; exit 1; }
engine run "$gateway" -- leasehold-gateway --version
alone=$(image leasehold)
[[ $(engine run "$alone" -- id -u) == 10001 ]] || { echo "the image has another user"; exit 1; }
text=$(engine run "$alone" -- leasehold-alone --prompt "Once upon a time" --max-tokens 20)
echo "$text"
[[ $text == *little* ]] || { echo "the image tells another story"; exit 1; }
