#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hot reads over a Unix socket: blobpagerd against the least that an NBD
server can do (limit), nbdkit's file plugin and qemu-nbd.

All serve the same image, which has no holes.  blobpagerd's bytes are
verified, and all in its cache before the first figure is taken: a miss
during the run is an error.  fio (nbd engine) makes the random reads,
nbdcopy the copies; both speak structured replies to all four.
"""

import os
import re
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from benchlib import (Report, Workplace, die, fio, for_seconds, in_turn,
                      medians, MIB, nbdcopy_seconds, parse_arguments)

# Row: block, depth of each job's connection, jobs.
READS = {
    "4k, depth 1": ("4k", 1, 1),
    "4k, depth 16": ("4k", 16, 1),
    "4k, depth 32 x 2": ("4k", 32, 2),
    "128k, depth 8": ("128k", 8, 1),
    "128k, depth 8 x 2": ("128k", 8, 2),
}
# Row: connections.
COPIES = {
    "nbdcopy, 1 connection": 1,
    "nbdcopy, 2 connections": 2,
    "nbdcopy, 4 connections": 4,
}
SERVERS = ["blobpagerd", "limit", "nbdkit file", "qemu-nbd"]


def start_servers(place, size):
    """{ name: URI }"""
    image = place.dense_image("image", size)
    store = place.import_image(image, "image")
    place.start_blobpagerd("--store=" + store,
                           f"--cache-size={3 * size + 64 * MIB}")
    place.start("limit", ["limit", place.path("limit"), image,
                          place.path("limit.pid")], "limit.pid")
    place.start_nbdkit("nbdkit", "file", image)
    place.start("qemu", ["qemu-nbd", "-r", "-t", "-e", "16", "-f", "raw",
                         "-k", place.path("qemu"), "--pid-file",
                         place.path("qemu.pid"), image], "qemu.pid")
    return dict(zip(SERVERS, [place.uri("blobpagerd", "image"),
                              place.uri("limit"), place.uri("nbdkit"),
                              place.uri("qemu")]))


def misses(place):
    return place.status()["cache"]["misses"]


def measure(rows, options, uris, figure):
    """{ row: { server: median } }, of the rows that are wanted."""
    return {row: medians(in_turn(options.rounds, {
                server: lambda uri=uri: figure(uri, rows[row])
                for server, uri in uris.items()}))
            for row in rows if re.search(options.only, row)}


def measure_all(place, uris, options):
    before = misses(place)
    reads = measure(READS, options, uris, lambda uri, kind: fio(
        uri, *kind, options.size * MIB, for_seconds(options.seconds)))
    copies = measure(COPIES, options, uris, nbdcopy_seconds)
    if misses(place) != before:
        die("blobpagerd's cache did not hold the image")
    return reads, copies


def ratios(rows, other, pattern=""):
    """Of the rows that were measured and match."""
    return [values["blobpagerd"] / values[other]
            for row, values in rows.items() if re.search(pattern, row)]


def add_table(report, unit, form, rows):
    if rows:
        report.table(
            [(unit, "")] + [(server, form) for server in SERVERS] +
            [("to limit", ".2f"), ("to nbdkit", ".2f")],
            [[row] + [values[server] for server in SERVERS] +
             ratios({row: values}, "limit") +
             ratios({row: values}, "nbdkit file")
             for row, values in rows.items()])


def add_targets(report, reads, copies):
    def target(text, values, combine, bound, **how):
        if values:
            report.target(text, combine(values), bound, **how)

    to_limit = ratios(reads, "limit")
    target("reads, median row to limit", to_limit, statistics.median, 1.0)
    target("reads, lowest row to limit", to_limit, min, 0.9)
    target("4k, depth 1, to the lower of limit and nbdkit",
           ratios(reads, "limit", "depth 1$") +
           ratios(reads, "nbdkit file", "depth 1$"), max, 1.0)
    target("4k, depth 16, to nbdkit",
           ratios(reads, "nbdkit file", "depth 16"), min, 1.3)
    target("128k, lowest row to nbdkit",
           ratios(reads, "nbdkit file", "128k"), min, 1.5)
    target("nbdcopy, slowest row to limit's time",
           ratios(copies, "limit"), max, 1.1, at_least=False)


def main():
    options = parse_arguments(
        __doc__, seconds=(2.0, "of each random read"),
        size=(1024, "of the image, in MiB"),
        only=("", "rows that match this expression"))
    report = Report("Hot reads, Unix socket, medians of "
                    f"{options.rounds}",
                    ["nbdkit", "qemu-nbd", "fio", "nbdcopy"])
    with Workplace() as place:
        uris = start_servers(place, options.size * MIB)
        for uri in uris.values():
            nbdcopy_seconds(uri, 1)
        reads, copies = measure_all(place, uris, options)
    add_table(report, "reads a second", ",.0f", reads)
    add_table(report, f"seconds for {options.size} MiB", ".3f", copies)
    add_targets(report, reads, copies)
    report.print(options.json)


main()
