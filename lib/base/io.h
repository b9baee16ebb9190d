/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Whole reads and writes, and names beneath a directory.
 *
 * All return 0 (or a count, or a descriptor) or a negative errno.
 */
#ifndef BP_IO_H
#define BP_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read up to LEN bytes at OFFSET, stopping only at the end of the file.
 * Returns the bytes read, fewer than LEN only at the end.
 */
ssize_t bp_pread_all (int fd, void *buf, size_t len, uint64_t offset);

/* Read exactly LEN bytes at OFFSET; a file that ends before: -EPROTO. */
int bp_pread_exact (int fd, void *buf, size_t len, uint64_t offset);

int bp_pwrite_all (int fd, const void *buf, size_t len, uint64_t offset);
int bp_write_all (int fd, const void *buf, size_t len);

/* Open PATH beneath DIRFD, following no symbolic link in any component
 * (openat2 RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS).  O_CLOEXEC is added.
 * Returns a descriptor.
 */
int bp_openat_beneath (int dirfd, const char *path, int flags, mode_t mode);

/* The whole of a regular file of at most LIMIT bytes: -ERANGE if it is
 * larger, -EPROTO if it is no regular file.  The caller frees *ret_data;
 * a NUL stands behind the last byte.
 */
int bp_read_file (int dirfd, const char *path, size_t limit,
                  uint8_t **ret_data, size_t *ret_len);

/* Replace DIR_FD/PATH atomically: write TMP_PATH (beneath the same
 * directory), sync it, rename it, sync the directory of PATH.
 */
int bp_replace_file (int dirfd, const char *path, const char *tmp_path,
                     const void *data, size_t len);

/* Make the names in the directory at PATH beneath DIRFD durable. */
int bp_sync_dir (int dirfd, const char *path);

#endif /* BP_IO_H */
