#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""as-systemd.py LISTEN NOTIFY LOG CMD ARG...: run CMD as systemd would.

CMD gets a socket that listens on the path LISTEN as descriptor 3, and
NOTIFY as NOTIFY_SOCKET; what it says there is written to LOG, a line each,
until it ends.  Exits as CMD does.
"""
import os
import socket
import subprocess
import sys


def main():
    listen, notify, log, *cmd = sys.argv[1:]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(listen)
    listener.listen()
    notifier = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notifier.bind(notify)
    notifier.settimeout(0.05)
    os.environ["NOTIFY_SOCKET"] = notify
    os.environ["LISTEN_FDS"] = "1"
    if listener.fileno() == 3:
        listener = socket.socket(fileno=os.dup(3))
    # The shell keeps its process id over exec, and so knows LISTEN_PID.
    child = subprocess.Popen(
        ["sh", "-c", 'LISTEN_PID=$$ exec "$@" 3<&0 0< /dev/null', "sh", *cmd],
        stdin=listener)
    with open(log, "w") as out:
        while child.poll() is None:
            try:
                print(notifier.recv(4096).decode(), file=out, flush=True)
            except TimeoutError:
                pass
    sys.exit(child.returncode)


main()
