# Runs a script in a container that boots systemd on an overlay of this machine's root file system. Read by
# scripts that have two more modes, the function install_files ROOT ARGUMENT, and where the container
# makes files to keep, take_recorded ROOT:
#   SCRIPT inside                Runs in the container; its exit code is the result.
#   SCRIPT boot ARGUMENT SCRATCH Calls `boot`, in a mount namespace of its own.
# All mounts end with that namespace.

die() { echo "$1"; exit 1; }
skip() { echo "skipped: the systemd test $1"; exit 77; }
wait_for() { for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; return 1; }
control() { brokerctl --socket /run/leasehold/broker.sock "$@"; }
ready() { control workers | grep -q ' ready'; }

needs_container() {
  [ "$(id -u)" = 0 ] || skip "needs root"
  command -v systemd-nspawn >/dev/null || skip "needs systemd-nspawn (package systemd-container)"
  unshare --mount true 2>/dev/null || skip "needs a mount namespace"
}

# in_container ARGUMENT: boots this script; its result is the exit code of `inside`.
in_container() {
  local scratch status=0
  scratch=$(mktemp -d)
  unshare --mount --propagation private --fork --kill-child "$0" boot "$1" "$scratch" || status=$?
  rmdir "$scratch"
  return "$status"
}

# systemd-nspawn leaves its empty cgroups behind.
remove_cgroups() {
  local own
  for own in $(cut -d: -f3 /proc/self/cgroup | sort -u); do
    find /sys/fs/cgroup{,/systemd,/unified}"$own"/{payload,supervisor} -depth -type d -exec rmdir {} + || true
  done 2>/dev/null
}

# The unit that runs this script, and what the script reads.
install_self() {
  local root=$1
  mkdir -p "$root/usr/share/leasehold-test"
  install -m 0755 "$0" "$root/usr/share/leasehold-test/inside.sh"
  install -m 0644 "${BASH_SOURCE[0]}" "$root/usr/share/leasehold-test/container.sh"
  cat >"$root/etc/systemd/system/restart-test.service" <<UNIT
[Unit]
SuccessAction=exit
FailureAction=exit
FailureActionExitStatus=1
[Service]
Type=oneshot
TimeoutStartSec=240
ExecStart=/usr/share/leasehold-test/inside.sh inside
StandardOutput=file:/restart-test.log
StandardError=inherit
UNIT
}

# boot ARGUMENT SCRATCH: only in a mount namespace of its own.
boot() {
  local argument=$1 scratch=$2 root=$2/root status=0
  mount -t tmpfs tmpfs "$scratch" && mkdir "$scratch"/{upper,work,root} &&
    mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$root" ||
    skip "cannot mount an overlay of the root file system here"
  install_files "$root" "$argument"
  install_self "$root"
  systemd-nspawn --quiet --directory="$root" --boot --private-network --register=no --keep-unit \
    --console=read-only -- systemd.unit=restart-test.service >"$scratch/console" 2>&1 </dev/null || status=$?
  remove_cgroups
  ! declare -F take_recorded >/dev/null || take_recorded "$root"
  [ -e "$root/restart-test.log" ] ||
    skip "cannot boot a container here: $(tail -n 1 "$scratch/console" | tr -d '\r')"
  cat "$root/restart-test.log"
  return "$status"
}
