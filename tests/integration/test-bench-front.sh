#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The server to compare with serves the right bytes, in the kind of reply
# that the client chose; and the bench measures every cell of its tables.

. "$srcdir/harness/functions.sh"
requires fio --version
requires nbdcopy --version
requires qemu-nbd --version
requires /usr/bin/python3 -c "import nbd" # The distribution's.

random_file disk.img 3000001 1
limit "$tmp/limit" disk.img limit.pid 2> limit.log &
cleanup_fn stop_process $!
wait_until 30 test -e limit.pid
/usr/bin/python3 - "$tmp/limit" << 'END' || fail "limit"
import nbd, sys

disk = open("disk.img", "rb").read()
for structured in (True, False):
    h = nbd.NBD()
    h.set_request_structured_replies(structured)
    h.connect_unix(sys.argv[1])
    assert h.get_structured_replies_negotiated() == structured
    assert h.get_size() == len(disk)
    for offset, length in ((0, 1), (4095, 70000), (len(disk) - 1, 1)):
        assert h.pread(length, offset) == disk[offset:offset + length]
    h.set_strict_mode(0)
    for offset, length in ((len(disk), 1), (2**64 - 1, 2)):
        try:
            h.pread(length, offset)
            sys.exit("a read past the end succeeded")
        except nbd.Error as e:
            assert e.errnum == 22
    assert h.pread(10, 5) == disk[5:15]
    h.shutdown()
END

python3 "$srcdir/bench/bench-front.py" --json --rounds=1 --seconds=0.1 \
  --size=16 > bench.json
expect_equal "rows of reads and of copies" "[5, 3]" \
  "$(json '[len(t) for t in j["tables"]]' < bench.json)"
expect_equal "cells that are not positive numbers" "[]" \
  "$(json '[c for t in j["tables"] for r in t for c in list(r.values())[1:] if not c > 0]' < bench.json)"
expect_equal "targets" 6 "$(json 'len(j["targets"])' < bench.json)"
# As text, and only some rows.
python3 "$srcdir/bench/bench-front.py" --rounds=1 --seconds=0.1 --size=4 \
  --only='depth 16|1 conn' > bench.txt
expect_equal "headings and rows" 4 "$(grep -c '^| [a-z0-9].* |$' bench.txt)"
expect_equal "targets" 4 "$(grep -cE '^(met|NOT MET) ' bench.txt)"

expect_fail 2 python3 "$srcdir/bench/bench-front.py" --rounds=0
expect_fail 2 bash "$srcdir/bench/bench.sh" nope
