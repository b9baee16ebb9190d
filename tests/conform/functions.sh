# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by the tests of the conformance suite, after harness/functions.sh.

# conform ARG...: run the suite with --strict; what it prints is in
# $tmp/tap, its exit status in $conform_status.
conform ()
{
  conform_status=0
  blobpager-nbd-conform --strict "$@" > "$tmp/tap" 2> "$tmp/conform.log" ||
    conform_status=$?
}

# not_ok: the names of the checks that failed, in order of the alphabet.
not_ok ()
{
  sed -nE 's/^not ok [0-9]+ - //p' "$tmp/tap" | sort
}

# expect_all_ok WHAT
expect_all_ok ()
{
  [ "$conform_status" = 0 ] && [ -z "$(not_ok)" ] && return
  cat "$tmp/conform.log"
  grep -A 24 '^not ok' "$tmp/tap" || :
  fail "$1: the suite's exit status is $conform_status"
}

# expect_not_ok WHAT NAME...: exactly these checks failed.
expect_not_ok ()
{
  local what=$1 wanted
  shift
  wanted=$(printf '%s\n' "$@" | sort)
  [ "$(not_ok)" = "$wanted" ] && return
  cat "$tmp/conform.log"
  diff <(echo "$wanted") <(not_ok) || :
  grep -A 24 '^not ok' "$tmp/tap" || :
  fail "$what: other checks failed than expected"
}

# disk_image FILE: data and holes, of a size that is no multiple of a block.
disk_image ()
{
  truncate -s 4194817 "$1"
  random_file part 70000 1
  dd if=part of="$1" conv=notrunc status=none
  dd if=part of="$1" conv=notrunc status=none bs=1 seek=200001
  dd if=part of="$1" conv=notrunc status=none bs=1M seek=2
  dd if=part of="$1" conv=notrunc status=none bs=1 seek=4124817
}

# serve_nbdkit ARG...: nbdkit on $tmp/nbdkit.sock, instead of the one before.
serve_nbdkit ()
{
  [ ! -e "$tmp/nbdkit.pid" ] || stop_process "$tmp/nbdkit.pid"
  rm -f "$tmp/nbdkit.pid" "$tmp/nbdkit.sock"
  env -u LD_PRELOAD "$nbdkit" -f -U "$tmp/nbdkit.sock" \
    -P "$tmp/nbdkit.pid" "$@" 2>> "$tmp/nbdkit.err" &
  cleanup_fn stop_process $!
  wait_until 30 test -e "$tmp/nbdkit.pid"
}
nbdkit=${BLOBPAGER_REAL_NBDKIT:-$BLOBPAGER_NBDKIT}
