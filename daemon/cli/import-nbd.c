/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Importing an NBD export, on one connection, with many reads under way.
 *
 * Block status ("base:allocation"), where the server has it, tells what
 * reads as zeros.  The rest is read in pieces, given to the sink in order:
 *
 *   slots   [ piece | hole | piece | piece |   |   ]
 *              ▲ head: the oldest            ▲ tail: the next request
 *
 * The head waits for its answer while the others' come in behind it.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libnbd.h>

#include "daemon/cli/import-source.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "lib/image-index.h"

enum {
  NR_SLOTS = 32,
  PIECE_BYTES = 256 << 10,
  MAX_EXTENTS = 1024,
};
/* Asked about at once. */
#define STATUS_BYTES (UINT64_C (1) << 30)

struct extent {
  uint64_t end; /* Offset in the export. */
  bool is_hole;
};

/* A piece under way. */
struct slot {
  int64_t cookie; /* Of its read; 0: a hole. */
  uint64_t len;
  uint8_t *buf; /* PIECE_BYTES bytes. */
};

struct nbd_source {
  struct import_source base;
  struct nbd_handle *nbd;
  bool has_status;
  size_t max_request; /* Bytes. */

  /* What is known ahead of next. */
  struct extent extents[MAX_EXTENTS];
  size_t nr_extents, extent; /* How many; the one at next. */
  uint64_t asked;            /* Where block status goes on. */
  uint64_t next;             /* Offset of the next request. */

  struct slot slots[NR_SLOTS];
  unsigned head, tail; /* Run freely; the slot is the number's rest. */
};

static void
close_nbd (struct import_source *base)
{
  struct nbd_source *source = (struct nbd_source *) base;

  /* The handle first: it may still hold buffers of abandoned reads. */
  nbd_close (source->nbd);
  for (size_t i = 0; i < NR_SLOTS; i++)
    free (source->slots[i].buf);
  free (source);
}

/* What libnbd says went wrong. */
static int
nbd_error (const struct nbd_source *source, const char *what,
           struct bp_error *err)
{
  const int code = nbd_get_errno ();

  return bp_error_set (err, code > 0 ? -code : -EIO, "%s: %s: %s",
                       source->base.what, what, nbd_get_error ());
}

/* ---- What is where ---- */

/* Callback of libnbd: pairs of length and flags from OFFSET on. */
static int
note_extents (void *opaque, const char *context, uint64_t offset,
              uint32_t *entries, size_t nr_entries, int *error)
{
  struct nbd_source *source = opaque;
  uint64_t end = offset;

  (void) error;
  if (strcmp (context, LIBNBD_CONTEXT_BASE_ALLOCATION) != 0)
    return 0;
  for (size_t i = 0; i + 1 < nr_entries; i += 2) {
    if (source->nr_extents == MAX_EXTENTS)
      break; /* We ask again from where we got to. */
    end = MIN (end + entries[i], source->base.size);
    source->extents[source->nr_extents++] = (struct extent){
      .end = end,
      .is_hole = entries[i + 1] & LIBNBD_STATE_ZERO,
    };
  }
  return 0;
}

/* Learn what lies at source->next and behind it.  What the server does not
 * say is data.
 */
static void
find_extents (struct nbd_source *source)
{
  const uint64_t len = MIN (source->base.size - source->next, STATUS_BYTES);

  source->nr_extents = source->extent = 0;
  if (source->has_status &&
      nbd_block_status (source->nbd, len, source->next,
                        (nbd_extent_callback){ .callback = note_extents,
                                               .user_data = source },
                        0) == -1)
    source->nr_extents = 0;
  if (source->nr_extents == 0 || source->extents[0].end <= source->next) {
    source->extents[0].end = source->next + len;
    source->extents[0].is_hole = false;
    source->nr_extents = 1;
  }
}

/* The extent at source->next. */
static const struct extent *
extent_at_next (struct nbd_source *source)
{
  while (source->extent < source->nr_extents &&
         source->extents[source->extent].end <= source->next)
    source->extent++;
  if (source->extent == source->nr_extents)
    find_extents (source);
  return &source->extents[source->extent];
}

/* ---- Reading ---- */

