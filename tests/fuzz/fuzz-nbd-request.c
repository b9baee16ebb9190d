/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Requests, on a connection that is attached: compared with a model that
 * says of each what must be answered.  Every answer belongs to a request,
 * has the model's error, and the image's bytes; after DISC none may be
 * missing.  It decodes if all was framed and ended in DISC.
 */
#include <config.h>

#include <string.h>

#include "daemon/front/nbd-protocol.h"
#include "fuzz/fuzz.h"
#include "fuzz/nbd-server.h"
#include "harness/fake-pager.h"
#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"

const char fuzz_target[] = "nbd-request";
bool fuzz_decoded;

/* Client flags, and GO for "corrupt". */
static const uint8_t attach[] =
  "\0\0\0\3"
  "IHAVEOPT\0\0\0\7\0\0\0\15\0\0\0\7"
  "corrupt\0\0";
enum {
  ATTACH_SIZE = sizeof attach - 1,
  /* Greeting; export, block size and acknowledgement. */
  ATTACHED_SIZE = NBD_GREETING_SIZE + 3 * NBD_OPTION_REPLY_SIZE + 12 + 14,
  MAX_EXPECTED = 4096,
};

struct expected {
  uint8_t cookie[NBD_COOKIE_SIZE];
  uint32_t error;
  uint64_t offset;
  uint32_t len; /* Bytes that follow a success. */
};

struct model {
  struct expected expected[MAX_EXPECTED]; /* Not yet answered. */
  size_t nr_expected;
  bool is_whole; /* Ended in DISC. */

  /* Of the server's bytes: */
  size_t skip; /* Of the handshake, still to come. */
  uint8_t header[NBD_SIMPLE_REPLY_SIZE];
  size_t header_len;
  uint64_t offset; /* Of the answer under way; */
  uint32_t len;    /* what is left of it. */
};

static uint32_t
expected_error (uint16_t flags, uint16_t type, uint64_t offset, uint32_t len)
{
  const bool is_inside = range_is_within (FAKE_SIZE, offset, len);

  switch (type) {
  case NBD_CMD_WRITE:
  case NBD_CMD_TRIM:
  case NBD_CMD_WRITE_ZEROES: return NBD_EPERM;
  case NBD_CMD_CACHE:
    return flags == 0 && len > 0 && is_inside ? 0 : NBD_EINVAL;
  case NBD_CMD_READ:
    if (flags != 0 || len == 0 || len > NBD_MAX_READ || !is_inside)
      return NBD_EINVAL;
    return offset < FAKE_BAD_OFFSET + FAKE_BAD_LEN &&
               offset + len > FAKE_BAD_OFFSET
             ? NBD_EIO
             : 0;
  default: return NBD_EINVAL;
  }
}

/* What SIZE bytes ask for. */
static void
model_requests (struct model *model, const uint8_t *data, size_t size)
{
  uint64_t pos = 0;

  while (pos + NBD_REQUEST_SIZE <= size &&
         model->nr_expected < MAX_EXPECTED) {
    const uint8_t *p = data + pos;
    const uint16_t type = get_be16 (p + 6);
    struct expected *e = &model->expected[model->nr_expected];

    if (get_be32 (p) != NBD_REQUEST_MAGIC)
      return;
    if (type == NBD_CMD_DISC) {
      model->is_whole = true;
      return;
    }
    memcpy (e->cookie, p + 8, NBD_COOKIE_SIZE);
    e->offset = get_be64 (p + 16);
    e->len = get_be32 (p + 24);
    e->error = expected_error (get_be16 (p + 4), type, e->offset, e->len);
    pos += NBD_REQUEST_SIZE + (type == NBD_CMD_WRITE ? e->len : 0);
    if (pos > size)
      return; /* Its payload does not come. */
    if (type != NBD_CMD_READ)
      e->len = 0;
    model->nr_expected++;
  }
}

/* A reply: find the request that it answers. */
static void
check_header (struct model *model)
{
  const uint32_t error = get_be32 (model->header + 4);
  struct expected *e = NULL;
  size_t i;

  MUST (get_be32 (model->header) == NBD_SIMPLE_REPLY_MAGIC);
  for (i = 0; i < model->nr_expected; i++) {
    if (memcmp (model->expected[i].cookie, model->header + 8,
                NBD_COOKIE_SIZE) == 0)
      e = &model->expected[i];
  }
  MUST (e != NULL && e->error == error);
  model->offset = e->offset;
  model->len = error == 0 ? e->len : 0;
  *e = model->expected[--model->nr_expected];
}

static void
check_output (void *opaque, const uint8_t *data, size_t len)
{
  struct model *model = opaque;
  size_t n;

  for (; len > 0; data += n, len -= n) {
    if (model->skip > 0) {
      n = MIN (len, model->skip);
      model->skip -= n;
    }
    else if (model->len > 0) {
      n = MIN (len, model->len);
      MUST (memcmp (data, nbd_server_image () + model->offset, n) == 0);
      model->offset += n;
      model->len -= (uint32_t) n;
    }
    else {
      n = MIN (len, sizeof model->header - model->header_len);
      memcpy (model->header + model->header_len, data, n);
      model->header_len += n;
      if (model->header_len == sizeof model->header) {
        model->header_len = 0;
        check_header (model);
      }
    }
  }
}

/* Give each request a cookie of its own, so that its answer is known. */
static void
number_requests (uint8_t *data, size_t size)
{
  uint64_t pos = 0, number = 0;

  while (pos + NBD_REQUEST_SIZE <= size &&
         get_be32 (data + pos) == NBD_REQUEST_MAGIC) {
    put_be64 (data + pos + 8, number++);
    pos += NBD_REQUEST_SIZE + (get_be16 (data + pos + 6) == NBD_CMD_WRITE
                                 ? get_be32 (data + pos + 24)
                                 : 0);
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static struct model model;
  CLEANUP_FREE uint8_t *input = malloc (ATTACH_SIZE + size);

  MUST (input != NULL);
  if (size > MAX_EXPECTED * NBD_REQUEST_SIZE)
    return 0;
  memcpy (input, attach, ATTACH_SIZE);
  if (size > 0)
    memcpy (input + ATTACH_SIZE, data, size);
  number_requests (input + ATTACH_SIZE, size);
  memset (&model, 0, sizeof model);
  model.skip = ATTACHED_SIZE;
  model_requests (&model, input + ATTACH_SIZE, size);
  nbd_server_converse (input, ATTACH_SIZE + size, check_output, &model);
  MUST (model.skip == 0);
  if (model.is_whole) {
    MUST (model.nr_expected == 0 && model.len == 0);
    fuzz_decoded = true;
  }
  return 0;
}
