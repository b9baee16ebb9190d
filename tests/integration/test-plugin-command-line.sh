#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The plugin's parameters are those that its help names; it refuses what
# it cannot use with one line, and exports only what nbdkit looks up.

. "$srcdir/harness/functions.sh"
nbdkit=${BLOBPAGER_NBDKIT:-nbdkit}
requires "$nbdkit" --version

# refused WORDS PARAMETER...: nbdkit does not start and says WORDS.
refused ()
{
  local words=$1
  shift
  expect_fail 1 "$nbdkit" -U - "$BLOBPAGER_PLUGIN" "$@" --run true
  grep -q "error: .*$words" err.log || fail "$*: does not say '$words'"
}

"$nbdkit" "$BLOBPAGER_PLUGIN" --help > help.log
for parameter in store= profiles=; do
  grep -q "^$parameter" help.log || fail "--help lacks $parameter"
done
"$nbdkit" "$BLOBPAGER_PLUGIN" --dump-plugin > dump.log
for line in name=blobpager thread_model=parallel blobpager_session_version=1; do
  grep -qx "$line" dump.log || fail "--dump-plugin lacks $line"
done

text_file disk.img 100000 1
make_store disk.img disk
refused "store=DIR is needed"
refused "realpath" store="$tmp/nowhere"
refused "must be rw or ro" store="$store" profiles=maybe
refused "unknown parameter 'replay'" store="$store" replay=boot
refused "store" store="$tmp/disk.img"
mkdir empty
refused "store" store="$tmp/empty"
"$nbdkit" -U - "$BLOBPAGER_PLUGIN" store="$store" profiles=ro --run true

expect_equal "exported symbols" plugin_init \
  "$(nm -D --defined-only "$BLOBPAGER_PLUGIN" | awk '{ print $3 }' |
    grep -vE '^(__odr_asan|blobpager_debug_)' | xargs)"
