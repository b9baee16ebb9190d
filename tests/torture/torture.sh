#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# torture.sh NAME...: the long form of these campaigns, one after another;
# "all" is every one, "help" prints what there is.  Run it by make torture
# in a build directory, best one of each sanitizer:
#
#   make torture                 all
#   make torture TORTURE=storm   this one
#
# Each prints its figures.  Exits 1 if one has failed.

set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../harness/menu.sh"

names=(storm)
declare -A what=(
  [storm]="clients that read, stall and break the protocol, for 60 s"
)

menu_choose "$@"
status=0
export BLOBPAGER_TORTURE=yes
read -r -a runner <<< "$SH_LOG_COMPILER"
for name in "${chosen[@]}"; do
  echo "== $name"
  if "${runner[@]}" "$here/test-$name.sh"; then
    echo "== $name: passed"
  else
    echo "== $name: FAILED"
    status=1
  fi
done
exit $status
