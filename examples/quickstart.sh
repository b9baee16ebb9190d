#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# quickstart.sh [IMAGE]: watch a VM start from blobpager three times.
#
# From a fresh clone on a fresh Debian: installs missing packages (as
# root), builds, takes IMAGE or makes a real Debian disk, imports it, puts
# the driver 20 ms away, and boots the disk under qemu without a profile,
# while it is recorded, and replaying what was recorded; the daemon starts
# anew, with an empty cache, before each.  An IMAGE that does not boot is
# read whole instead.
#
# Exits 0 if every boot reached its end and the replayed one waited for
# its disk at most a tenth of the time that the first one did.
#
#   BLOBPAGER_QUICKSTART_DIR   where image and store go
#                              (build/quickstart in the source tree)
#   BLOBPAGER_BUILD            the build tree (build in the source tree)
#   BOOT_TIMEOUT               seconds a boot may take (300)
#   RTT_MS                     how far away the driver is (20)

set -euo pipefail
case ${1:-} in
-h | --help) sed -n '3,/^$/s/^# \{0,1\}//p' "$0"; exit 0 ;;
-*) echo "usage: quickstart.sh [IMAGE]" >&2; exit 2 ;;
esac
[ $# -le 1 ] || { echo "usage: quickstart.sh [IMAGE]" >&2; exit 2; }

image=${1:+$(realpath -- "$1")}
top=$(cd "$(dirname "$0")/.." && pwd)
build=${BLOBPAGER_BUILD:-$top/build}
dir=${BLOBPAGER_QUICKSTART_DIR:-$build/quickstart}
store=$dir/store
boot_timeout=${BOOT_TIMEOUT:-300}
rtt_ms=${RTT_MS:-20}
pids=()

die () { echo "quickstart.sh: $*" >&2; exit 1; }

stop ()
{
  kill "$1" 2> /dev/null || return 0
  wait "$1" 2> /dev/null || :
}

# The last started first: nbdkit ends when its clients have gone.
clean_up ()
{
  local i
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do stop "${pids[i]}"; done
  rm -rf "$run_dir"
}
# Unix socket paths are short, so they do not live beside the store.
run_dir=$(mktemp -d)
trap clean_up EXIT
trap 'exit 1' INT TERM

# until_file PATH PID WHAT: PID makes PATH when it is ready.
until_file ()
{
  until [ -e "$1" ]; do
    kill -0 "$2" 2> /dev/null || die "$3 did not start; see $dir/$3.log"
    sleep 0.05
  done
}

## 1. Packages and build.

if [ "$(id -u)" = 0 ]; then
  echo "Packages …"
  "$top/tests/packages.sh" --build --install > "$run_dir/apt.log" 2>&1 ||
    { tail -5 "$run_dir/apt.log" >&2; die "the packages could not be installed"; }
else
  "$top/tests/packages.sh" --build --check || exit 1
fi

mkdir -p "$build" "$dir"
echo "Build …"
{
  [ -x "$top/configure" ] || (cd "$top" && autoreconf -fi)
  [ -e "$build/config.status" ] || (cd "$build" && "$top/configure")
  make -C "$build" -j"$(nproc)" all
} > "$dir/build.log" 2>&1 ||
  { tail -20 "$dir/build.log" >&2; die "the build failed; see $dir/build.log"; }
# From here on, as ./run does it for one command.
eval "$(sed -n '/^b=/,/^export/p' "$build/run")"

## 2. The image.

if [ -z "$image" ]; then
  image=$dir/image/disk.img
  if [ ! -e "$image" ]; then
    [ "$(id -u)" = 0 ] ||
      die "making a Debian disk needs root; or give an IMAGE"
    echo "A real Debian disk, about a minute …"
    "$top/examples/make-image.sh" "$dir/image"
  fi
fi
[ -r "$image" ] || die "$image: cannot be read"

# What a machine needs beside the disk: a kernel that lies beside it, or
# a boot sector on it.
qemu_args=(-machine accel=tcg -cpu max -nographic -no-reboot -net none)
if [ -e "$(dirname "$image")/vmlinuz" ] && [ -e "$(dirname "$image")/initrd" ]; then
  boots=yes
  qemu_args+=(-kernel "$(dirname "$image")/vmlinuz"
    -initrd "$(dirname "$image")/initrd"
    -append "console=ttyS0 root=/dev/vda ro quiet")
elif [ "$(od -An -tx1 -j510 -N2 "$image" 2> /dev/null | tr -d ' ')" = 55aa ]; then
  boots=yes
else
  boots=
  echo "$(basename "$image") has no boot sector: it is read whole instead."
fi

tag=quickstart
rm -rf "$store"
echo "Import …"
blobpager import --store="$store" --name="$tag" "$image"
root=$(blobpager info --store="$store" --json "$tag" |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["root"])')
export="$tag@$root"

## 3. The driver, 20 ms away.

"$BLOBPAGER_NBDKIT" -f -U "$run_dir/driver" -P "$run_dir/driver.pid" \
  "$BLOBPAGER_PLUGIN" store="$store" 2> "$dir/driver.log" &
pids+=($!)
until_file "$run_dir/driver.pid" $! driver
lagsim "$run_dir/far" "$run_dir/driver" "$rtt_ms" 2> "$dir/lagsim.log" &
pids+=($!)
until_file "$run_dir/far" $! lagsim

start_daemon ()
{
  rm -f "$run_dir/pid"
  blobpagerd --driver="nbd+unix:///session?socket=$run_dir/far" \
    --listen=unix:"$run_dir/sock" --control="$run_dir/control" \
    --pidfile="$run_dir/pid" "$@" 2>> "$dir/blobpagerd.log" &
  daemon=$!
  pids+=("$daemon")
  until_file "$run_dir/pid" "$daemon" blobpagerd
}

## 4. Three starts.

# boot NUMBER: run the machine until it powers off or asks for a login.
# Whether it does is settled before it is stopped: what qemu says about
# that goes to the console, too, behind the prompt.
boot ()
{
  local console=$run_dir/console vm asks='' end=$((SECONDS + boot_timeout))
  : > "$console"
  "$top/examples/vm-plain.sh" "$run_dir/sock" "$export" "${qemu_args[@]}" \
    < /dev/null > "$console" 2>&1 &
  vm=$!
  pids+=("$vm")
  while jobs -rp | grep -qx "$vm" && [ $SECONDS -lt "$end" ]; do
    ! grep -aqE ' login: ?$' "$console" || { asks=yes; break; }
    ! grep -aq 'No bootable device' "$console" || break
    sleep 0.1
  done
  stop "$vm"
  cp "$console" "$dir/console-$1.log"
  [ -n "$asks" ] || grep -aq BOOT-DONE "$console"
}

read_whole ()
{
  nbdcopy "nbd+unix:///$export?socket=$run_dir/sock" null:
}

# start_once NUMBER NAME DAEMON-ARG...
start_once ()
{
  local number=$1 name=$2 before after
  shift 2
  start_daemon "$@"
  if [ "$name" = recording ]; then
    blobpager profile start "$tag" --export="$tag" --until-exit \
      --control="$run_dir/control"
  fi
  [ ! -t 1 ] || printf '%s …\r' "$name"
  before=$(date +%s.%N)
  if [ -n "$boots" ]; then
    boot "$number" ||
      die "$name: the VM ended or $boot_timeout s passed before it was up; see $dir/console-$number.log"
  else
    read_whole
  fi
  after=$(date +%s.%N)
  if [ "$name" = recording ]; then
    blobpager profile stop "$tag" --control="$run_dir/control" > "$run_dir/stopped"
    records=$(awk '{ print $3 }' "$run_dir/stopped")
  fi
  blobpager status --json --control="$run_dir/control" > "$dir/status-$number.json"
  python3 - "$dir/status-$number.json" "$name" "$before" "$after" "$tag" \
    "${records:--}" "$run_dir/stall-$number" << 'PYTHON'
import json, sys
path, name, before, after, tag, records, stall_file = sys.argv[1:]
s = json.load(open(path))
stall = sum(e["stall_seconds"] for e in s["exports"])
row = (name, float(after) - float(before), stall,
       s["driver"]["bytes"] / 2**20, s["driver"]["opens"], records)
print("%-18s %8.1f %8.2f %12.1f %8d %9s" % row, flush=True)
open(stall_file, "w").write(str(stall))
PYTHON
  stop "$daemon"
}

echo
printf '%-18s %8s %8s %12s %8s %9s\n' "start" "seconds" "stall s" \
  "MiB fetched" "opened" "records"
start_once 1 "without a profile" --profile=off
start_once 2 "recording" --profile=off
start_once 3 "replaying"

echo
echo "The store is $store. To play with it:"
echo "  ./build/run blobpagerd --store=$store --listen=unix:/tmp/bp.sock --control=/tmp/bp.control"
echo "  ./build/run blobpager ls --store=$store"
echo "  nbdinfo 'nbd+unix:///$tag?socket=/tmp/bp.sock'"

[ -n "$boots" ] || exit 0
python3 - "$run_dir/stall-1" "$run_dir/stall-3" << 'PYTHON'
import sys
first, replayed = (float(open(p).read()) for p in sys.argv[1:])
if replayed > first / 10:
    sys.exit("quickstart.sh: the replayed boot waited %.2f s for its disk, "
             "more than a tenth of %.2f s" % (replayed, first))
PYTHON
