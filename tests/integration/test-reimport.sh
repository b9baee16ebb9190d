#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A tag moves to another image while clients have it: theirs does not
# change, size and all; who comes while they are there joins them, until
# SIGHUP; then old and new are served side by side.

. "$srcdir/harness/functions.sh"
requires /usr/bin/python3 -c 'import nbd' # The distribution's.

random_file old.img 3000000 1
random_file new.img 5000001 2
make_store old.img vm
old_root=$root
start_blobpagerd --store="$store" --profile=off

cat > clients.py <<'END'
import nbd, subprocess, sys

uri, pid, store, at_root = sys.argv[1:]
old, new = (open(name, "rb").read() for name in ("old.img", "new.img"))

def attach(uri):
    h = nbd.NBD()
    h.connect_uri(uri)
    return h

def expect(h, disk, start=0):
    assert h.get_size() == len(disk), h.get_size()
    for at in range(start, len(disk), 1 << 20):
        n = min(1 << 20, len(disk) - at)
        assert h.pread(n, at) == disk[at:at + n], at

first = attach(uri)
assert first.pread(4096, 0) == old[:4096] # The rest is not in memory.
subprocess.run(["blobpager", "import", "--store=" + store, "--name=vm",
                "new.img"], check=True, stdout=subprocess.DEVNULL)
second = attach(uri)
expect(second, old)
subprocess.run(["kill", "-HUP", pid], check=True)
while "SIGHUP" not in open("blobpagerd.log").read():
    pass
third = attach(uri)
expect(third, new)
expect(first, old)
fourth = attach(uri)
expect(fourth, new)
expect(second, old)
by_root = attach(at_root)
expect(by_root, old)
for h in first, second, third, fourth, by_root:
    h.shutdown()
END
/usr/bin/python3 clients.py "$(uri vm)" "$blobpagerd_pid" "$store" \
  "$(uri "vm@$old_root")" || fail "the clients"
expect_equal "exports called vm" "[3000000, 5000001]" \
  "$(status 'sorted(e["size"] for e in j["exports"] if e["name"] == "vm")')"

# When all have gone, the tag is looked up again without being told.
random_file third.img 1000000 3
blobpager import --store="$store" --name=vm third.img > import.log
expect_equal "image" "$(sha_of third.img)" "$(sha_of_uri "$(uri vm)")"
