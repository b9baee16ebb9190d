/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Requests, on a connection that is attached, compared with a model that
 * says of each what must be answered; after DISC no answer may be missing.
 * It decodes if all was framed and ended in DISC.
 *
 * The first byte of an input is what was negotiated: bit 0 structured
 * replies, bits 1 and 2 the contexts base:allocation and
 * blobpager:residency, which need them.  Requests follow.
 */
#include <config.h>

#include <string.h>

#include "daemon/front/meta-context.h"
#include "fuzz/fuzz.h"
#include "fuzz/nbd-model.h"
#include "fuzz/nbd-server.h"
#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"

const char fuzz_target[] = "nbd-request";
bool fuzz_decoded;

static const char export_name[] = "corrupt";
enum {
  NAME_LEN = sizeof export_name - 1,
  /* Of the answer to GO: export, block size and acknowledgement. */
  GO_ANSWER_SIZE = 3 * NBD_OPTION_REPLY_SIZE + 12 + 14,
  MAX_HANDSHAKE = 256,
};

/* What the client says before the requests, and how much it hears. */
struct handshake {
  uint8_t bytes[MAX_HANDSHAKE];
  size_t len;
  size_t answer_len;
};

static void
say (struct handshake *handshake, const void *data, size_t len)
{
  MUST (len <= sizeof handshake->bytes - handshake->len);
  memcpy (handshake->bytes + handshake->len, data, len);
  handshake->len += len;
}

static void
say_u32 (struct handshake *handshake, uint32_t v)
{
  uint8_t bytes[4];

  put_be32 (bytes, v);
  say (handshake, bytes, sizeof bytes);
}

static void
say_string (struct handshake *handshake, const char *string)
{
  say_u32 (handshake, (uint32_t) strlen (string));
  say (handshake, string, strlen (string));
}

static void
say_option (struct handshake *handshake, uint32_t option, size_t len,
            size_t answer_len)
{
  say (handshake, "IHAVEOPT", 8);
  say_u32 (handshake, option);
  say_u32 (handshake, (uint32_t) len);
  handshake->answer_len += answer_len;
}

static void
set_contexts (struct handshake *handshake, unsigned contexts)
{
  size_t len = 4 + NAME_LEN + 4, answer_len = NBD_OPTION_REPLY_SIZE;
  uint32_t count = 0;
  enum map_kind kind;

  for (kind = 0; kind < NR_MAP_KINDS; kind++) {
    if (!(contexts & CONTEXT (kind)))
      continue;
    len += 4 + strlen (context_name (kind));
    answer_len += NBD_OPTION_REPLY_SIZE + 4 + strlen (context_name (kind));
    count++;
  }
  say_option (handshake, NBD_OPT_SET_META_CONTEXT, len, answer_len);
  say_string (handshake, export_name);
  say_u32 (handshake, count);
  for (kind = 0; kind < NR_MAP_KINDS; kind++)
    if (contexts & CONTEXT (kind))
      say_string (handshake, context_name (kind));
}

static void
attach (struct handshake *handshake, const struct nbd_model *model)
{
  *handshake = (struct handshake){ .answer_len = NBD_GREETING_SIZE };
  say_u32 (handshake, NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);
  if (model->is_structured)
    say_option (handshake, NBD_OPT_STRUCTURED_REPLY, 0,
                NBD_OPTION_REPLY_SIZE);
  if (model->contexts != 0)
    set_contexts (handshake, model->contexts);
  say_option (handshake, NBD_OPT_GO, 4 + NAME_LEN + 2, GO_ANSWER_SIZE);
  say_string (handshake, export_name);
  say (handshake, "\0\0", 2);
}

/* ---- What the server says ---- */

struct listener_state {
  struct nbd_model model;
  size_t skip; /* Of the handshake, still to come. */
  uint8_t buf[NBD_CHUNK_HEADER_SIZE + 16384];
  size_t len;    /* In buf; */
  size_t wanted; /* what there must be to go on. */
  struct content content;
};

/* The start of an answer has come: as much as was wanted. */
static void
look_at_head (struct listener_state *state)
{
  const uint32_t magic = get_be32 (state->buf);

  if (state->len == 4) {
    MUST (magic == NBD_SIMPLE_REPLY_MAGIC ||
          magic == NBD_STRUCTURED_REPLY_MAGIC);
    state->wanted = magic == NBD_SIMPLE_REPLY_MAGIC ? NBD_SIMPLE_REPLY_SIZE
                                                    : NBD_CHUNK_HEADER_SIZE;
    return;
  }
  if (magic == NBD_SIMPLE_REPLY_MAGIC)
    state->content = nbd_model_reply (&state->model, state->buf);
  else {
    if (state->len == NBD_CHUNK_HEADER_SIZE)
      state->wanted += nbd_model_head (state->buf);
    MUST (state->wanted <= sizeof state->buf);
    if (state->len < state->wanted)
      return;
    state->content = nbd_model_chunk (&state->model, state->buf);
  }
  state->len = 0;
  state->wanted = 4;
}

static size_t
take_content (struct content *content, const uint8_t *data, size_t len)
{
  const size_t n = MIN (len, content->len);

  MUST (memcmp (data, nbd_server_image () + content->offset, n) == 0);
  content->offset += n;
  content->len -= (uint32_t) n;
  return n;
}

static void
check_output (void *opaque, const uint8_t *data, size_t len)
{
  struct listener_state *state = opaque;
  size_t n;

  for (; len > 0; data += n, len -= n) {
    if (state->skip > 0) {
      n = MIN (len, state->skip);
      state->skip -= n;
    }
    else if (state->content.len > 0)
      n = take_content (&state->content, data, len);
    else {
      n = MIN (len, state->wanted - state->len);
      memcpy (state->buf + state->len, data, n);
      state->len += n;
      if (state->len == state->wanted)
        look_at_head (state);
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
  static struct listener_state state;
  struct handshake handshake;
  CLEANUP_FREE uint8_t *input = malloc (MAX_HANDSHAKE + size);
  uint8_t *requests;

  MUST (input != NULL);
  if (size == 0)
    return 0;
  memset (&state, 0, sizeof state);
  state.wanted = 4;
  state.model.is_structured = data[0] & 7;
  state.model.contexts = data[0] >> 1 & 3;
  attach (&handshake, &state.model);
  state.skip = handshake.answer_len;
  memcpy (input, handshake.bytes, handshake.len);
  requests = input + handshake.len;
  memcpy (requests, data + 1, size - 1);
  number_requests (requests, size - 1);
  if (!nbd_model_requests (&state.model, requests, size - 1))
    return 0;

  nbd_server_converse (input, handshake.len + size - 1, check_output,
                       &state);
  MUST (state.skip == 0);
  if (state.model.is_whole) {
    MUST (state.model.nr_expected == 0 && state.content.len == 0);
    MUST (state.len == 0);
    fuzz_decoded = true;
  }
  return 0;
}
