#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""crowd.py WHERE EXPORT COUNT KIND: be COUNT clients of one kind.

WHERE is the path of a socket, or HOST:PORT.  KIND is

  idle     attach, and do nothing
  stalled  attach, ask for as much as the server takes, and read nothing
  trickle  the same, but read one byte now and then
  probe    connect and hang up
  noise    connect, say what is no NBD, and hang up
  tls      as idle, over TLS, whatever the server's certificate

Prints a line when all have come so far, and stays until its input ends.
"""
import resource
import select
import socket
import ssl
import struct
import sys


def connect(where):
    if "/" not in where:
        host, port = where.rsplit(":", 1)
        return socket.create_connection((host, int(port)))
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(where)
    return sock


def receive(sock, count):
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        if not piece:
            raise ConnectionError("the server hung up")
        data += piece
    return data


def option(sock, number, data):
    """Send an option; return the type of the reply that ends it."""
    sock.sendall(b"IHAVEOPT" + struct.pack(">II", number, len(data)) + data)
    while True:
        _, _, kind, length = struct.unpack(">QIII", receive(sock, 20))
        receive(sock, length)
        if kind != 3:
            return kind


def greet(where):
    sock = connect(where)
    receive(sock, 18)
    sock.sendall(struct.pack(">I", 3))
    return sock


def go(sock, export):
    name = export.encode()
    data = struct.pack(">I", len(name)) + name + struct.pack(">H", 0)
    if option(sock, 7, data) != 1:
        raise ConnectionError("no such export")
    return sock


def start_tls(sock):
    if option(sock, 5, b"") != 1:
        raise ConnectionError("no TLS")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(sock)


def ask_for_too_much(sock):
    """Send requests until the server does not take them any more."""
    sock.setblocking(False)
    cookie = 0
    while select.select([], [sock], [], 0.05)[1]:
        requests = b"".join(
            struct.pack(">IHHQQI", 0x25609513, 0, 0, cookie + i,
                        (cookie + i) % 64 << 20, 1 << 20)
            for i in range(64))
        cookie += 64
        try:
            # Half a request is as good as none: nothing follows it.
            sock.send(requests)
        except BlockingIOError:
            break
    return sock


def main():
    where, export, count, kind = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_NOFILE,
                       (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    socks = []
    for _ in range(int(count)):
        if kind in ("probe", "noise"):
            sock = connect(where)
            if kind == "noise":
                sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            sock.close()
        elif kind == "tls":
            socks.append(go(start_tls(greet(where)), export))
        else:
            socks.append(go(greet(where), export))
    if kind in ("stalled", "trickle"):
        socks = [ask_for_too_much(sock) for sock in socks]
    print("here", flush=True)
    while not select.select([sys.stdin], [], [], 0.5)[0]:
        if kind == "trickle":
            for sock in socks:
                if select.select([sock], [], [], 0)[0]:
                    sock.recv(1)


main()
