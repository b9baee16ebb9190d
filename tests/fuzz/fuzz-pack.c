/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Packs: every entry that a reader hands out lies inside the file, and is
 * found again by its root if the table is sorted.
 *
 * An input whose first byte is 'S' is signed anew before it is read: else
 * no mutation would get past the digests.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/range.h"
#include "lib/pack-format.h"
#include "lib/pack.h"

enum {
  MAX_SIZE = 1 << 20
};

const char fuzz_target[] = "pack";
bool fuzz_decoded;

/* Put digests that match wherever the trailer says that digests are. */
static void
sign (uint8_t *pack, size_t size)
{
  uint8_t *trailer = pack + size - PACK_TRAILER_SIZE;
  const uint64_t table = get_le64 (trailer + PACK_TRAILER_TABLE);
  const uint64_t count = get_le64 (trailer + PACK_TRAILER_COUNT);
  const uint64_t room = size - PACK_TRAILER_SIZE;

  if (count <= room && range_is_within (room, table, count * PACK_ENTRY_SIZE)) {
    const uint64_t len = count * PACK_ENTRY_SIZE;
    const uint64_t pieces = div_round_up (len, PACK_PIECE_SIZE);
    uint8_t *digests = pack + table + len;

    if (range_is_within (room, table + len, pieces * BP_SHA256_SIZE)) {
      for (uint64_t i = 0; i < pieces; i++)
        bp_sha256 (pack + table + i * PACK_PIECE_SIZE,
                   MIN (PACK_PIECE_SIZE, len - i * PACK_PIECE_SIZE),
                   digests + i * BP_SHA256_SIZE);
      bp_sha256 (digests, pieces * BP_SHA256_SIZE,
                 trailer + PACK_TRAILER_LIST_DIGEST);
    }
  }
  bp_sha256 (pack, PACK_HEADER_SIZE, trailer + PACK_TRAILER_HEADER_DIGEST);
  bp_sha256 (trailer, PACK_TRAILER_DIGEST, trailer + PACK_TRAILER_DIGEST);
}

/* What a walk has seen. */
struct walk {
  struct bp_pack *pack;
  uint64_t size;
  struct bp_root last;
  uint64_t count;
  bool is_sorted;
};

static int
check_entry (void *opaque, const struct bp_pack_entry *entry, int code)
{
  struct walk *walk = opaque;

  if (walk->count++ > 0 &&
      memcmp (walk->last.bytes, entry->root.bytes, BP_ROOT_SIZE) >= 0)
    walk->is_sorted = false;
  walk->last = entry->root;
  if (code < 0) {
    MUST (code == -EPROTO);
    MUST (entry->size == 0 && entry->stored_size == 0 && entry->offset == 0);
    return 0;
  }
  MUST (entry->offset >= PACK_HEADER_SIZE);
  MUST (range_is_within (walk->size, entry->offset, entry->stored_size));
  MUST (entry->size <= BP_BLOB_MAX_SIZE);
  MUST (entry->stored_size <= entry->size);
  MUST ((entry->tree_offset == 0) == (entry->size <= BP_WINDOW_SIZE));
  MUST (entry->tree_offset < walk->size);
  return 0;
}

static int
find_entry (void *opaque, const struct bp_pack_entry *entry, int code)
{
  struct walk *walk = opaque;
  struct bp_pack_entry found;

  MUST (bp_pack_find (walk->pack, &entry->root, &found, NULL) == code);
  if (code == 0)
    MUST (found.object_id == entry->object_id &&
          found.offset == entry->offset && found.size == entry->size);
  return 0;
}

static void
check_pack (struct bp_pack *pack, uint64_t size)
{
  struct walk walk = { .pack = pack, .size = size, .is_sorted = true };
  const struct bp_root absent = { { 0x80 } };
  struct bp_pack_entry entry;
  int r = bp_pack_walk (pack, check_entry, &walk, NULL);

  MUST (r == 0 || r == -EBADMSG);
  if (r == 0) {
    MUST (walk.count == bp_pack_count (pack));
    if (walk.is_sorted)
      MUST (bp_pack_walk (pack, find_entry, &walk, NULL) == 0);
    fuzz_decoded = true;
  }
  r = bp_pack_find (pack, &absent, &entry, NULL);
  MUST (r == 0 || r == -ENOENT || r == -EPROTO || r == -EBADMSG);
}

/* The file that every input is written to: in memory where there is a
 * place for that.
 */
static char in_memory[] = "/dev/shm/fuzz-pack.XXXXXX";
static char on_disk[] = "/tmp/fuzz-pack.XXXXXX";
static char *dir;
static int dirfd_of_dir = -1, fd = -1;
static struct bp_piece_cache *cache;

static void
remove_dir (void)
{
  unlinkat (dirfd_of_dir, "0", 0);
  rmdir (dir);
  bp_piece_cache_free (cache);
}

static void
make_dir (void)
{
  if (fd != -1)
    return;
  MUST (bp_piece_cache_new (&cache, 4) == 0);
  dir = mkdtemp (in_memory);
  if (dir == NULL)
    dir = mkdtemp (on_disk);
  MUST (dir != NULL);
  dirfd_of_dir = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  fd = openat (dirfd_of_dir, "0", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  MUST (fd != -1);
  MUST (atexit (remove_dir) == 0);
}

static void
check_bytes (const uint8_t *data, size_t size)
{
  struct bp_pack *pack;
  struct bp_error err;
  int r;

  make_dir ();
  MUST (ftruncate (fd, 0) == 0 && bp_pwrite_all (fd, data, size, 0) == 0);
  r = bp_pack_open (&pack, dirfd_of_dir, "0", cache, &err);
  if (r < 0) {
    MUST (r == -EPROTO || r == -EBADMSG || r == -EOPNOTSUPP);
    return;
  }
  check_pack (pack, size);
  bp_pack_close (pack);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  CLEANUP_FREE uint8_t *pack = NULL;

  if (size < 1 || size > MAX_SIZE)
    return 0;
  pack = malloc (size);
  MUST (pack != NULL);
  memcpy (pack, data + 1, size - 1);
  if (data[0] == 'S' && size - 1 >= PACK_HEADER_SIZE + PACK_TRAILER_SIZE)
    sign (pack, size - 1);
  check_bytes (pack, size - 1);
  return 0;
}
