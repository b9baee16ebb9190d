#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench.sh NAME...: run these benches, one after another; "all" is every
# one, "help" prints what there is.  Run it under ./run, or by make bench:
#
#   make bench                        all
#   make bench BENCH="front boot"     these
#   make bench BENCH=front BENCH_FLAGS="--json --rounds=9"
#
# $BENCH_FLAGS go to every bench (bench-NAME.py --help).  $BENCH_IMAGE is a
# directory of examples/make-image.sh, made if it is not there.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../harness/menu.sh"
read -r -a flags <<< "${BENCH_FLAGS:-}"

names=(front verify cold ahead attach boot)
declare -A what=(
  [front]="hot reads: blobpagerd, the least server, nbdkit, qemu-nbd; 5 min"
  [verify]="verifying lists of segments on one core, beside OpenSSL; 10 s"
  [cold]="cold reads from a local store, beside nbdkit; 2 min"
  [ahead]="one cold reader, in order, from a store far away; 2 min"
  [attach]="attaching to a sparse TiB"
  [boot]="a boot's reads, one after another, over a long link; 5 min"
)

run_boot ()
{
  [ -e "$BENCH_IMAGE/disk.img" ] ||
    bash "$here/../../examples/make-image.sh" "$BENCH_IMAGE"
  bash "$here/bench-boot.sh" "$BENCH_IMAGE"
}

menu_choose "$@"
for name in "${chosen[@]}"; do
  case $name in
  boot) run_boot ;;
  *) python3 "$here/bench-$name.py" "${flags[@]}" ;;
  esac
done
