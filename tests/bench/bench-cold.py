#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cold reads from a local store: blobpagerd, which fetches, verifies and
keeps every byte, against nbdkit, which verifies nothing.

Cold means that every figure is of a server just started, with nothing in
its own cache.  The files themselves are in the page cache, for all.  The
image has no holes and the store is uncompressed.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from benchlib import (Report, Workplace, fio, for_bytes, in_turn, medians,
                      MIB, nbdcopy_seconds, parse_arguments)


def cold_blobpagerd(place, options, figure):
    place.start_blobpagerd("--store=" + place.path("store"),
                           f"--cache-size={3 * options.size + 64}M")
    value = figure(place.uri("blobpagerd", "image"))
    place.stop("blobpagerd")
    return value


def cold_nbdkit(place, figure, *arguments):
    place.start_nbdkit("nbdkit", *arguments)
    value = figure(place.uri("nbdkit"))
    place.stop("nbdkit")
    return value


def copies(place, options, image):
    def figure(uri):
        return nbdcopy_seconds(uri, 4)

    return medians(in_turn(options.rounds, {
        "blobpagerd": lambda: cold_blobpagerd(place, options, figure),
        "nbdkit": lambda: cold_nbdkit(place, figure, "file", image)}))


def reads(place, options, image):
    def figure(uri):
        return fio(uri, "4k", 16, 1, options.size * MIB,
                   for_bytes(options.size * MIB // 16))

    return medians(in_turn(options.rounds, {
        "blobpagerd": lambda: cold_blobpagerd(place, options, figure),
        "nbdkit": lambda: cold_nbdkit(place, figure, "--filter=cache",
                                      "file", image, "cache-on-read=true")}))


def add(report, kind, form, other, values):
    ratio = values["blobpagerd"] / values["nbdkit"]
    report.table([(kind, ""), ("blobpagerd", form), (other, form),
                  ("ratio", ".2f")],
                 [["cold", values["blobpagerd"], values["nbdkit"], ratio]])
    return ratio


def main():
    options = parse_arguments(__doc__, size=(1024, "of the image, in MiB"))
    report = Report("Cold reads, local store, medians of "
                    f"{options.rounds}", ["nbdkit", "fio", "nbdcopy"])
    with Workplace() as place:
        image = place.dense_image("image", options.size * MIB)
        place.import_image(image, "image")
        ratio = add(report, f"seconds for {options.size} MiB, nbdcopy, "
                    "4 connections", ".3f", "nbdkit file",
                    copies(place, options, image))
        report.target("whole image, to the time of nbdkit file", ratio, 1.8,
                      at_least=False)
        ratio = add(report, "4k reads a second, depth 16", ",.0f",
                    "nbdkit cache filter", reads(place, options, image))
        report.target("4k, depth 16, to nbdkit's cache filter", ratio, 1.0)
    report.print(options.json)


main()
