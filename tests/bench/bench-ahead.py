#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A cold image read from one end to the other by a client that waits for
each answer, from a store that is a long link away.

Without read-ahead: the same reads in an order that gives nothing to run
ahead of.  Beside them, plain nbdkit over the same link.  Every byte is
compared.
"""

import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from benchlib import (Report, Workplace, in_turn, medians, MIB,
                      parse_arguments, run)

READ = 128 << 10


def write_trace(path, offsets):
    with open(path, "w") as trace:
        trace.writelines(f"{offset} {READ}\n" for offset in offsets)


def seconds(place, trace, uri, image):
    """In I/O, as boottrace says: "0.123 s in I/O, ..."."""
    return float(run(["boottrace", place.path(trace), uri,
                      image]).split()[0])


def cold(place, trace, options, image):
    place.start_blobpagerd(
        f"--driver=nbd+unix:///session?socket={place.path('far')}",
        f"--cache-size={3 * options.size + 64}M")
    value = seconds(place, trace, place.uri("blobpagerd", "image"), image)
    place.stop("blobpagerd")
    return value


def main():
    options = parse_arguments(__doc__, size=(64, "of the image, in MiB"),
                              rtt=(20.0, "of the link, in ms"))
    report = Report(
        f"{options.size} MiB, cold, {READ >> 10} KiB at a time, store "
        f"{options.rtt:g} ms away, medians of {options.rounds}", ["nbdkit"])
    with Workplace() as place:
        image = place.dense_image("image", options.size * MIB)
        offsets = list(range(0, options.size * MIB, READ))
        write_trace(place.path("in-order"), offsets)
        random.Random(1).shuffle(offsets)
        write_trace(place.path("shuffled"), offsets)
        place.start_driver(place.import_image(image, "image"))
        place.start_link("far", "driver", options.rtt)
        place.start_nbdkit("nbdkit", "file", image)
        place.start_link("far-nbdkit", "nbdkit", options.rtt)
        values = medians(in_turn(options.rounds, {
            "ahead": lambda: cold(place, "in-order", options, image),
            "without": lambda: cold(place, "shuffled", options, image),
            "nbdkit": lambda: seconds(place, "in-order",
                                      place.uri("far-nbdkit"), image)}))
    report.table([("seconds", ""), ("in order", ".3f"),
                  ("shuffled", ".3f"), ("nbdkit file, in order", ".3f")],
                 [["cold", values["ahead"], values["without"],
                   values["nbdkit"]]])
    report.target("times faster with read-ahead",
                  values["without"] / values["ahead"], 20)
    report.print(options.json)


main()
