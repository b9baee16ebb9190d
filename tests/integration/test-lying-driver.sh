#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A driver that lies where no digest can tell: about the size of its
# exports, which must not make the daemon refuse its own commands; and once
# about the size of a blob, which must not outlast the lie.

. "$srcdir/harness/functions.sh"
requires python3 --version
requires nbdcopy --version

text_file disk.img 3000000 1
make_store disk.img vm --compress=none
start_driver store="$store"

# liar.py SOCKET TARGET LIE ROOT: between daemon and driver.  ROOT is the
# image's; the size of an index is the driver's word.
cat > liar.py <<'PYTHON'
import socket, struct, sys, threading

lie = sys.argv[3]
told = set()

def receive(s, n):
    data = s.recv(n, socket.MSG_WAITALL) if n else b""
    if len(data) < n:
        raise EOFError
    return data

# Says that the export has 4096 bytes, is read-only, and wants large blocks.
def negotiate(client, driver):
    client.sendall(receive(driver, 18))
    driver.sendall(receive(client, 4))
    kind = 0
    while kind != 1:
        header = receive(client, 16)
        driver.sendall(header + receive(client, header[15]))
        kind = 3
        while kind == 3:
            header = receive(driver, 20)
            kind, n = struct.unpack(">II", header[12:])
            data = receive(driver, n)
            if lie == "export" and kind == 3 and data[:2] == b"\0\0":
                data = struct.pack(">HQH", 0, 4096, 3)
            client.sendall(header + data)

def pass_requests(client, driver, asked):
    try:
        while True:
            header = receive(client, 28)
            kind, cookie, offset, n = struct.unpack(">6xHQQI", header)
            data = receive(client, n) if kind == 1 else b""
            if (kind == 1 and data[:4] == b"\2\0\0\0" and
                    data[16:48].hex() != sys.argv[4]):
                told.add((driver, offset))
            asked[cookie] = kind, offset, n
            driver.sendall(header + data)
    except (EOFError, OSError):
        driver.shutdown(socket.SHUT_RDWR)

# Once the first blob of an OPEN is said to be 1 byte longer.
lies_left = [1]
def reply(driver, offset, data):
    if lie == "blob" and data and (driver, offset) in told and lies_left[0]:
        told.remove((driver, offset))
        lies_left[0] -= 1
        size = struct.unpack_from("<Q", data, 24)[0] + 1
        data = data[:24] + struct.pack("<QQ", size, size) + data[40:]
    return data

def serve(client):
    driver = socket.socket(socket.AF_UNIX)
    driver.connect(sys.argv[2])
    asked = {}
    try:
        negotiate(client, driver)
        threading.Thread(target=pass_requests, daemon=True,
                         args=(client, driver, asked)).start()
        while True:
            header = receive(driver, 16)
            error, cookie = struct.unpack(">4xIQ", header)
            kind, offset, n = asked.pop(cookie)
            data = receive(driver, n) if kind == 0 and not error else b""
            client.sendall(header + reply(driver, offset, data))
    except (EOFError, OSError):
        client.shutdown(socket.SHUT_RDWR)

listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
while True:
    threading.Thread(target=serve, args=listener.accept()[:1],
                     daemon=True).start()
PYTHON

for lie in export blob; do
  python3 liar.py "$tmp/liar.$lie" "$driver" $lie "$root" 2> liar.$lie.log &
  cleanup_fn stop_process $!
  wait_until 10 test -S "$tmp/liar.$lie"
  start_blobpagerd --driver="nbd+unix:///?socket=$tmp/liar.$lie" \
    --profile=off --driver-timeout=5
  expect_equal "$lie" "$(sha_of disk.img)" "$(sha_of_uri "$(uri vm)")"
  told=0
  [ $lie = export ] || told=1
  expect_equal "lies noticed" $told "$(status 'j["driver"]["errors"]')"
  stop_blobpagerd
done
