/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Reading a pack's table.
 *
 * Opening checks the trailer, the header and the list of piece digests;
 * from then on a piece of the table is believed only after its digest
 * matched, and kept in the shared cache while it is in use:
 *
 *   trailer ── digest of ──▶ list of digests ── digest of ──▶ piece
 *
 * Roots are evenly spread, so a lookup first guesses the place of an
 * entry from its number, which takes one piece nearly always, and halves
 * the range after a few guesses, so that a table made to mislead costs no
 * more than a binary search.
 *
 * Digests find damage, not lies: every entry is checked against the
 * bounds of the file before it is handed out.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/range.h"
#include "lib/pack-format.h"
#include "lib/pack.h"
#include "lib/sha256.h"

enum {
  MAX_GUESSES = 4
};

struct bp_pack {
  int fd;
  uint64_t owner;               /* Our name in the cache. */
  uint64_t table_offset;        /* Bytes. */
  uint64_t count;               /* Entries; at most BP_PACK_MAX_BLOBS. */
  uint8_t *digests;             /* Of each piece of the table, verified. */
  struct bp_piece_cache *cache; /* Borrowed. */
  char name[];
};

void
bp_pack_close (struct bp_pack *pack)
{
  if (pack == NULL)
    return;
  cleanup_close (&pack->fd);
  free (pack->digests);
  free (pack);
}

uint64_t
bp_pack_count (const struct bp_pack *pack)
{
  return pack->count;
}

int
bp_pack_fd (const struct bp_pack *pack)
{
  return pack->fd;
}

static uint64_t
table_size (const struct bp_pack *pack)
{
  return pack->count * PACK_ENTRY_SIZE;
}

static uint64_t
nr_pieces (const struct bp_pack *pack)
{
  return div_round_up (table_size (pack), PACK_PIECE_SIZE);
}

static bool
digest_matches (const void *data, size_t len,
                const uint8_t wanted[BP_SHA256_SIZE])
{
  uint8_t digest[BP_SHA256_SIZE];

  bp_sha256 (data, len, digest);
  return memcmp (digest, wanted, sizeof digest) == 0;
}

/* What PACK says of itself in its first and last bytes. */
static int
check_header (const struct bp_pack *pack, const uint8_t *header,
              struct bp_error *err)
{
  if (memcmp (header, PACK_MAGIC, 8) != 0)
    return bp_error_set (err, -EPROTO, "pack '%s': header: wrong magic",
                         pack->name);
  if (get_le32 (header + 8) != PACK_VERSION)
    return bp_error_set (err, -EOPNOTSUPP,
                         "pack '%s': header: version %u is not known",
                         pack->name, get_le32 (header + 8));
  return 0;
}

static int
check_trailer (const struct bp_pack *pack, const uint8_t *header,
               const uint8_t *trailer, struct bp_error *err)
{
  if (!digest_matches (trailer, PACK_TRAILER_DIGEST,
                       trailer + PACK_TRAILER_DIGEST))
    return bp_error_set (err, -EBADMSG, "pack '%s': trailer: %s", pack->name,
                         "digest mismatch (cut short?)");
  if (!digest_matches (header, PACK_HEADER_SIZE,
                       trailer + PACK_TRAILER_HEADER_DIGEST))
    return bp_error_set (err, -EBADMSG, "pack '%s': header: %s", pack->name,
                         "digest mismatch");
  return 0;
}

/* Table, digests and trailer must fill the file of SIZE bytes to its end.
 */
static int
check_geometry (const struct bp_pack *pack, uint64_t size,
                struct bp_error *err)
{
  uint64_t rest;

  if (pack->count > BP_PACK_MAX_BLOBS)
    return bp_error_set (err, -EPROTO, "pack '%s': table: too many entries",
                         pack->name);
  rest = table_size (pack) + nr_pieces (pack) * BP_SHA256_SIZE +
         PACK_TRAILER_SIZE;
  if (pack->table_offset < PACK_HEADER_SIZE ||
      !range_is_within (size, pack->table_offset, rest) ||
      pack->table_offset + rest != size)
    return bp_error_set (err, -EPROTO, "pack '%s': table: does not fit",
                         pack->name);
  return 0;
}

