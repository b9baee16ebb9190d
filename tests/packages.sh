#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The Debian packages that building and testing need.
#
#   tests/packages.sh             print them
#   tests/packages.sh --check     exit 1 and print the apt-get line if one
#                                 is missing
#   tests/packages.sh --install   install what is missing (root)
#   … --build                     only what building and trying need

set -eu

build_packages=(
  autoconf automake libtool pkgconf make gcc libc6-dev perl
  nbdkit nbdkit-plugin-dev
  libnbd-dev libnbd-bin
  libssl-dev libjson-c-dev libzstd-dev libxxhash-dev
  qemu-system-x86 qemu-utils debootstrap e2fsprogs
  python3 ca-certificates
)
test_packages=(
  git clang clang-format libclang-rt-14-dev
  libcriterion-dev valgrind openssl xxd procps shellcheck
  fuse3 mount util-linux
  qemu-block-extra qemu-system-common
  python3-libnbd fio nbd-client nbd-server xz-utils
)

packages=("${build_packages[@]}")
mode=--print
for arg; do
  case $arg in
  --build) test_packages=() ;;
  *) mode=$arg ;;
  esac
done
packages+=("${test_packages[@]}")

missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2> /dev/null)" = \
    installed ] || missing+=("$p")
done

case $mode in
--print)
  printf '%s\n' "${packages[@]}"
  ;;
--check)
  [ ${#missing[@]} = 0 ] && exit 0
  echo "some packages are missing; as root, run:" >&2
  echo "  apt-get install -y ${missing[*]}" >&2
  exit 1
  ;;
--install)
  [ ${#missing[@]} = 0 ] && exit 0
  export DEBIAN_FRONTEND=noninteractive
  apt-get update
  apt-get install -y --no-install-recommends "${missing[@]}"
  ;;
*)
  echo "usage: packages.sh [--build] [--check | --install]" >&2
  exit 2
  ;;
esac
