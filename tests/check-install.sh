#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# check-install.sh DESTDIR: what make install must have put there.

set -eu
destdir=$1

# installed PATH: the end of one.
installed ()
{
  local found
  found=$(find "$destdir" -path "*$1" | head -n 1)
  [ -n "$found" ] || { echo "not installed: $1" >&2; exit 1; }
}

installed /bin/blobpager
installed /bin/blobpager-nbd-conform
installed /sbin/blobpagerd
installed /nbdkit/plugins/nbdkit-blobpager-plugin.so
for page in man1/blobpager.1 man1/blobpager-nbd-conform.1 \
  man1/nbdkit-blobpager-plugin.1 \
  man5/blobpager-profile.5 man5/blobpager-store.5 \
  man7/blobpager-session.7 man8/blobpagerd.8; do
  installed "/$page"
done
installed /examples/quickstart.sh

# The plugin exports nbdkit's entry point and its debug flag, no more.
plugin=$(find "$destdir" -name nbdkit-blobpager-plugin.so)
exported=$(nm -D --defined-only "$plugin" | awk '{ print $3 }' | sort | xargs)
[ "$exported" = "blobpager_debug_keys plugin_init" ] ||
  { echo "the plugin exports: $exported" >&2; exit 1; }
