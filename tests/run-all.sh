#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Install what the tests need (as root), build, and run every test:
#
#   tests/run-all.sh            everything, about 20 minutes
#   tests/run-all.sh --quick    one build and make check
#
# Ends with one line "N passed, N failed" and exits 1 if anything failed.
# Builds go to build/, build-asan/, build-tsan/ and build-clang/ of the
# source tree; their logs stay there.

set -u -o pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 1
quick=
case $#${1:-} in
0) ;;
1--quick) quick=yes ;;
1-h | 1--help) sed -n '3,/^$/s/^# \{0,1\}//p' "$0"; exit 0 ;;
*) echo "usage: run-all.sh [--quick]" >&2; exit 2 ;;
esac

passed=0 failed=0 skipped=0

# step NAME CMD ARG...: one check of the run itself, counted.
step ()
{
  local name=$1 log=build/step.log
  shift
  echo "== $name"
  mkdir -p build
  if "$@" > "$log" 2>&1; then
    passed=$((passed + 1))
    return 0
  fi
  tail -40 "$log"
  echo "FAILED: $name"
  failed=$((failed + 1))
  return 1
}

# count_results DIR: add up the results of a make check in DIR.
count_results ()
{
  local results
  results=$(find "$1" -name '*.trs' -exec grep -h '^:test-result:' {} +)
  passed=$((passed + $(grep -c ': PASS' <<< "$results")))
  failed=$((failed + $(grep -cE ': (FAIL|ERROR|XPASS)' <<< "$results")))
  skipped=$((skipped + $(grep -c ': SKIP' <<< "$results")))
  find "$1" -name '*.trs' -exec grep -lE ': (FAIL|ERROR|SKIP)' {} + |
    while read -r trs; do
      log=${trs%.trs}.log
      echo "---- $log"
      tail -40 "$log"
    done
}

# build_tree DIR CONFIGURE-ARG...
build_tree ()
{
  local dir=$1
  shift
  mkdir -p "$dir" &&
    (cd "$dir" && "$top/configure" --enable-gcc-warnings "$@") &&
    make -C "$dir" -j"$(nproc)" all
}

# check_tree NAME DIR MAKE-ARG...: make check, every result counted.
check_tree ()
{
  local name=$1 dir=$2
  shift 2
  echo "== $name"
  find "$dir" -name '*.trs' -delete
  make -C "$dir" -k -j"$(nproc)" check "$@" > "$dir/check.log" 2>&1 ||
    grep -E '^(FAIL|ERROR): |\*\*\*.*Error' "$dir/check.log"
  count_results "$dir"
  # A program that does not build leaves no result behind.
  if ! grep -q '^# TOTAL:' "$dir/check.log"; then
    tail -40 "$dir/check.log"
    failed=$((failed + 1))
  fi
}

# fuzz_briefly NAME...: these targets still build with their fuzzer, and
# get through their corpus.
fuzz_briefly ()
{
  local name
  for name; do
    (cd build-clang && ../tests/fuzz/fuzz.sh "$name" -runs=1000) ||
      return 1
  done
}

summary ()
{
  [ "$skipped" = 0 ] || echo "$skipped tests were skipped"
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
}

if [ "$(id -u)" = 0 ]; then
  step "packages" tests/packages.sh --install || { summary; exit 1; }
else
  tests/packages.sh --check || exit 1
fi

step "autoreconf" autoreconf -fi || { summary; exit 1; }
step "build (gcc)" build_tree build || { summary; exit 1; }
check_tree "make check" build
[ -n "$quick" ] && { summary; exit; }

step "make check-format" make -C build check-format
step "shellcheck" bash -c 'shellcheck -S warning -x tests/*.sh tests/*/*.sh examples/*.sh .ci/run'
step "build (clang)" build_tree build-clang CC=clang
step "libFuzzer" fuzz_briefly nbd-request profile
step "make install" make -C build install DESTDIR="$top/build/destdir"
step "installed files" tests/check-install.sh "$top/build/destdir"

# The slow boots have run above; here everything else once more, under
# the sanitizers and from the tarball.
export BLOBPAGER_TEST_FAST=1
step "build (ASan, UBSan)" build_tree build-asan \
  --enable-sanitizer=address,undefined &&
  check_tree "make check (ASan, UBSan)" build-asan
step "build (TSan)" build_tree build-tsan --enable-sanitizer=thread &&
  check_tree "make check (TSan)" build-tsan
step "make distcheck" make -C build distcheck
summary