static int
load_digests (struct bp_pack *pack, const uint8_t *trailer,
              struct bp_error *err)
{
  const size_t len = nr_pieces (pack) * BP_SHA256_SIZE;
  int r;

  pack->digests = malloc (len + 1);
  if (pack->digests == NULL)
    return bp_error_set (err, -ENOMEM, "pack '%s': %m", pack->name);
  r = bp_pread_exact (pack->fd, pack->digests, len,
                      pack->table_offset + table_size (pack));
  if (r < 0)
    return bp_error_set (err, r, "pack '%s': read digests: %m", pack->name);
  if (!digest_matches (pack->digests, len,
                       trailer + PACK_TRAILER_LIST_DIGEST))
    return bp_error_set (err, -EBADMSG, "pack '%s': table digests: %s",
                         pack->name, "digest mismatch");
  return 0;
}

/* Check everything but the table itself. */
static int
load_pack (struct bp_pack *pack, struct bp_error *err)
{
  uint8_t header[PACK_HEADER_SIZE], trailer[PACK_TRAILER_SIZE];
  struct stat st;
  uint64_t size;
  int r;

  if (fstat (pack->fd, &st) == -1)
    return bp_error_set (err, -errno, "pack '%s': %m", pack->name);
  size = (uint64_t) st.st_size;
  if (!S_ISREG (st.st_mode) || size < sizeof header + sizeof trailer)
    return bp_error_set (err, -EPROTO, "pack '%s': %s", pack->name,
                         S_ISREG (st.st_mode) ? "too short" : "not a file");
  r = bp_pread_exact (pack->fd, header, sizeof header, 0);
  if (r == 0)
    r = bp_pread_exact (pack->fd, trailer, sizeof trailer,
                        size - sizeof trailer);
  if (r < 0)
    return bp_error_set (err, r, "pack '%s': read: %m", pack->name);

  r = check_header (pack, header, err);
  if (r == 0)
    r = check_trailer (pack, header, trailer, err);
  if (r < 0)
    return r;
  pack->table_offset = get_le64 (trailer + PACK_TRAILER_TABLE);
  pack->count = get_le64 (trailer + PACK_TRAILER_COUNT);
  r = check_geometry (pack, size, err);
  return r < 0 ? r : load_digests (pack, trailer, err);
}

static void
cleanup_pack (struct bp_pack **pack)
{
  bp_pack_close (*pack);
}

int
bp_pack_open (struct bp_pack **ret_pack, int packs_dirfd, const char *name,
              struct bp_piece_cache *cache, struct bp_error *err)
{
  __attribute__ ((cleanup (cleanup_pack))) struct bp_pack *pack =
    calloc (1, sizeof *pack + strlen (name) + 1);
  int r;

  if (pack == NULL)
    return bp_error_set (err, -ENOMEM, "pack '%s': %m", name);
  strcpy (pack->name, name);
  pack->cache = cache;
  pack->owner = bp_piece_cache_owner ();
  /* O_NONBLOCK: a FIFO with this name must not hang the open. */
  pack->fd = bp_openat_beneath (packs_dirfd, name, O_RDONLY | O_NONBLOCK, 0);
  if (pack->fd < 0)
    return bp_error_set (err, pack->fd, "pack '%s': open: %m", name);
  r = load_pack (pack, err);
  if (r < 0)
    return r;
  *ret_pack = steal_ptr (&pack);
  return 0;
}

/* ---- The table ---- */

static size_t
piece_len (const struct bp_pack *pack, uint64_t piece)
{
  return MIN (PACK_PIECE_SIZE, table_size (pack) - piece * PACK_PIECE_SIZE);
}

