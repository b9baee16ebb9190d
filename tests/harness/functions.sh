# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by every shell test:  . "$srcdir/harness/functions.sh"
#
# Gives a private directory $tmp (the current one), cleaned up together
# with every process that was started here, and the verbs below.
# Exit status 77 means skipped.

set -e -u -o pipefail

# Unix socket paths are short: stay near the root of the file system.
tmp=$(mktemp -d "${TMPDIR:-/tmp}/bp.XXXXXX")
cd "$tmp"

cleanup_commands=()
sanitizer_reports='ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|runtime error: '

# cleanup_fn CMD ARG...: run it when the test ends, last added first.
cleanup_fn ()
{
  cleanup_commands=("$(printf '%q ' "$@")" "${cleanup_commands[@]}")
}

run_cleanups ()
{
  local status=$? command
  set +e
  trap - EXIT
  for command in "${cleanup_commands[@]}"; do eval "$command"; done
  if grep -qsE "$sanitizer_reports" "$tmp"/*.log; then
    echo "FAILED: a sanitizer reported"
    status=1
  fi
  if [ $status -ne 0 ] && [ $status -ne 77 ]; then
    for log in "$tmp"/*.log; do
      [ -s "$log" ] && { echo "--- ${log##*/}"; tail -50 "$log"; }
    done
  fi
  cd /
  rm -rf "$tmp"
  exit $status
}
trap run_cleanups EXIT
trap 'exit 1' INT TERM

# fail TEXT...: the test has failed, and why.
fail ()
{
  echo "FAILED: $*"
  exit 1
}

# skip TEXT...
skip ()
{
  echo "skipped: $*"
  exit 77
}

# requires CMD ARG...: skip unless it succeeds.
requires ()
{
  "$@" > /dev/null 2>&1 || skip "needs: $*"
}

# wait_until SECONDS CMD ARG...: until CMD succeeds.
wait_until ()
{
  local end=$((SECONDS + $1))
  shift
  until "$@" 2> /dev/null; do
    [ $SECONDS -lt $end ] || fail "timed out waiting for: $*"
    read -r -t 0.02 <> <(:) || :
  done
}

# stop_process PIDFILE-OR-PID: terminate and reap; harmless if gone.
stop_process ()
{
  local pid=$1
  [ -e "$pid" ] && pid=$(cat "$pid")
  kill "$pid" 2> /dev/null || return 0
  wait_until 20 process_is_gone "$pid"
}

process_is_gone ()
{
  # A zombie of ours is gone, too.
  ! kill -0 "$1" 2> /dev/null || grep -q '^State:.*Z' "/proc/$1/status"
}

# start_blobpagerd ARG...: with a listener $sock and a control socket
# $control; returns when it is ready.  Its log is blobpagerd.log.
start_blobpagerd ()
{
  sock=$tmp/sock control=$tmp/control
  rm -f "$tmp/blobpagerd.pid"
  blobpagerd --listen=unix:"$sock" --control="$control" \
    --pidfile="$tmp/blobpagerd.pid" "$@" 2>> "$tmp/blobpagerd.log" &
  blobpagerd_pid=$!
  cleanup_fn stop_process "$blobpagerd_pid"
  wait_until 30 blobpagerd_is_ready_or_dead
  [ -e "$tmp/blobpagerd.pid" ] || fail "blobpagerd did not start"
}

blobpagerd_is_ready_or_dead ()
{
  [ -e "$tmp/blobpagerd.pid" ] || process_is_gone "$blobpagerd_pid"
}

stop_blobpagerd ()
{
  stop_process "$blobpagerd_pid"
  wait "$blobpagerd_pid"
}

# uri EXPORT: of the daemon that start_blobpagerd started.
uri ()
{
  echo "nbd+unix:///$1?socket=$sock"
}

