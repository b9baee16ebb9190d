/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The session between daemon and driver, in bytes (blobpager-session(7)).
 *
 * `session` is a disk of 2^63 - 1 bytes.  An offset in it is
 *
 *   bit 62 clear: data     bit 61      stored (1) or decoded (0) bytes
 *                          bits 40-60  slot = key mod 2^21, never 0
 *                          bits 0-39   offset in the blob
 *   bit 62 set:   control  bits 25-61  request number n
 *                          bits 0-24   offset in the request or reply
 *
 * A request is one NBD write at the start of its area:
 *
 *    0  u32 op        4  u32 count (elements of a batch, otherwise 0)
 *    8  the op's payload, nothing behind it
 *
 * Its reply is read from the same area:
 *
 *    0  i32 status    4  u32 0    8  u64 length of all of it
 *   16  the op's reply, on success
 *
 * This file and session-proto-*.c are the only place that knows these
 * bytes.  Decoders check everything that can be checked without state.
 *
 * Threads: pure functions.
 */
#ifndef BP_SESSION_PROTO_H
#define BP_SESSION_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/merkle.h"
#include "lib/tag.h"

enum {
  BP_SESSION_VERSION = 1,
  BP_SESSION_ID_SIZE = 33, /* 32 hex digits and NUL. */
  BP_AREA_SIZE = 32 << 20, /* Bytes of a request's area. */
  BP_REPLY_HEADER_SIZE = 16,
  BP_MAX_UNANSWERED = 64, /* Requests of one connection. */
  BP_MAX_BATCH = 1024,    /* Elements of an OPEN or CLOSE. */
  BP_NR_SLOTS = 1 << 21,
  BP_OPEN_WILL_READ = 1,       /* OPEN flag: will be read soon. */
  BP_MAX_TREE_COUNT = 4096,    /* Digests of one TREE. */
  BP_MAX_FRAMES_COUNT = 16384, /* Sizes of one FRAMES. */
};
#define BP_SESSION_SIZE INT64_MAX
#define BP_CONTROL_BIT (UINT64_C (1) << 62)
#define BP_STORED_BIT (UINT64_C (1) << 61)
#define BP_SLOT_SHIFT 40
#define BP_DATA_OFFSET_MASK ((UINT64_C (1) << BP_SLOT_SHIFT) - 1)

enum bp_op {
  BP_OP_HELLO = 1,
  BP_OP_OPEN = 2,
  BP_OP_TREE = 3,
  BP_OP_FRAMES = 4,
  BP_OP_CLOSE = 5,
  BP_OP_RECORD_START = 6,
  BP_OP_RECORD_STOP = 7,
  BP_OP_RECORD_ABORT = 8,
  BP_OP_GET_IMAGE = 9,
  BP_OP_LIST_IMAGES = 10,
  BP_OP_GET_PROFILE = 11,
  BP_OP_WRITE_PROFILE = 12,
  BP_OP_PROFILE_USED = 13,
  BP_OP_LIST_PROFILES = 14,
  BP_OP_DELETE_PROFILE = 15,
};

/* ---- Offsets ---- */

static inline uint32_t
bp_key_slot (uint64_t key)
{
  return (uint32_t) (key % BP_NR_SLOTS);
}

static inline uint64_t
bp_data_offset (uint64_t key, uint64_t offset, bool stored)
{
  return (stored ? BP_STORED_BIT : 0) |
         (uint64_t) bp_key_slot (key) << BP_SLOT_SHIFT | offset;
}

static inline uint64_t
bp_control_offset (uint64_t n)
{
  return BP_CONTROL_BIT + n * BP_AREA_SIZE;
}

/* ---- Requests, in host values ---- */

struct bp_open_item {
  uint64_t key;
  struct bp_root root;
  uint32_t flags; /* BP_OPEN_WILL_READ. */
};

/* A decoded request.  Pointers are borrowed from the bytes decoded. */
struct bp_request {
  enum bp_op op;
  uint32_t count;          /* OPEN, CLOSE: elements of the batch. */
  const uint8_t *batch;    /* OPEN, CLOSE: read by bp_request_open_item and
                            bp_request_close_key. */
  uint32_t version;        /* HELLO. */
  uint64_t key;            /* TREE, FRAMES. */
  uint32_t level;          /* TREE. */
  uint64_t first;          /* TREE: digest; FRAMES: window. */
  uint32_t nr;             /* TREE: digests; FRAMES: windows. */
  uint64_t recording;      /* RECORD_STOP, RECORD_ABORT: id. */
  char name[BP_NAME_SIZE]; /* GET_IMAGE, *_PROFILE, PROFILE_USED; a valid
                              name of its kind. */
  struct bp_root root;     /* PROFILE_USED. */
  const char *meta;        /* WRITE_PROFILE, PROFILE_USED: JSON. */
  size_t meta_len;
  const uint8_t *data; /* WRITE_PROFILE. */
  size_t data_len;
};

