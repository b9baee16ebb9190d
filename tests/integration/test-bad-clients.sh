#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Bad clients of the real daemon: each gets one clear error or is closed,
# the daemon lives, and a good client beside them notices nothing.

. "$srcdir/harness/functions.sh"
requires python3 --version
requires nbdcopy --version

text_file disk.img 20000001 1
make_store disk.img vm
start_blobpagerd --store="$store" --profile=off --cache-size=64M

cat > client.py <<'PYTHON'
import socket, struct, sys, time

def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(sys.argv[1])
    assert len(receive(s, 18)) == 18
    s.sendall(struct.pack(">I", 3))
    return s

def receive(s, n):
    data = b""
    while len(data) < n:
        piece = s.recv(n - len(data))
        if not piece:
            break
        data += piece
    return data

def option(s, number, data, length=None):
    s.sendall(b"IHAVEOPT" + struct.pack(
        ">II", number, len(data) if length is None else length) + data)

def option_end(s):
    while True:
        _, _, kind, n = struct.unpack(">QIII", receive(s, 20))
        assert n < 256 # No matter what it is that is refused,
        text = receive(s, n)
        if kind != 3: # and fit for a terminal.
            assert all(byte >= 32 and byte != 127 for byte in text), text
            return kind

def attach():
    s = connect()
    option(s, 7, struct.pack(">I", 2) + b"vm" + struct.pack(">H", 0))
    assert option_end(s) == 1
    return s

def request(s, kind, offset, length, flags=0, payload=b""):
    s.sendall(struct.pack(">IHHQQI", 0x25609513, flags, kind, 42, offset,
                          length) + payload)
    magic, error, cookie = struct.unpack(">IIQ", receive(s, 16))
    assert magic == 0x67446698 and cookie == 42
    return error

def goes_on(s):
    assert request(s, 0, 19999000, 1001) == 0
    assert receive(s, 1001) == open("disk.img", "rb").read()[19999000:]

SIZE = 20000001
s = attach()
for offset, length, flags in ((SIZE, 1, 0), (SIZE - 1, 2, 0), (0, 0, 0),
                              (0, 2**32 - 1, 0), (2**64 - 1, 2**32 - 1, 0),
                              (0, 512, 1), (0, 512, 0x8000)):
    assert request(s, 0, offset, length, flags) == 22, (offset, length)
    goes_on(s)
assert request(s, 1, 0, 32 << 20, payload=b"w" * (32 << 20)) == 1
assert request(s, 4, 0, 4096) == 1
assert request(s, 6, 0, 4096) == 1
assert request(s, 3, 0, 0) == 22
assert request(s, 99, 0, 512) == 22
goes_on(s)
s.sendall(b"\0" * 28)
assert receive(s, 1) == b""

s = connect()
option(s, 7, b"", 2**32 - 1)
assert receive(s, 1) == b""
s = connect()
option(s, 999, b"")
assert option_end(s) == 0x80000001
option(s, 7, b"\xff" * 7)
assert option_end(s) == 0x80000003
for name in (b"../x", b"n", b"n" * 128, b"n" * 255, b"n" * 4096, b"\x1b[31m",
             b"\n" * 100, b"\xff\xfe", b"@", b"n@", b"blob/", b"blob/" * 60):
    for number in 6, 7:
        option(s, number, struct.pack(">I", len(name)) + name + b"\0\0")
        assert option_end(s) == 0x80000006, name

# A client that asks for five times the cache's share for replies, and
# does not read until the others have copied the disk once more.
s = attach()
for i in range(80):
    s.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 0, i, i << 17, 1 << 20))
copies = int(open("copies").read())
end = time.monotonic() + 60
while int(open("copies").read()) < copies + 2:
    assert time.monotonic() < end, "the others wait for one that is slow"
    time.sleep(0.01)
disk = open("disk.img", "rb").read()
for i in range(80):
    magic, error, cookie = struct.unpack(">IIQ", receive(s, 16))
    assert magic == 0x67446698 and error == 0
    assert receive(s, 1 << 20) == disk[cookie << 17:(cookie << 17) + (1 << 20)]

# A client that sends half an option and waits.
if len(sys.argv) > 2:
    s = connect()
    start = time.monotonic()
    option(s, 7, b"half", 100)
    assert receive(s, 1) == b""
    assert 9.9 < time.monotonic() - start < 15
PYTHON

# The good client: copies for as long as the bad ones are at it.
copy_until_told ()
{
  local copies=0
  until [ -e told ]; do
    nbdcopy "$(uri vm)" - | cmp - disk.img || return 1
    copies=$((copies + 1))
    echo $copies > copies.new
    mv copies.new copies
  done
}
echo 0 > copies
copy_until_told &
good=$!

wait_for_half_option=yes
[ -z "${BLOBPAGER_TEST_FAST:-}" ] || wait_for_half_option=
python3 client.py "$sock" $wait_for_half_option || fail "a bad client"
touch told
wait $good || fail "the good client noticed"

# Probes of a port are normal: no line in the log.
expect_equal "lines in the log about clients" 0 \
  "$(grep -c client blobpagerd.log || :)"
stop_blobpagerd || fail "blobpagerd's exit status"
