#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Whoever connects and goes away, at whatever moment of the negotiation,
# costs neither a line in the log nor a question to the driver: exports are
# opened for those who ask for one.

. "$srcdir/harness/functions.sh"

text_file disk.img 100000 1
make_store disk.img disk
port=$(free_port)
start_blobpagerd --store="$store" --profile=off \
  --listen=tcp:127.0.0.1:"$port"
lines=$(wc -l < blobpagerd.log)

python3 - "$sock" "$port" << 'END'
import socket, struct, sys

def connect(i):
    if i % 2:
        s = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    else:
        s = socket.socket(socket.AF_UNIX)
        s.connect(sys.argv[1])
    return s

said = (struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 8, 0) +
        b"IHAVEOPT" + struct.pack(">II", 7, 10) + b"\0\0\0\4disk\0")
for i in range(400):
    s = connect(i)
    if i % 4 > 1:
        s.recv(18)
    s.sendall(said[:i % len(said)]) # Never the whole of GO.
    if i % 8 > 3: # A reset, not an end.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                     struct.pack("ii", 1, 0))
    s.close()

# Another protocol, and one that talks without end.
for text in (b"GET / HTTP/1.0\r\n\r\n", b"\0\0\0\3" + b"SSH-2.0-x\r\n" * 10,
             b"\0\0\0\3IHAVEOPT\0\0\0\7\377\377\377\377"):
    s = connect(1)
    s.settimeout(20)
    s.sendall(text)
    try:
        while s.recv(4096):
            pass
    except ConnectionResetError:
        pass
END
all_have_come ()
{
  [ "$(status 'j["clients"]["connections"]')" -ge 403 ]
}
wait_until 20 all_have_come
expect_equal "lines in the log" "$lines" "$(wc -l < blobpagerd.log)"
expect_equal "exports" "[]" "$(status 'j["exports"]')"
expect_equal "asked of the driver" "0 0" \
  "$(status "'%d %d' % (j['driver']['opens'], j['driver']['reads'])")"
expect_equal "size" 100000 "$(nbdinfo --size "$(uri disk)")"
expect_equal "clients that are left" 0 \
  "$(status 'sum (e["clients"] for e in j["exports"])')"
