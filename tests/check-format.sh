#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every C file is formatted as clang-format 14 does it (make check-format).
# Other versions format differently.

set -u -o pipefail
cd "${top_srcdir:-$(dirname "$0")/..}" || exit 1

for clang_format in clang-format-14 clang-format; do
  "$clang_format" --version 2> /dev/null | grep -q 'version 14\.' && break
  clang_format=
done
[ -n "$clang_format" ] || { echo "skipped: needs clang-format 14"; exit 77; }

find lib nbdkit-plugin daemon tests -name '*.[ch]' -print0 |
  xargs -0 "$clang_format" --dry-run -Werror
