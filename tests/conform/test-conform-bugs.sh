#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each check can fail: a little server without a bug passes them all, and
# with a bug it fails those that broken-bugs.h names, which together are all
# that there are.

. "$srcdir/harness/functions.sh"
. "$srcdir/conform/functions.sh"
skip_if_fast
server=$top_builddir/tests/conform/broken-server
server=$(cd "$(dirname "$server")" && pwd)/broken-server

# start_broken BUG [SIZE]: on $dir/sock; returns when it listens.
start_broken ()
{
  coproc broken { exec "$server" "$dir/sock" "$@"; }
  # Its pid as long as it is there; bash forgets it behind our back.
  broken_pid=$broken_PID
  read -r _ <&"${broken[0]}"
}

stop_broken ()
{
  kill "$broken_pid" 2> /dev/null || :
  wait "$broken_pid" 2> /dev/null || :
  rm -f "$dir/sock"
}

# large_reference FILE: what the 5 GiB of a server without a bug are, where
# the check of 64-bit offsets looks.
large_reference ()
{
  start_broken none 5G
  /usr/bin/python3 - "$1" "nbd+unix:///disk?socket=$dir/sock" << 'END'
import nbd, os, sys
h = nbd.NBD ()
h.connect_uri (sys.argv[2])
with open (sys.argv[1], "wb") as f:
    f.truncate (h.get_size ())
    for offset in (0, 2**32 - 4096, 2**32, h.get_size () - 4096):
        os.pwrite (f.fileno (), h.pread (4096, offset), offset)
END
  stop_broken
}

# options_for KIND CHECK...: of the suite, a line each.
options_for ()
{
  local kind=$1 check
  shift
  echo "--strict"
  case $kind in
  '=') ;;
  '~') for check; do echo "--only=${check%%/*}/*"; done ;;
  # What does not answer shall not take long.
  '+') echo "--timeout=1"; for check; do echo "--only=$check"; done ;;
  esac
}

# judge BUG KIND CHECK...: run the suite against it; silent if all is as it
# must be.
judge ()
{
  local bug=$1 kind=$2 scheme=nbd size=() reference=$tmp/disk.img options
  shift 2
  case $bug in
  over-tls*) scheme=nbds ;;
  offset-32-bit) size=(5G) reference=$tmp/large.img ;;
  esac
  mapfile -t options < <(options_for "$kind" "$@")
  start_broken "$bug" "${size[@]}"
  blobpager-nbd-conform "${options[@]}" --reference="$reference" \
    "$scheme+unix:///disk?socket=$dir/sock" > "$dir/tap" 2> "$dir/errors"
  stop_broken
  sed -nE 's/^not ok [0-9]+ - //p' "$dir/tap" | sort > "$dir/got"
  printf '%s\n' "$@" | sed '/^$/d' | sort > "$dir/wanted"
  cmp -s "$dir/wanted" "$dir/got" && grep -q '^1\.\.' "$dir/tap" && return
  echo "bug '$bug' (<: checks that should have failed, >: that did)"
  diff "$dir/wanted" "$dir/got"
  grep -A 12 '^not ok' "$dir/tap" | head -40
  cat "$dir/errors"
}

# judge_every N OF: each OFth row, beginning with the Nth.
judge_every ()
{
  local dir=$tmp/$1 rows
  mkdir -p "$dir"
  mapfile -t rows < <(awk -v n="$1" -v of="$2" 'NR % of == n' bugs)
  for row in "${rows[@]}"; do
    # shellcheck disable=SC2086
    judge $row
  done
}

"$server" --list-bugs > bugs
[ "$(wc -l < bugs)" -gt 150 ] || fail "few bugs"

dir=$tmp
start_broken none
nbdcopy "nbd+unix:///disk?socket=$tmp/sock" disk.img
stop_broken
large_reference large.img

# Every check is turned red by some bug, and no bug names what is none.
cut -d ' ' -f 3- bugs | tr -s ' ' '\n' | sed '/^$/d' | sort -u > red
blobpager-nbd-conform --list | grep '^[^ ]' | sort > all
cmp -s red all || {
  diff all red || :
  fail "checks without a bug (<), or names of none (>)"
}

# Each worker ends with what it found; its servers end with it.
nr_workers=$(($(nproc) > 4 ? 4 : $(nproc)))
for ((i = 0; i < nr_workers; i++)); do
  (set +e; trap 'exit 1' TERM; judge_every "$i" "$nr_workers") \
    > "found.$i" 2> "found.$i.err" &
  workers[i]=$!
  cleanup_fn stop_process $!
done
wait "${workers[@]}"
cat found.*
for ((i = 0; i < nr_workers; i++)); do
  [ ! -s "found.$i" ] || fail "bugs that the suite does not see as it should"
done