/* Read PIECE into BUF (PACK_PIECE_SIZE bytes) and verify it. */
static int
read_piece (struct bp_pack *pack, uint64_t piece, uint8_t *buf,
            struct bp_error *err)
{
  const size_t len = piece_len (pack, piece);
  const uint64_t offset = pack->table_offset + piece * PACK_PIECE_SIZE;
  const int r = bp_pread_exact (pack->fd, buf, len, offset);

  if (r < 0)
    return bp_error_set (err, r, "pack '%s': read table at offset %llu: %m",
                         pack->name, (unsigned long long) offset);
  if (!digest_matches (buf, len, pack->digests + piece * BP_SHA256_SIZE))
    return bp_error_set (err, -EBADMSG,
                         "pack '%s': table at offset %llu: digest mismatch",
                         pack->name, (unsigned long long) offset);
  return 0;
}

/* LEN bytes at OFFSET of PIECE, through the cache. */
static int
read_in_piece (struct bp_pack *pack, uint64_t piece, size_t offset,
               uint8_t *buf, size_t len, struct bp_error *err)
{
  CLEANUP_FREE uint8_t *data = NULL;
  int r;

  if (bp_piece_cache_get (pack->cache, pack->owner, piece, offset, buf, len))
    return 0;
  data = malloc (PACK_PIECE_SIZE);
  if (data == NULL)
    return bp_error_set (err, -ENOMEM, "pack '%s': %m", pack->name);
  r = read_piece (pack, piece, data, err);
  if (r < 0)
    return r;
  bp_piece_cache_put (pack->cache, pack->owner, piece, data,
                      piece_len (pack, piece));
  memcpy (buf, data + offset, len);
  return 0;
}

/* The bytes of entry I, which may straddle two pieces. */
static int
read_entry (struct bp_pack *pack, uint64_t i, uint8_t buf[PACK_ENTRY_SIZE],
            struct bp_error *err)
{
  const uint64_t piece = i * PACK_ENTRY_SIZE / PACK_PIECE_SIZE;
  const size_t offset = i * PACK_ENTRY_SIZE % PACK_PIECE_SIZE;
  const size_t len = MIN (PACK_ENTRY_SIZE, PACK_PIECE_SIZE - offset);
  int r = read_in_piece (pack, piece, offset, buf, len, err);

  if (r == 0 && len < PACK_ENTRY_SIZE)
    r = read_in_piece (pack, piece + 1, 0, buf + len, PACK_ENTRY_SIZE - len,
                       err);
  return r;
}

/* True if the tree, and the frame sizes of codec 1, lie in the pack. */
static bool
tree_fits (const struct bp_pack *pack, const struct bp_pack_entry *entry)
{
  uint64_t len;

  if (entry->size <= BP_WINDOW_SIZE)
    return entry->tree_offset == 0;
  len = bp_merkle_level_offset (entry->size,
                                bp_merkle_nr_levels (entry->size));
  if (entry->codec == BP_CODEC_ZSTD)
    len += bp_nr_windows (entry->size) * 4;
  return entry->tree_offset >= PACK_HEADER_SIZE &&
         range_is_within (pack->table_offset, entry->tree_offset, len);
}

/* Decode an entry.  Returns 0, or -EPROTO with only root and object id
 * set.
 */
static int
decode_entry (const struct bp_pack *pack, const uint8_t *bytes,
              struct bp_pack_entry *ret_entry)
{
  struct bp_pack_entry entry = { 0 };

  memcpy (entry.root.bytes, bytes, BP_ROOT_SIZE);
  entry.object_id = get_le64 (bytes + PACK_ENTRY_OBJECT_ID);
  *ret_entry = entry;
  entry.offset = get_le64 (bytes + PACK_ENTRY_OFFSET);
  entry.stored_size = get_le64 (bytes + PACK_ENTRY_STORED_SIZE);
  entry.size = get_le64 (bytes + PACK_ENTRY_BLOB_SIZE);
  entry.codec = get_le32 (bytes + PACK_ENTRY_CODEC);
  entry.tree_offset = get_le64 (bytes + PACK_ENTRY_TREE);

