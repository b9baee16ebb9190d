#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""control-talk.py SOCKET: send standard input to a control socket and
print what it answers, until it closes the connection.

With a number of bytes as second argument, send that many of "[" instead.
"""
import socket
import sys
import threading


def send(sock, count):
    """All of it, or until the other end has had enough."""
    try:
        if count is None:
            sock.sendall(sys.stdin.buffer.read())
        else:
            block = b"[" * (1 << 20)
            while count > 0:
                count -= sock.send(block[:count])
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def main():
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else None
    sender = threading.Thread(target=send, args=(sock, count))
    sender.start()
    while True:
        try:
            data = sock.recv(1 << 16)
        except ConnectionResetError:
            break
        if not data:
            break
        sys.stdout.buffer.write(data)
    sender.join()


main()
