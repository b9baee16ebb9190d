#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The rules of HACKING.md that a machine can check, over every source file:
#
#   80 columns, no tabs (C), no spaces at the end of a line
#   the licence in one line at the top
#   an include guard named BP_…_H in each header, each name used once
#   no notes to self
#   at most 700 lines a file and 60 a function
#
# Prints a line for each place where one is broken.

set -u -o pipefail
export LC_ALL=C.UTF-8
cd "${top_srcdir:-$(dirname "$0")/..}" || exit 1

dirs=(lib nbdkit-plugin daemon tests examples)
mapfile -t c_files < <(find "${dirs[@]}" -name '*.[ch]' | sort)
mapfile -t other_files < <(find "${dirs[@]}" man -name '*.sh' -o \
  -name Makefile.am -o -name '*.mk' -o -name '*.py' | sort)
[ ${#c_files[@]} -gt 50 ] || { echo "no sources in $PWD"; exit 1; }

# explain TEXT: each line of standard input names a place.
explain ()
{
  sed "s|\$|: $1|"
}

# places PATTERN FILE...: FILE:LINE of every match.
places ()
{
  grep -nHP "$@" | cut -d : -f 1,2
}

check_lines ()
{
  places '^.{81,}' "${c_files[@]}" | explain "longer than 80 columns"
  places '\t' "${c_files[@]}" | explain "a tab"
  places '[ \t]+$' "${c_files[@]}" "${other_files[@]}" |
    explain "white space at the end"
  # Spelt so that it does not find itself.
  places '\b(TO[D]O|FIX[M]E|X[X]X)\b' "${c_files[@]}" "${other_files[@]}" |
    explain "a note to self"
}

check_licences ()
{
  local f
  for f in "${c_files[@]}" "${other_files[@]}"; do
    head -2 "$f" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' ||
      echo "$f"
  done | explain "no SPDX line at the top"
}

check_guards ()
{
  local f guard
  for f in "${c_files[@]}"; do
    [[ $f == *.h ]] || continue
    guard=$(grep -m 1 '^#ifndef' "$f" | cut -d ' ' -f 2)
    [[ $guard =~ ^BP_[A-Z0-9_]+_H$ ]] &&
      [ "$(grep -c "^#define $guard\$" "$f")" = 1 ] || echo "$f"
  done | explain "no include guard BP_…_H"
  grep -hm 1 '^#ifndef BP_' "${c_files[@]}" |
    sort | uniq -d | explain "used by two headers"
}

check_lengths ()
{
  local f
  for f in "${c_files[@]}"; do
    awk -v f="$f" '
      /^{$/ { start = FNR }
      /^}$/ && start && FNR - start - 1 > 60 {
        printf "%s:%d: a function of %d lines\n", f, start, FNR - start - 1
      }
      /^}/ { start = 0 }
      END { if (FNR > 700) printf "%s: %d lines\n", f, FNR }' "$f"
  done
}

found=$(check_lines; check_licences; check_guards; check_lengths)
[ -z "$found" ] || { echo "$found"; exit 1; }
