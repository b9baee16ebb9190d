/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A pager to test. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "tests/harness/check.h"
#include "tests/harness/pager-fixture.h"

void
fixture_init (struct fixture *fixture, uint64_t budget)
{
  memset (fixture, 0, sizeof *fixture);
  fixture->options.cache_bytes = budget;
  fixture->driver = fake_driver_new ();
  CHECK_EQ (pager_new (&fixture->pager, &fixture->options, fixture->driver,
                       NULL),
            0);
}

void
fixture_done (struct fixture *fixture)
{
  pager_free (fixture->pager);
  fake_driver_free (fixture->driver);
}

uint8_t *
image_bytes (size_t len, uint64_t seed, bool sparse)
{
  uint8_t *bytes = calloc (1, len + 8);
  uint64_t x = seed * UINT64_C (0x9e3779b97f4a7c15) + 1;
  size_t i;

  CHECK (bytes != NULL);
  for (i = 0; i < len; i += 8) {
    if (sparse && i / (64 << 10) % 4 == 3)
      continue;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    memcpy (bytes + i, &x, 8);
  }
  return bytes;
}

/* ---- Exports ---- */

struct opening {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_over;
  struct export *export;
  int status;
};

static void
opened (void *opaque, struct export *export, int status, const char *why)
{
  struct opening *opening = opaque;
  LOCKED (&opening->lock);

  CHECK ((status == 0) == (export != NULL));
  CHECK ((status == 0) == (why == NULL));
  opening->export = export;
  opening->status = status;
  opening->is_over = true;
  pthread_cond_signal (&opening->changed);
}

int
fixture_open (struct fixture *fixture, const char *name,
              struct export **ret_export)
{
  struct opening opening = { .lock = PTHREAD_MUTEX_INITIALIZER,
                             .changed = PTHREAD_COND_INITIALIZER };

  pager_open_export (fixture->pager, name, opened, &opening);
  pthread_mutex_lock (&opening.lock);
  while (!opening.is_over)
    pthread_cond_wait (&opening.changed, &opening.lock);
  pthread_mutex_unlock (&opening.lock);
  if (opening.status == 0) {
    *ret_export = opening.export;
    export_client_entered (opening.export);
  }
  return opening.status;
}

void
fixture_close (struct export *export)
{
  export_client_left (export);
  export_unref (export);
}

/* ---- Reads ---- */

static void
completed (struct read_op *op)
{
  struct test_read *read = (struct test_read *) op;
  LOCKED (&read->lock);

  read->completions++;
  pthread_cond_broadcast (&read->changed);
}

static void
test_read_init (struct test_read *read, struct export *export,
                uint64_t offset, uint32_t len)
{
  memset (read, 0, sizeof *read);
  pthread_mutex_init (&read->lock, NULL);
  pthread_cond_init (&read->changed, NULL);
  read->op.export = export;
  read->op.offset = offset;
  read->op.len = len;
  read->op.complete = completed;
}

static bool
started (struct test_read *read, bool at_once)
{
  if (at_once)
    completed (&read->op);
  return at_once;
}

bool
test_read_start (struct test_read *read, struct export *export,
                 uint64_t offset, uint32_t len)
{
  test_read_init (read, export, offset, len);
  return started (read, export_read (&read->op));
}

bool
test_map_start (struct test_read *read, struct export_map *map,
                struct export *export, uint64_t offset, uint32_t len)
{
  test_read_init (read, export, offset, len);
  return started (read, export_map (&read->op, map));
}

bool
test_read_is_complete (struct test_read *read)
{
  LOCKED (&read->lock);

  CHECK (read->completions <= 1);
  return read->completions == 1;
}

int
test_read_wait (struct test_read *read)
{
  LOCKED (&read->lock);

  while (read->completions == 0)
    pthread_cond_wait (&read->changed, &read->lock);
  CHECK_EQ (read->completions, 1);
  return read->op.status;
}

void
test_read_compare (const struct test_read *read, const uint8_t *wanted)
{
  static const uint8_t zeros[4096];
  uint64_t pos = 0;
  size_t i;

  for (i = 0; i < read->op.nr_pieces; i++) {
    const struct read_piece *piece = &read->op.pieces[i];
    uint32_t done, n;

    for (done = 0; done < piece->len; done += n) {
      n = piece->len - done;
      if (piece->data == NULL && n > sizeof zeros)
        n = sizeof zeros;
      CHECK_EQ (memcmp (piece->data ? piece->data + done : zeros,
                        wanted + pos + done, n),
                0);
    }
    pos += piece->len;
  }
  CHECK_EQ (pos, read->op.status == 0
                   ? read->op.len
                   : read->op.bad_offset - read->op.offset);
}

void
test_read_release (struct test_read *read)
{
  read_op_release (&read->op);
  pthread_mutex_destroy (&read->lock);
  pthread_cond_destroy (&read->changed);
}

int
read_and_compare (struct export *export, const uint8_t *image,
                  uint64_t offset, uint32_t len)
{
  struct test_read read;
  int status;

  test_read_start (&read, export, offset, len);
  status = test_read_wait (&read);
  if (status == 0)
    test_read_compare (&read, image + offset);
  test_read_release (&read);
  return status;
}
