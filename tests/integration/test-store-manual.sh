#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The worked example of blobpager-store(5) is what an import writes, byte
# for byte, and its synopsis is what blobpager --help prints.

. "$srcdir/harness/functions.sh"

printf 'hello, world\n' > hello.img
blobpager import --store=s --compress=none hello.img > line.log
grep -qF " $(cat line.log)" "$top_srcdir/man/blobpager-store.pod" ||
  fail "the manual does not have: $(cat line.log)"

python3 - "$top_srcdir/man/blobpager-store.pod" s/packs/*.pack s/lock << 'END'
import re, sys
page = open(sys.argv[1], encoding="utf-8").read()
example = page[page.index("=head1 A WORKED EXAMPLE"):page.index("=head1 NOTES")]

def dumped(text):
    """The bytes of hexdump lines; * repeats the line before."""
    data, star = {}, False
    for line in text.splitlines():
        if line.strip() == "*":
            star = True
            continue
        m = re.match(r" ([0-9a-f]{8})  ([0-9a-f ]+)\|", line)
        if not m:
            continue
        at = int(m.group(1), 16)
        if star:
            for i in range(max(data) + 1, at):
                data[i] = data[i - 16]
            star = False
        for i, b in enumerate(m.group(2).split()):
            data[at + i] = int(b, 16)
    return bytes(data[i] for i in range(max(data) + 1))

pack, lock = example.split("The next object id")
for name, text in (sys.argv[2], pack), (sys.argv[3], lock):
    wanted, got = dumped(text), open(name, "rb").read()
    assert len(got) > 7 and wanted == got, (name, wanted.hex(), got.hex())
END

blobpager --help > help.log
while read -r line; do
  grep -qF "$line" help.log || fail "--help does not have: $line"
done < "$top_srcdir/man/synopsis-blobpager.txt"

# Every option is in the manual, under its command, and no other.
blobpager --long-options > options.log
while read -r command option; do
  case $command in
    verify | ls | merkle | rm) where="=head2 blobpager $command .*\\$option" ;;
    *) where="^=item B<$option>\\|^=head2 blobpager $command .*$option\\|B<$option>" ;;
  esac
  grep -q -- "$where" "$top_srcdir/man/blobpager.pod" ||
    fail "blobpager(1) does not have: $command $option"
done < options.log
for option in $(sed -n 's/^=item B<\(--[a-z-]*\)>.*/\1/p' "$top_srcdir/man/blobpager.pod"); do
  case $option in --help | --version) continue ;; esac
  grep -q -- " $option$" options.log || fail "no command has $option"
done
