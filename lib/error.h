/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Errors.
 *
 * A function that can fail returns 0 (or a count) or a negative errno,
 * and describes the failure in its last parameter, which may be NULL.
 *
 *   -EBADMSG     content does not match its digest (corrupt)
 *   -EPROTO      malformed or out-of-order bytes
 *   -EOPNOTSUPP  well-formed but not supported
 *   -EINVAL      the caller's mistake
 *   -ENOENT      no such blob, image, profile or export
 *   -ERANGE      larger than a stated limit
 *   -EFBIG       a blob larger than 2^40 bytes
 *   -EBUSY       already under way
 *   -EPERM       not allowed on a read-only export
 *   -ESHUTDOWN   the program is ending
 *   -ENOMEM      out of memory
 *   -EIO, other  I/O, with the system's own code
 *
 * Corruption never looks like an I/O error or like absence.
 */
#ifndef BP_ERROR_H
#define BP_ERROR_H

/* What went wrong.  Owned by the caller, usually on its stack; filled in
 * only on failure.  Nothing is allocated, so it works when memory has
 * run out and needs no freeing.
 */
struct bp_error {
  int code;      /* Negative errno, equal to the return value. */
  char msg[200]; /* NUL-terminated; no newline, no trailing period. */
};

/* Describe a failure in ERR (if not NULL), as "object: what failed: why".
 * %m is the text of CODE, whatever errno is.  Returns CODE.
 */
int bp_error_set (struct bp_error *err, int code, const char *fmt, ...)
  __attribute__ ((format (printf, 3, 4), cold));

/* Put "PREFIX: " before the message of ERR.  Returns ERR's code, or CODE
 * if ERR is NULL.
 */
int bp_error_wrap (struct bp_error *err, int code, const char *fmt, ...)
  __attribute__ ((format (printf, 3, 4), cold));

#endif /* BP_ERROR_H */
