#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""How fast one core verifies lists of segments, beside OpenSSL called for
one block after another over the same trees (verifying.c).
"""

import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from benchlib import Report, die, parse_arguments, run

REFERENCE = "EVP, block by block"


def main():
    options = parse_arguments(__doc__)
    values = {}  # { list: { contender: [MB/s a round] } }
    for line in run(["verifying", str(options.rounds)]).splitlines():
        shape, contender, speed = line.split("\t")
        values.setdefault(shape, {}).setdefault(contender, []).append(
            float(speed))
    if not values:
        die("nothing was measured")
    speeds = {shape: {name: statistics.median(v) for name, v in row.items()}
              for shape, row in values.items()}
    names = list(next(iter(speeds.values())))
    report = Report("Verifying on one core, MB/s, medians of "
                    f"{options.rounds}", [])
    report.table([("list", "")] + [(name, ".0f") for name in names] +
                 [("ratio", ".2f")],
                 [[shape] + [row[name] for name in names] +
                  [row[names[-1]] / row[REFERENCE]]
                  for shape, row in speeds.items()])
    shape, row = next(iter(speeds.items()))
    report.target(f"{shape}, times {REFERENCE}",
                  row[names[-1]] / row[REFERENCE], 2)
    report.print(options.json)


main()
