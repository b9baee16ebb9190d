#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# nbdkit with a sanitizer's runtime, for the plugin of a sanitizer build.
# ./run sets both variables.  nbdkit itself does not free everything it
# allocates at exit, so leaks are not looked for here.
exec env LD_PRELOAD="$BLOBPAGER_SANITIZER_RUNTIME" \
  ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}" \
  "$BLOBPAGER_REAL_NBDKIT" "$@"
