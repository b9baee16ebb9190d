#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What it takes to attach to a sparse image of 1 TiB that a daemon just
started knows nothing of: from the client's first byte to the answer that
the export is open, and what was fetched and is held for it.

The image has a piece of data in every 64 MiB, so that its index has many
windows.
"""

import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from benchlib import (Report, Workplace, die, in_turn, medians, MIB,
                      parse_arguments)

SIZE = 1 << 40
STEP = 64 * MIB
NBD_OPT_GO, NBD_REP_ACK, NBD_REP_INFO = 7, 1, 3


def sparse_image(place, name):
    with open(place.path(name), "wb") as image:
        for offset in range(0, SIZE, STEP):
            image.seek(offset)
            image.write(b"%4096d" % offset)
        image.truncate(SIZE)
    return place.path(name)


def receive(sock, count):
    data = sock.recv(count, socket.MSG_WAITALL)
    if len(data) != count:
        die("the server hung up")
    return data


def attach_seconds(path, export):
    start = time.monotonic()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
        receive(sock, 18)
        sock.sendall(struct.pack(">I8sIII", 3, b"IHAVEOPT", NBD_OPT_GO,
                                 len(export) + 6, len(export)) +
                     export.encode() + struct.pack(">H", 0))
        kind = NBD_REP_INFO
        while kind == NBD_REP_INFO:
            _, _, kind, length = struct.unpack(">QIII", receive(sock, 20))
            receive(sock, length)
        if kind != NBD_REP_ACK:
            die(f"the server answered {kind:#x}")
        return time.monotonic() - start


def attach(place, driver):
    """(seconds, bytes fetched, bytes held)"""
    place.start_blobpagerd(
        f"--driver=nbd+unix:///session?socket={place.path(driver)}")
    before = place.status()
    seconds = attach_seconds(place.path("blobpagerd"), "image")
    after = place.status()
    place.stop("blobpagerd")
    return (seconds,
            after["driver"]["bytes"] - before["driver"]["bytes"],
            after["cache"]["used_bytes"] - before["cache"]["used_bytes"])


def main():
    options = parse_arguments(__doc__, rtt=(20.0, "of the link, in ms"))
    report = Report("Attach to 1 TiB, sparse, medians of "
                    f"{options.rounds}", [])
    with Workplace() as place:
        store = place.import_image(sparse_image(place, "image"), "image")
        place.start_driver(store)
        place.start_link("far", "driver", options.rtt)
        values = in_turn(options.rounds, {
            name: lambda driver=driver: attach(place, driver)
            for name, driver in (("near", "driver"), ("far", "far"))})
    near, fetched, held = [medians({"": v})[""]
                           for v in zip(*values["near"])]
    far = medians({"": [v[0] for v in values["far"]]})[""]
    trips = (far - near) / (options.rtt / 1000)
    report.table([("driver", ""), ("ms", ".1f"), ("KiB fetched", ".0f"),
                  ("KiB held", ".0f"), ("round trips", ".1f")],
                 [["near", near * 1000, fetched / 1024, held / 1024, None],
                  [f"{options.rtt:g} ms away", far * 1000, None, None,
                   trips]])
    report.target("ms", near * 1000, 50, at_least=False)
    report.target("MiB fetched and held", max(fetched, held) / MIB, 2,
                  at_least=False)
    report.target(f"round trips at {options.rtt:g} ms", trips, 6,
                  at_least=False)
    report.print(options.json)


main()
