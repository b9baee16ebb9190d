/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The numbers of the NBD protocol (its proto.md), as far as we speak it:
 * fixed newstyle negotiation, then simple or structured replies.
 * Everything on the wire is big-endian.
 */
#ifndef BP_NBD_PROTOCOL_H
#define BP_NBD_PROTOCOL_H

#include <stdint.h>

/* ---- Negotiation ----
 *
 * S: magic, option magic, u16 handshake flags        18 bytes
 * C: u32 client flags
 * C: option magic, u32 option, u32 length, data      16 bytes + data
 * S: reply magic, u32 option, u32 type, u32 length, data
 *                                                    20 bytes + data
 */
#define NBD_MAGIC UINT64_C (0x4e42444d41474943)        /* NBDMAGIC */
#define NBD_OPTION_MAGIC UINT64_C (0x49484156454f5054) /* IHAVEOPT */
#define NBD_REPLY_MAGIC UINT64_C (0x0003e889045565a9)

enum {
  NBD_GREETING_SIZE = 18,
  NBD_CLIENT_FLAGS_SIZE = 4,
  NBD_OPTION_HEADER_SIZE = 16,
  NBD_OPTION_REPLY_SIZE = 20,
  NBD_MAX_STRING = 4096, /* Bytes of a name or description. */
};

enum {
  NBD_FLAG_FIXED_NEWSTYLE = 1 << 0, /* Both sides. */
  NBD_FLAG_NO_ZEROES = 1 << 1,
};

enum nbd_option {
  NBD_OPT_EXPORT_NAME = 1,
  NBD_OPT_ABORT = 2,
  NBD_OPT_LIST = 3,
  NBD_OPT_STARTTLS = 5,
  NBD_OPT_INFO = 6,
  NBD_OPT_GO = 7,
  NBD_OPT_STRUCTURED_REPLY = 8,
  NBD_OPT_LIST_META_CONTEXT = 9,
  NBD_OPT_SET_META_CONTEXT = 10,
};

enum {
  NBD_REP_ACK = 1,
  NBD_REP_SERVER = 2,
  NBD_REP_INFO = 3,
  NBD_REP_META_CONTEXT = 4,
};
#define NBD_REP_ERR(n) (UINT32_C (1) << 31 | (n))
#define NBD_REP_ERR_UNSUP NBD_REP_ERR (1)
#define NBD_REP_ERR_POLICY NBD_REP_ERR (2)
#define NBD_REP_ERR_INVALID NBD_REP_ERR (3)
#define NBD_REP_ERR_PLATFORM NBD_REP_ERR (4)
#define NBD_REP_ERR_TLS_REQD NBD_REP_ERR (5)
#define NBD_REP_ERR_UNKNOWN NBD_REP_ERR (6)
#define NBD_REP_ERR_SHUTDOWN NBD_REP_ERR (7)
#define NBD_REP_ERR_TOO_BIG NBD_REP_ERR (9)

enum {
  NBD_INFO_EXPORT = 0,
  NBD_INFO_NAME = 1,
  NBD_INFO_DESCRIPTION = 2,
  NBD_INFO_BLOCK_SIZE = 3,
};

/* Transmission flags of an export. */
enum {
  NBD_FLAG_HAS_FLAGS = 1 << 0,
  NBD_FLAG_READ_ONLY = 1 << 1,
  NBD_FLAG_SEND_DF = 1 << 7, /* Only with structured replies. */
  NBD_FLAG_CAN_MULTI_CONN = 1 << 8,
  NBD_FLAG_SEND_CACHE = 1 << 10,
};

/* ---- Transmission ----
 *
 * request: 0 u32 magic, 4 u16 flags, 6 u16 type, 8 cookie, 16 u64 offset,
 *          24 u32 length; a write's payload follows
 * simple reply: 0 u32 magic, 4 u32 error, 8 cookie; a read's bytes follow
 *          if the error is 0
 * chunk of a structured reply: 0 u32 magic, 4 u16 flags, 6 u16 type,
 *          8 cookie, 16 u32 length of what follows:
 *   OFFSET_DATA   0 u64 offset, the bytes
 *   OFFSET_HOLE   0 u64 offset, 8 u32 length
 *   BLOCK_STATUS  0 u32 context; of each extent u32 length, u32 flags
 *   ERROR         0 u32 error, 4 u16 length of the message, the message
 *   ERROR_OFFSET  the same, then u64 offset
 */
#define NBD_REQUEST_MAGIC UINT32_C (0x25609513)
#define NBD_SIMPLE_REPLY_MAGIC UINT32_C (0x67446698)
#define NBD_STRUCTURED_REPLY_MAGIC UINT32_C (0x668e33ef)

enum {
  NBD_REQUEST_SIZE = 28,
  NBD_SIMPLE_REPLY_SIZE = 16,
  NBD_CHUNK_HEADER_SIZE = 20,
  NBD_DATA_HEADER_SIZE = NBD_CHUNK_HEADER_SIZE + 8,
  NBD_HOLE_SIZE = NBD_CHUNK_HEADER_SIZE + 12,
  NBD_COOKIE_SIZE = 8,
  NBD_MAX_READ = 32 << 20, /* Bytes of one read. */
};

enum nbd_command {
  NBD_CMD_READ = 0,
  NBD_CMD_WRITE = 1,
  NBD_CMD_DISC = 2,
  NBD_CMD_FLUSH = 3,
  NBD_CMD_TRIM = 4,
  NBD_CMD_CACHE = 5,
  NBD_CMD_WRITE_ZEROES = 6,
  NBD_CMD_BLOCK_STATUS = 7,
};

enum {
  NBD_CMD_FLAG_DF = 1 << 2,      /* Of a read: one chunk of content at most. */
  NBD_CMD_FLAG_REQ_ONE = 1 << 3, /* Of BLOCK_STATUS: one extent. */
};

/* Flags of an extent in the context base:allocation. */
enum {
  NBD_STATE_HOLE = 1 << 0,
  NBD_STATE_ZERO = 1 << 1,
};

enum {
  NBD_REPLY_FLAG_DONE = 1 << 0, /* The last chunk of a reply. */
};

enum nbd_chunk {
  NBD_REPLY_TYPE_NONE = 0,
  NBD_REPLY_TYPE_OFFSET_DATA = 1,
  NBD_REPLY_TYPE_OFFSET_HOLE = 2,
  NBD_REPLY_TYPE_BLOCK_STATUS = 5,
  NBD_REPLY_TYPE_ERROR = 1 << 15 | 1,
  NBD_REPLY_TYPE_ERROR_OFFSET = 1 << 15 | 2,
};

/* Errors of a reply. */
enum {
  NBD_SUCCESS = 0,
  NBD_EPERM = 1,
  NBD_EIO = 5,
  NBD_ENOMEM = 12,
  NBD_EINVAL = 22,
};

#endif /* BP_NBD_PROTOCOL_H */