  if (entry.size > BP_BLOB_MAX_SIZE || entry.stored_size > entry.size ||
      entry.offset < PACK_HEADER_SIZE ||
      !range_is_within (pack->table_offset, entry.offset,
                        entry.stored_size) ||
      (entry.codec != BP_CODEC_RAW && entry.codec != BP_CODEC_ZSTD) ||
      (entry.codec == BP_CODEC_RAW && entry.stored_size != entry.size) ||
      !tree_fits (pack, &entry))
    return -EPROTO;
  *ret_entry = entry;
  return 0;
}

static uint64_t
root_key (const uint8_t *root)
{
  return get_be64 (root);
}

/* A number in [LOW, HIGH) for KEY, if the entries there are spread evenly
 * over [LOW_KEY, HIGH_KEY].
 */
static uint64_t
guess (uint64_t low, uint64_t high, uint64_t low_key, uint64_t high_key,
       uint64_t key)
{
  const __uint128_t span = (__uint128_t) (high_key - low_key) + 1;

  return low + (uint64_t) ((__uint128_t) (key - low_key) * (high - low) /
                           span);
}

int
bp_pack_find (struct bp_pack *pack, const struct bp_root *root,
              struct bp_pack_entry *ret_entry, struct bp_error *err)
{
  const uint64_t key = root_key (root->bytes);
  uint64_t low = 0, high = pack->count;
  uint64_t low_key = 0, high_key = UINT64_MAX;
  uint8_t bytes[PACK_ENTRY_SIZE];

  for (unsigned step = 0; low < high; step++) {
    const bool can_guess =
      step < MAX_GUESSES && key >= low_key && key <= high_key;
    const uint64_t mid = can_guess
                           ? guess (low, high, low_key, high_key, key)
                           : low + (high - low) / 2;
    int order, r = read_entry (pack, mid, bytes, err);

    if (r < 0)
      return r;
    order = memcmp (root->bytes, bytes, BP_ROOT_SIZE);
    if (order == 0) {
      r = decode_entry (pack, bytes, ret_entry);
      return r < 0 ? bp_error_set (err, r, "pack '%s': entry %llu: malformed",
                                   pack->name, (unsigned long long) mid)
                   : 0;
    }
    if (order < 0) {
      high = mid;
      high_key = root_key (bytes);
    }
    else {
      low = mid + 1;
      low_key = root_key (bytes);
    }
  }
  return bp_error_set (err, -ENOENT, "pack '%s': no such blob", pack->name);
}

int
bp_pack_walk (struct bp_pack *pack, bp_pack_walk_fn fn, void *opaque,
              struct bp_error *err)
{
  CLEANUP_FREE uint8_t *data = malloc (PACK_PIECE_SIZE);
  const uint64_t pieces = nr_pieces (pack);
  struct bp_pack_entry entry;
  uint8_t bytes[PACK_ENTRY_SIZE];
  size_t have = 0; /* Bytes of the next entry so far. */
  int r;

  if (data == NULL)
    return bp_error_set (err, -ENOMEM, "pack '%s': %m", pack->name);
  for (uint64_t piece = 0; piece < pieces; piece++) {
    const size_t len = piece_len (pack, piece);

    r = read_piece (pack, piece, data, err);
    if (r < 0)
      return r;
    for (size_t at = 0; at < len;) {
      const size_t n = MIN (len - at, PACK_ENTRY_SIZE - have);

      memcpy (bytes + have, data + at, n);
      at += n;
      have += n;
      if (have < PACK_ENTRY_SIZE)
        break;
      have = 0;
      r = decode_entry (pack, bytes, &entry);
      r = fn (opaque, &entry, r);
      if (r != 0)
        return r;
    }
  }
  return 0;
}
