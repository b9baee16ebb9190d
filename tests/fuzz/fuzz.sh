#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# fuzz.sh NAME [LIBFUZZER-OPTION...]: build target NAME with clang and its
# fuzzer, and run it, starting from the corpus.  What it finds stays in the
# working directory; a crash becomes a named file of the corpus.
#
#   ./run tests/fuzz/fuzz.sh profile -max_total_time=60

set -e -u -o pipefail

[ $# -ge 1 ] || { echo "usage: $0 NAME [LIBFUZZER-OPTION...]" >&2; exit 2; }
name=$1
shift
src=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD_DIR:-$src/build}
[ -e "$build/config.h" ] || { echo "$0: no $build/config.h: configure first, or set BUILD_DIR" >&2; exit 1; }

# The front's targets are more than a decoder.
sources=("$src/tests/fuzz/fuzz-$name.c" "$src"/lib/*.c "$src"/lib/base/*.c)
case $name in
  nbd-*)
    sources+=("$src"/tests/fuzz/nbd-{model,server}.c
      "$src"/tests/harness/{fake-map,fake-pager,vectors}.c
      "$src"/daemon/front/*.c)
    for source in "$src"/daemon/*.c; do
      case $source in
        */main.c | */option*.c) ;; # Who calls the front.
        *) sources+=("$source") ;;
      esac
    done ;;
esac

out=$PWD/fuzz-$name.out
mkdir -p "$out/found"
read -r -a flags <<< "$(pkg-config --cflags --libs libssl libcrypto json-c libzstd libxxhash)"
"${CLANG:-clang}" -g -O1 -std=gnu11 -D_GNU_SOURCE -pthread \
  -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
  -DSRCDIR="\"$src/tests\"" -I"$src" -I"$src/tests" -I"$build" \
  "${sources[@]}" \
  "${flags[@]}" -o "$out/fuzz-$name"
exec "$out/fuzz-$name" -artifact_prefix="$out/" "$@" \
  "$out/found" "$src/tests/fuzz/corpus/$name"