/* Start the request at source->next. */
static int
start_request (struct nbd_source *source, struct bp_error *err)
{
  struct slot *slot = &source->slots[source->tail % NR_SLOTS];
  const struct extent *extent = extent_at_next (source);
  uint64_t len = extent->end - source->next;

  slot->cookie = 0;
  if (!extent->is_hole) {
    /* Up to the next multiple of a piece, so that requests are aligned. */
    len = MIN (len, source->max_request -
                      source->next % source->max_request);
    if (slot->buf == NULL)
      slot->buf = malloc (PIECE_BYTES);
    if (slot->buf == NULL)
      return bp_error_set (err, -ENOMEM, "%s: %m", source->base.what);
    slot->cookie = nbd_aio_pread (source->nbd, slot->buf, len, source->next,
                                  NBD_NULL_COMPLETION, 0);
    if (slot->cookie == -1)
      return nbd_error (source, "read", err);
  }
  slot->len = len;
  source->next += len;
  source->tail++;
  return 0;
}

/* Wait for the oldest request and give it to SINK. */
static int
finish_request (struct nbd_source *source, const struct import_sink *sink,
                struct bp_error *err)
{
  const struct slot *slot = &source->slots[source->head % NR_SLOTS];

  if (slot->cookie == 0) {
    source->head++;
    return sink->hole (sink->opaque, slot->len, err);
  }
  for (;;) {
    const int r =
      nbd_aio_command_completed (source->nbd, (uint64_t) slot->cookie);

    if (r == 1)
      break;
    if (r == -1 || nbd_poll (source->nbd, -1) == -1)
      return nbd_error (source, "read", err);
  }
  source->head++;
  return sink->data (sink->opaque, slot->buf, slot->len, err);
}

static int
read_nbd (struct import_source *base, const struct import_sink *sink,
          struct bp_error *err)
{
  struct nbd_source *source = (struct nbd_source *) base;
  int r = 0;

  while (r == 0) {
    if (source->next < base->size && source->tail - source->head < NR_SLOTS)
      r = start_request (source, err);
    else if (source->head != source->tail)
      r = finish_request (source, sink, err);
    else
      break;
  }
  return r;
}

/* ---- Opening ---- */

static int
negotiate (struct nbd_source *source, struct bp_error *err)
{
  struct nbd_handle *nbd = source->nbd;
  int64_t size, max;

  /* The user wrote the URI: it may name files of his (TLS keys). */
  if (nbd_set_uri_allow_local_file (nbd, true) == -1 ||
      nbd_add_meta_context (nbd, LIBNBD_CONTEXT_BASE_ALLOCATION) == -1 ||
      nbd_connect_uri (nbd, source->base.what) == -1)
    return nbd_error (source, "connect", err);
  size = nbd_get_size (nbd);
  if (size == -1)
    return nbd_error (source, "find the size", err);
  if ((uint64_t) size > BP_IMAGE_MAX_SIZE)
    return bp_error_set (err, -ERANGE, "%s: larger than 2^62 bytes",
                         source->base.what);
  source->base.size = (uint64_t) size;
  source->has_status =
    nbd_can_meta_context (nbd, LIBNBD_CONTEXT_BASE_ALLOCATION) == 1;
  max = nbd_get_block_size (nbd, LIBNBD_SIZE_MAXIMUM);
  source->max_request = max > 0 ? MIN (PIECE_BYTES, (uint64_t) max)
                                : PIECE_BYTES;
  return 0;
}

static const struct import_source_ops nbd_ops = {
  .read = read_nbd,
  .close = close_nbd,
};

int
import_nbd_open (struct import_source **ret_source, const char *uri,
                 struct bp_error *err)
{
  struct nbd_source *source = calloc (1, sizeof *source);
  int r;

  if (source == NULL)
    return bp_error_set (err, -ENOMEM, "%s: %m", uri);
  source->base.ops = &nbd_ops;
  source->base.what = uri;
  source->nbd = nbd_create ();
  r = source->nbd ? negotiate (source, err)
                  : nbd_error (source, "connect", err);
  if (r < 0) {
    close_nbd (&source->base);
    return r;
  }
  *ret_source = &source->base;
  return 0;
}

/* The value of a hexadecimal digit, or -1. */
static int
hex_value (char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

char *
import_nbd_export_name (const char *uri)
{
  const char *host = strstr (uri, "://") + 3;
  const char *slash = host + strcspn (host, "/?#");
  const size_t len = *slash == '/' ? strcspn (slash + 1, "?#") : 0;
  char *name = malloc (len + 1);
  size_t n = 0;

  if (name == NULL)
    return NULL;
  for (size_t i = 0; i < len; i++) {
    const char *p = slash + 1 + i;
    const int high = *p == '%' && i + 2 < len ? hex_value (p[1]) : -1;
    const int low = high >= 0 ? hex_value (p[2]) : -1;

    name[n++] = low >= 0 ? (char) (high << 4 | low) : *p;
    if (low >= 0)
      i += 2;
  }
  name[n] = '\0';
  return name;
}