/* Decode LEN bytes.  Returns 0; -EINVAL for an unknown op, a wrong
 * length, a count, name, level or key (0) that cannot be; -ERANGE for a
 * batch, profile or metadata larger than its limit.
 */
int bp_request_decode (const uint8_t *bytes, size_t len,
                       struct bp_request *ret_request, struct bp_error *err);

/* Element I < count of the batch.  Keys of 0 were refused by decode. */
void bp_request_open_item (const struct bp_request *request, uint32_t i,
                           struct bp_open_item *ret_item);
uint64_t bp_request_close_key (const struct bp_request *request, uint32_t i);

/* Encode the request that REQUEST describes; for OPEN and CLOSE the batch
 * comes from ITEMS or KEYS (count of them), otherwise NULL.  The caller
 * frees *ret_bytes.  Returns 0 or -ENOMEM.
 */
int bp_request_encode (const struct bp_request *request,
                       const struct bp_open_item *items,
                       const uint64_t *keys, uint8_t **ret_bytes,
                       size_t *ret_len);

/* ---- Replies ---- */

struct bp_hello_reply {
  uint32_t version;
  uint32_t max_unanswered; /* Requests of one connection. */
  uint64_t max_messages;   /* Of one recording's log. */
  uint32_t max_batch;      /* Elements of OPEN and CLOSE. */
  bool profiles_writable;
  char id[BP_SESSION_ID_SIZE];
};

struct bp_open_result {
  int status;           /* 0 or negative errno. */
  uint32_t codec;       /* enum bp_codec. */
  uint64_t size;        /* Bytes; the driver's word. */
  uint64_t stored_size; /* Bytes; the driver's word. */
};

enum {
  BP_HELLO_REPLY_SIZE = 56, /* Without the header. */
  BP_OPEN_RESULT_SIZE = 24, /* Each. */
};

/* The 16 bytes that stand before a reply of PAYLOAD_LEN bytes. */
void bp_reply_header_encode (int status, size_t payload_len,
                             uint8_t out[BP_REPLY_HEADER_SIZE]);

/* Returns 0 or -EPROTO: a positive status, a status below -4095, reserved
 * bits, a length below 16 or above BP_AREA_SIZE.  *ret_len is the payload's.
 */
int bp_reply_header_decode (const uint8_t bytes[BP_REPLY_HEADER_SIZE],
                            int *ret_status, size_t *ret_len);

void bp_hello_reply_encode (const struct bp_hello_reply *reply,
                            uint8_t out[BP_HELLO_REPLY_SIZE]);
int bp_hello_reply_decode (const uint8_t *bytes, size_t len,
                           struct bp_hello_reply *ret_reply,
                           struct bp_error *err);

void bp_open_result_encode (const struct bp_open_result *result,
                            uint8_t out[BP_OPEN_RESULT_SIZE]);
/* -EPROTO: impossible status, codec or size. */
int bp_open_result_decode (const uint8_t bytes[BP_OPEN_RESULT_SIZE],
                           struct bp_open_result *ret_result);

/* RECORD_START's reply: u64 id. */
/* TREE's: count digests.  FRAMES': count u32.  RECORD_STOP's: packed
 * FileMessages.  GET_IMAGE's: the tag's JSON.  LIST_IMAGES',
 * LIST_PROFILES': {"images":[…]}, {"profiles":[…]}.  GET_PROFILE's: u32
 * length of the metadata, u32 0, the metadata, the bytes:
 */
int bp_profile_reply_encode (const char *meta, size_t meta_len,
                             const uint8_t *data, size_t data_len,
                             uint8_t **ret_bytes, size_t *ret_len);
/* Results are borrowed from BYTES.  Returns 0 or -EPROTO. */
int bp_profile_reply_decode (const uint8_t *bytes, size_t len,
                             const char **ret_meta, size_t *ret_meta_len,
                             const uint8_t **ret_data, size_t *ret_data_len);

#endif /* BP_SESSION_PROTO_H */
