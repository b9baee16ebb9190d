#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What import cannot do is said in one line, with the right exit status,
# and leaves nothing behind.

. "$srcdir/harness/functions.sh"

random_file disk.img 5000 1

# expect_line STATUS TEXT CMD...: CMD fails so, with one line that has TEXT.
expect_line ()
{
  local status=$1 text=$2
  shift 2
  expect_fail "$status" "$@"
  expect_equal "lines of '$*'" 1 "$(wc -l < err.log)"
  grep -qF -- "$text" err.log || fail "'$*' said: $(cat err.log)"
  [ ! -s out.log ] || fail "'$*' printed: $(cat out.log)"
}

hex=$(printf '%064d' 0)
for name in ../x session "$hex" '' .hidden a/b 'a b' "$(printf 'x%.0s' {1..129})"; do
  expect_line 2 'cannot name an image' \
    blobpager import --store=store --name="$name" disk.img
done
cp disk.img session
cp disk.img .img
expect_line 2 'give --name' blobpager import --store=store session
expect_line 2 'give --name' blobpager import --store=store .img
expect_line 2 '--store=DIR is missing' blobpager import disk.img
expect_line 2 'an operand is missing' blobpager import --store=store
expect_line 2 'too many operands' blobpager import --store=store a b
expect_line 2 "'--fast': no such option" \
  blobpager import --store=store --fast disk.img
expect_line 2 "'-x': no such option" \
  blobpager import --store=store -xy disk.img
expect_line 2 "'--raw=1': it takes no value" \
  blobpager import --store=store --raw=1 disk.img
expect_line 2 "'lz4' is neither" \
  blobpager import --store=store --compress=lz4 disk.img
expect_line 2 'no such command' blobpager improt
expect_line 2 'no command' blobpager
[ ! -e store ] || fail "a usage error made the store"

expect_line 1 'absent.img: open: No such file' \
  blobpager import --store=store absent.img
mkfifo fifo.img
expect_line 1 'neither a file' blobpager import --store=store fifo.img
mkdir dir.img
expect_line 1 'neither a file' blobpager import --store=store dir.img
expect_line 1 'Not a directory' blobpager import --store=disk.img disk.img
mkdir full
: > full/something
expect_line 1 'not a store' blobpager import --store=full disk.img
expect_line 1 'connect' \
  blobpager import --store=store 'nbd+unix:///x?socket=/nonexistent'
[ ! -e store ] || fail "a failed import made the store"

# A tag that exists is replaced; one that is damaged, too.
blobpager import --store=store disk.img > /dev/null
echo '{' > store/images/disk.json
expect_fail 1 blobpager ls --store=store
blobpager import --store=store disk.img > /dev/null
blobpager ls --store=store | grep -q ' disk$' || fail "the tag is not replaced"

# A store that cannot be written to.
if [ "$(id -u)" != 0 ]; then
  chmod a-w store/tmp
  expect_line 1 'Permission denied' blobpager import --store=store disk.img
  chmod u+w store/tmp
fi
printf 'xxx' > store/lock
random_file new.img 5000 2
expect_line 1 "'lock': no object id" \
  blobpager import --store=store --name=other new.img
[ -z "$(ls store/tmp)" ] || fail "a failed import left something in tmp/"