# free_port: a TCP port that nobody uses just now.
free_port ()
{
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# start_driver ARG...: nbdkit with the plugin on socket $driver; ARGs are
# the plugin's parameters, or nbdkit's options before them.
start_driver ()
{
  driver=$tmp/driver
  rm -f "$tmp/driver.pid" "$driver"
  "${BLOBPAGER_NBDKIT:-nbdkit}" -f -U "$driver" -P "$tmp/driver.pid" \
    "${driver_options[@]}" "$BLOBPAGER_PLUGIN" "$@" \
    2>> "$tmp/driver.log" &
  driver_pid=$!
  cleanup_fn stop_process "$driver_pid"
  wait_until 30 test -e "$tmp/driver.pid"
}
driver_options=()

# random_file FILE BYTES SEED: reproducible incompressible bytes.
random_file ()
{
  openssl enc -aes-128-ctr -nosalt -pbkdf2 -pass "pass:$3" \
    -in /dev/zero 2> /dev/null | head -c "$2" > "$1" || :
  [ "$(stat -c %s "$1")" = "$2" ] || fail "random_file: $1 is short"
}

# text_file FILE BYTES SEED: reproducible compressible bytes.  SEED is a
# number.
text_file ()
{
  { seq "$3" 1000000000 || :; } 2> /dev/null | head -c "$2" > "$1" || :
  [ "$(stat -c %s "$1")" = "$2" ] || fail "text_file: $1 is short"
}

# sha_of FILE
sha_of ()
{
  sha256sum < "$1" | cut -d ' ' -f 1
}

# sha_of_uri URI: of the whole export, copied with nbdcopy.
sha_of_uri ()
{
  nbdcopy "$1" - | sha256sum | cut -d ' ' -f 1
}

# expect_equal WHAT WANTED GOT
expect_equal ()
{
  [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
}

# expect_fail STATUS CMD ARG...: CMD must exit with STATUS; its standard
# error is in err.log.
expect_fail ()
{
  local wanted=$1 got=0
  shift
  "$@" > out.log 2> err.log || got=$?
  [ "$got" = "$wanted" ] || fail "exit status $got, wanted $wanted: $*"
}

# skip_if_fast: in runs that do not repeat the slow tests (sanitizers,
# distcheck).
skip_if_fast ()
{
  [ -z "${BLOBPAGER_TEST_FAST:-}" ] || skip "slow, and this is a fast run"
}

# debian_image DIR [EXTRA-PACKAGE...]: set $debian to a directory with a
# real Debian disk.img, vmlinuz and initrd, made once for all tests of a
# build tree and of all with $BLOBPAGER_TEST_IMAGES.  Read-only.
debian_image ()
{
  local images=${BLOBPAGER_TEST_IMAGES:-$top_builddir/tests/images}
  skip_if_fast
  [ "$(id -u)" = 0 ] || skip "debootstrap needs root"
  requires debootstrap --version
  debian=$images/$1
  shift
  mkdir -p "$images"
  (
    flock 9
    [ -e "$debian/disk.img" ] ||
      bash "$top_srcdir/examples/make-image.sh" "$debian" "$@"
  ) 9> "$debian.lock" || fail "the Debian disk could not be made"
}

# make_store FILE TAG ARG...: import FILE as TAG into $store; sets $root.
make_store ()
{
  local file=$1 tag=$2
  shift 2
  store=$tmp/store
  root=$(blobpager import --store="$store" --name="$tag" "$@" "$file" |
    cut -d ' ' -f 1)
}

# json FILTER: the value that the Python expression FILTER has of the JSON
# object on standard input, named j.
json ()
{
  python3 -c "import json, sys; j = json.load(sys.stdin); print($1)"
}

# status FILTER: of the daemon, as json has it.
status ()
{
  blobpager status --json --control="$control" | json "$1"
}

# flip_bit FILE OFFSET: one bit of that byte.
flip_bit ()
{
  python3 - "$1" "$2" << 'END'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2]))
    byte = f.read(1)[0]
    f.seek(int(sys.argv[2]))
    f.write(bytes([byte ^ 4]))
END
}
