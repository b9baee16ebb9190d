#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""as-systemd.py LISTENS NOTIFY LOG RUNS CMD ARG...: run CMD as systemd would.

LISTENS are paths, or tcp:PORT for one of 127.0.0.1, with commas between
them.  CMD gets sockets that listen there as descriptors 3, 4, and so on,
and NOTIFY as NOTIFY_SOCKET; what it says there is written to LOG, a line
each, until it ends.  RUNS is "now", or how often to start CMD, each time
when a client waits.  Exits as CMD does, the first time that it fails.
"""
import fcntl
import os
import select
import socket
import sys


def listen(where):
    if where.startswith("tcp:"):
        return socket.create_server(("127.0.0.1", int(where[4:])))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(where)
    listener.listen()
    return listener


def run(cmd, listeners, notifier, out):
    pid = os.fork()
    if pid == 0:
        fds = [fcntl.fcntl(listener, fcntl.F_DUPFD_CLOEXEC, 50)
               for listener in listeners]
        for i, fd in enumerate(fds):
            os.dup2(fd, 3 + i)
        os.environ["LISTEN_PID"] = str(os.getpid())
        os.execvp(cmd[0], cmd)
    status = None
    while status is None:
        try:
            print(notifier.recv(4096).decode(), file=out, flush=True)
        except TimeoutError:
            ended, code = os.waitpid(pid, os.WNOHANG)
            if ended:
                status = os.waitstatus_to_exitcode(code)
    return status


def main():
    listens, notify, log, runs, *cmd = sys.argv[1:]
    listeners = [listen(where) for where in listens.split(",")]
    notifier = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notifier.bind(notify)
    notifier.settimeout(0.05)
    os.environ["NOTIFY_SOCKET"] = notify
    os.environ["LISTEN_FDS"] = str(len(listeners))
    os.environ["LISTEN_FDNAMES"] = ":".join("name" for _ in listeners)
    status = 0
    with open(log, "w") as out:
        for _ in range(1 if runs == "now" else int(runs)):
            if runs != "now":
                select.select(listeners, [], [])
            status = status or run(cmd, listeners, notifier, out)
    sys.exit(status)


main()
