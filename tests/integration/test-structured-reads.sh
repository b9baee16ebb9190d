#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What libnbd makes of structured reads of a real image: data and holes
# where they are, DF, and an error at the offset of the bad window with all
# that precedes it; a client with simple replies beside it.

. "$srcdir/harness/functions.sh"
requires /usr/bin/python3 -c 'import nbd' # The distribution's.

# Data, a hole of 1 MiB, data, and a hole that is too short to pay for.
random_file disk.img 1000000 1
truncate -s 2097152 disk.img
random_file more 3000000 2
cat more >> disk.img
truncate -s 5103616 disk.img
cat more >> disk.img
make_store disk.img disk --compress=none

cat > client.py <<'EOF'
import errno, nbd, sys

uri, path, mode = sys.argv[1:]
image = open(path, "rb").read()

def connect(structured=True):
    h = nbd.NBD()
    h.set_request_structured_replies(structured)
    h.connect_uri(uri)
    assert h.get_structured_replies_negotiated() == structured
    assert h.can_df() == structured
    return h

class Read:
    """A read of COUNT bytes at OFFSET: what came of it."""
    def __init__(self, h, count, offset, flags=0):
        self.chunks, self.errors = [], []
        self.failed = None
        try:
            h.pread_structured(count, offset, self.chunk, flags)
        except nbd.Error as e:
            self.failed = e.errnum

    def chunk(self, buf, offset, status, error):
        if status == nbd.READ_ERROR:
            self.errors.append(offset)
            return
        assert buf == image[offset:offset + len(buf)], (offset, len(buf))
        self.chunks.append((offset, len(buf), status == nbd.READ_HOLE))

    def covers(self, start, end):
        pos = start
        for offset, length, _ in sorted(self.chunks):
            assert offset == pos, (offset, pos)
            pos += length
        assert pos == end, (pos, end)

    def holes(self):
        return sum(length for _, length, is_hole in self.chunks if is_hole)

h = connect()
if mode == "sound":
    for offset, count in (0, len(image)), (12345, 3333333), (1, 1):
        r = Read(h, count, offset)
        assert not r.failed
        r.covers(offset, offset + count)
    hole = 2097152 - 1003520  # From where a block begins.
    assert Read(h, len(image), 0).holes() == hole
    r = Read(h, len(image), 0, nbd.CMD_FLAG_DF)
    assert r.chunks == [(0, len(image), False)], r.chunks
    simple = connect(False)
    for offset in range(0, len(image) - 99999, 99999):
        assert h.pread(99999, offset) == simple.pread(99999, offset)
else:
    r = Read(h, len(image), 0)
    assert r.failed == errno.EIO
    bad = min(r.errors)
    print(bad)
    assert 2097152 <= bad < len(image)
    r = Read(h, len(image) - bad, bad)
    assert r.failed == errno.EIO and r.errors[0] == bad
    r = Read(h, bad + 1, 0)
    assert r.failed == errno.EIO and r.errors == [bad]
    r.covers(0, bad)
    r = Read(h, bad + 1, 0, nbd.CMD_FLAG_DF)
    assert r.failed == errno.EIO and r.errors == [bad] and not r.chunks
    assert Read(h, bad, 0).failed is None
h.shutdown()
EOF

start_blobpagerd --store="$store" --profile=off
/usr/bin/python3 client.py "$(uri disk)" disk.img sound
stop_blobpagerd

flip_bit store/packs/*.pack 2500000
start_blobpagerd --store="$store" --profile=off
/usr/bin/python3 client.py "$(uri disk)" disk.img corrupt > bad.log
"$top_builddir/tests/harness/read-map" "$(uri disk)" 4096 > map.log
expect_equal "where it is bad first" \
  "$(grep EIO map.log | head -1 | cut -d ' ' -f 1)" "$(cat bad.log)"
stop_blobpagerd
