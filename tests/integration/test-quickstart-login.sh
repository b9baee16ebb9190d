#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A machine that asks for a login has come up, whatever its qemu says when
# quickstart.sh stops it; one that ends before has not.

. "$srcdir/harness/functions.sh"
export BLOBPAGER_BUILD=$top_builddir
export BLOBPAGER_QUICKSTART_DIR=$tmp/quickstart

# A disk with a boot sector, and a machine that starts from it.
random_file disk.img 100000 1
printf '\x55\xaa' | dd of=disk.img bs=1 seek=510 conv=notrunc status=none
mkdir bin
cat > bin/qemu-system-x86_64 << 'QEMU'
#!/bin/bash
trap 'kill $!; echo "qemu-system-x86_64: terminating on signal 15"; exit' TERM
printf '%s' "$CONSOLE"
[ -n "${ENDS:-}" ] || { sleep 60 & wait; }
QEMU
chmod +x bin/qemu-system-x86_64

# quickstart CONSOLE [VARIABLE=VALUE]...: the machine says CONSOLE.
quickstart ()
{
  env CONSOLE="$1" PATH="$tmp/bin:$PATH" "${@:2}" timeout 120 \
    bash "$top_srcdir/examples/quickstart.sh" disk.img
}

quickstart 'vm login: ' > table.txt 2> err.log ||
  fail "quickstart.sh: $(cat table.txt err.log)"
grep -q '^replaying ' table.txt || fail "no third boot: $(cat table.txt)"

# It says so and ends, with everything that it started.
expect_fail 1 quickstart 'Kernel panic' ENDS=yes
grep -q 'before it was up; see' err.log || fail "it says: $(cat err.log)"
