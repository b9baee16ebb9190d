#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One client at standard input and output, which may be one socket, two
# pipes, or files: it is served what others are, and the daemon ends with
# it, whoever hangs up first.

. "$srcdir/harness/functions.sh"
requires /usr/bin/python3 -c 'import nbd' # The distribution's.

random_file disk.img 9000001 1
make_store disk.img vm
store_option=--store=$store

# One socket: what libnbd gives the command that it starts.  Several at
# once do not meet, since there is no control socket.
cat > copy.py <<'END'
import sys, nbd
hs = [nbd.NBD() for _ in range(2)]
for h in hs:
    h.set_export_name("vm")
    h.connect_command(["blobpagerd", sys.argv[1], "--stdio"])
for h in hs:
    size, at = h.get_size(), 0
    with open("copied", "wb") as out:
        while at < size:
            n = min(size - at, 1000003)
            out.write(h.pread(n, at))
            at += n
    h.shutdown()
END
env -u XDG_RUNTIME_DIR /usr/bin/python3 copy.py "$store_option" 2> copy.log
cmp copied disk.img || fail "over one socket"

nbdinfo --size -- [ blobpagerd "$store_option" --stdio ] 2> nbdinfo.log > size
expect_equal "size" 9000001 "$(cat size)"

# Two pipes, as over ssh, with a socket on the client's side.  Its end is
# the end of the client, too.
cat > pipes.py <<'END'
import socket, subprocess, sys, threading

def copy(read, write, close):
    while data := read(1 << 16):
        write(data)
    close()

server = socket.socket(socket.AF_UNIX)
server.bind("pipes")
server.listen()
conn, _ = server.accept()
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, bufsize=0)
to_child = threading.Thread(target=copy, args=(
    conn.recv, child.stdin.write, child.stdin.close))
to_child.start()
copy(child.stdout.read, conn.sendall, lambda: conn.shutdown(socket.SHUT_WR))
to_child.join()
sys.exit(child.wait())
END
python3 pipes.py blobpagerd "$store_option" --stdio 2> pipes.log &
pipes_pid=$!
cleanup_fn stop_process $pipes_pid
wait_until 30 test -S pipes
qemu-img compare -f raw -F raw disk.img "nbd+unix:///vm?socket=$tmp/pipes" ||
  fail "over two pipes"
wait $pipes_pid || fail "exit status $?"

# Files.  All is answered although the input ends long before, and nothing
# else is in the output.
requests ()
{
  python3 - "$1" <<'END'
import struct, sys
out = sys.stdout.buffer
out.write(struct.pack(">I", 3))
out.write(b"IHAVEOPT" + struct.pack(">III", 7, 8, 2) + b"vm\0\0")
for i in range(int(sys.argv[1])):
    out.write(struct.pack(">IHHQQI", 0x25609513, 0, 0, i, i * 90000, 65536))
END
}
requests 100 > requests
blobpagerd "$store_option" --stdio < requests > replies 2> files.log ||
  fail "exit status $?"
expect_replies ()
{
  python3 - "$1" <<'END'
import struct, sys
data = open("replies", "rb").read()
disk = open("disk.img", "rb").read()
assert data[:16] == b"NBDMAGICIHAVEOPT"
at = 18
while True:
    magic, option, kind, n = struct.unpack_from(">QIII", data, at)
    assert magic == 0x3e889045565a9 and option == 7, (magic, option)
    at += 20 + n
    if kind == 1:
        break
seen = set()
while at < len(data):
    magic, error, cookie = struct.unpack_from(">IIQ", data, at)
    assert magic == 0x67446698 and error == 0
    offset = cookie * 90000
    assert data[at + 16:at + 16 + 65536] == disk[offset:offset + 65536]
    at += 16 + 65536
    seen.add(cookie)
assert len(seen) == int(sys.argv[1]), len(seen)
END
}
expect_replies 100

# The output cannot be written.
blobpagerd "$store_option" --stdio < requests 2> full.log > /dev/full ||
  fail "exit status $?"
# Nobody reads it.
(blobpagerd "$store_option" --stdio < requests 2> broken.log; echo $? > status) |
  head -c 1 > /dev/null
expect_equal "exit status" 0 "$(cat status)"

# What fits between us is on its way when everything is answered; it
# arrives, too.
mkfifo in out
requests 3 > few
blobpagerd "$store_option" --stdio --verbose < few > out 2> slow.log &
daemon_pid=$!
cleanup_fn stop_process $daemon_pid
exec 7< out
wait_until 30 grep -q 'the client has gone: stopping' slow.log
cat <&7 > replies
wait $daemon_pid || fail "exit status $?"
expect_replies 3
exec 7<&-

# A client that neither reads nor goes does not outlive --drain.
blobpagerd "$store_option" --stdio --drain=1 < in > out 2> drain.log &
daemon_pid=$!
cleanup_fn stop_process $daemon_pid
exec 6> in 7< out
cat requests >&6
wait_until 30 grep -q ready drain.log
kill $daemon_pid
wait $daemon_pid || fail "exit status $?"

# Its options, and those that are no use.
printf '' | blobpagerd "$store_option" --stdio --control="$tmp/control" \
  > greeting 2> control.log || fail "exit status $?"
expect_fail 2 blobpagerd "$store_option" --stdio --listen=unix:"$tmp/s"
expect_fail 1 blobpagerd --store="$tmp/nowhere" --stdio
blobpagerd "$store_option" --stdio --allow-export=other < requests \
  > replies 2> refused.log || fail "exit status $?"
expect_equal "bytes of a refusal" 1 \
  "$(grep -c 'no such export' replies)"
