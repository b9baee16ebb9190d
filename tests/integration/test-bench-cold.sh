#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The benches of cold reads and of attaching measure what they say, on
# images too small to say much.

. "$srcdir/harness/functions.sh"
requires fio --version
requires nbdcopy --version
requires nbdkit --version

# expect_figures COUNT TARGETS BENCH ARG...: so many numbers in its tables,
# none of them zero, and so many targets.
expect_figures ()
{
  local count=$1 targets=$2 bench=$3
  shift 3
  python3 "$srcdir/bench/bench-$bench.py" --json --rounds=1 "$@" > bench.json
  expect_equal "$bench: its figures" "$count" "$(json 'sum(
    isinstance(v, (int, float)) and v != 0
    for t in j["tables"] for r in t for v in r.values())' < bench.json)"
  expect_equal "$bench: its targets" "$targets" \
    "$(json 'len(j["targets"])' < bench.json)"
}

expect_figures 6 2 cold --size=8
expect_figures 3 1 ahead --size=1 --rtt=1
expect_figures 5 3 attach
