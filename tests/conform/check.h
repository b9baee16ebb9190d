/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* What a check is, and how it ends.
 *
 * A check is a sentence of the standard and a function that puts it to the
 * server.  It runs in a process of its own, which is also its arena: what a
 * check allocates and opens ends with that process, so nothing is freed,
 * and nothing that one check leaves behind can colour the next.
 *
 * The check passes by returning.  Everything else ends the process where
 * it is known:
 *
 *   fail ()     the server did what the text forbids, or not what it
 *               demands
 *   skip ()     the server does not offer what the check is about
 *   unreachable ()  there is no connection to be had
 *   should ()   a SHOULD was not kept: the check goes on and passes, with
 *               a remark, or fails with --strict
 *
 * What is printed on the way, and the last messages of the conversation
 * when it failed, become the diagnostics under the check's line.
 */
#ifndef BP_CONFORM_CHECK_H
#define BP_CONFORM_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct target;

/* How strong the sentence is. */
enum check_level {
  LEVEL_MUST,
  LEVEL_SHOULD, /* Alternatives pass, with a remark. */
  LEVEL_ROBUST, /* Implied: what one client does must not hurt another. */
};

struct check {
  const char *name; /* "group/the-sentence-in-short". */
  enum check_level level;
  const char *section; /* Heading of proto.md. */
  const char *text;    /* Quoted from there. */
  void (*run) (const struct target *target);
};

/* A list of checks; ends with a row without a name. */
extern const struct check handshake_checks[];
extern const struct check export_name_checks[];
extern const struct check info_checks[];
extern const struct check info_syntax_checks[];
extern const struct check block_size_checks[];
extern const struct check list_checks[];
extern const struct check meta_checks[];
extern const struct check meta_syntax_checks[];
extern const struct check selection_checks[];
extern const struct check read_checks[];
extern const struct check structured_checks[];
extern const struct check chunk_checks[];
extern const struct check block_status_checks[];
extern const struct check extent_checks[];
extern const struct check write_checks[];
extern const struct check error_checks[];
extern const struct check command_checks[];
extern const struct check flow_checks[];
extern const struct check several_checks[];
extern const struct check tls_checks[];

/* The exit status of a check's process. */
enum check_result {
  CHECK_PASSED = 0,
  CHECK_FAILED = 1,
  CHECK_SKIPPED = 2,
  CHECK_PASSED_REMARKS = 3, /* A SHOULD was not kept. */
  CHECK_UNREACHABLE = 4,    /* There is no server to put it to. */
};

/* ---- In a check's process ---- */

/* Start of the process: everything it waits for ends within TIMEOUT_S. */
void check_begin (unsigned timeout_s);

/* Its end: never returns. */
void check_end (void) __attribute__ ((noreturn));

/* CLOCK_MONOTONIC, in nanoseconds. */
uint64_t check_deadline_ns (void);

void fail (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2), noreturn, cold));
void unreachable (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2), noreturn, cold));
void skip (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2), noreturn, cold));
void remark (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

/* Fail unless KEPT; FMT says what was expected, and what came. */
#define expect(kept, ...) \
  do {                    \
    if (!(kept))          \
      fail (__VA_ARGS__); \
  } while (0)

/* A SHOULD, or a SHOULD NOT. */
void should (bool kept, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));

/* Fails, saying both, unless they are equal. */
void expect_u64 (const char *what, uint64_t wanted, uint64_t got);

/* Note a message of the conversation; the last ones are printed by fail. */
void trace (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

/* Zeroed memory that lasts as long as the check; fails if there is none. */
void *take_memory (size_t len);

#endif /* BP_CONFORM_CHECK_H */
