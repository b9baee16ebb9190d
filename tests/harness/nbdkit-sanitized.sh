#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# nbdkit with a sanitizer's runtime, for the plugin of a sanitizer build.
# ./run sets both variables.  nbdkit itself does not free everything it
# allocates at exit, so leaks are not looked for here, and one of its
# filters asks for more memory than there is, and is refused.
asan=detect_leaks=0:allocator_may_return_null=1
tsan=allocator_may_return_null=1:suppressions=${0%/*}/nbdkit.supp
exec env LD_PRELOAD="$BLOBPAGER_SANITIZER_RUNTIME" \
  ASAN_OPTIONS="$asan${ASAN_OPTIONS:+:$ASAN_OPTIONS}" \
  TSAN_OPTIONS="$tsan${TSAN_OPTIONS:+:$TSAN_OPTIONS}" \
  "$BLOBPAGER_REAL_NBDKIT" "$@"
