/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Options and their replies. */
#ifndef BP_CONFORM_OPTION_H
#define BP_CONFORM_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;

struct option_reply {
  uint32_t type;
  uint32_t len;
  uint8_t *data;
};

/* The data of an option, put together. */
struct option_data {
  size_t len;
  uint8_t bytes[64 << 10];
};

void put_u16 (struct option_data *data, uint16_t value);
void put_u32 (struct option_data *data, uint32_t value);
void put_bytes (struct option_data *data, const void *bytes, size_t len);

void send_option (struct session *session, uint32_t option,
                  const void *data, size_t len);

/* A header that promises LEN bytes, and none of them. */
void send_option_header (struct session *session, uint64_t magic,
                         uint32_t option, uint32_t len);

/* A reply to OPTION; a reply to something else is a failure. */
void recv_option_reply (struct session *session, uint32_t option,
                        struct option_reply *ret_reply);

/* The same, but returns false if the server has closed the connection. */
bool recv_option_reply_or_end (struct session *session, uint32_t option,
                               struct option_reply *ret_reply);

bool is_error_reply (uint32_t type);

/* The next reply to OPTION must be an acknowledgement without data. */
void expect_ack (struct session *session, uint32_t option);

/* The next reply to OPTION must be an error, WANTED if the standard's
 * SHOULD is kept.  The server may close the connection instead, for WHAT
 * breaks a rule that is mandatory for clients; if it does not, it must go
 * on: an ordinary INFO is then answered.
 */
void expect_refused (struct session *session, uint32_t option,
                     uint32_t wanted, const char *what);

/* Fail unless the export's INFO (or, where there is none, LIST) is
 * answered now.
 */
void expect_options_go_on (struct session *session, const char *after);

/* A string of the server: UTF-8 without NUL, at most 4096 bytes, and it
 * should be at most 256.
 */
void expect_string (const char *what, const uint8_t *text, size_t len);

#endif /* BP_CONFORM_OPTION_H */
