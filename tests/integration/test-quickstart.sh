#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The README's first command works: a real VM boots without a profile, is
# recorded, and boots again from its profile, waiting for its disk at most
# a tenth of the time.  A disk that does not boot is read whole.

. "$srcdir/harness/functions.sh"
requires qemu-system-x86_64 --version
debian_image debian-1
export BLOBPAGER_BUILD=$top_builddir
export BLOBPAGER_QUICKSTART_DIR=$tmp/quickstart

bash "$top_srcdir/examples/quickstart.sh" "$debian/disk.img" > table.txt ||
  { cat table.txt; fail "quickstart.sh"; }
cat table.txt
grep -q '^replaying ' table.txt || fail "no third boot"

random_file plain.raw 3000001 1
bash "$top_srcdir/examples/quickstart.sh" plain.raw > whole.txt ||
  { cat whole.txt; fail "quickstart.sh plain.raw"; }
grep -q 'read whole instead' whole.txt || fail "it does not say so"
grep -q '^replaying ' whole.txt || fail "no third read"
