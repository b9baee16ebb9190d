/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Importing a file or a block device: SEEK_DATA and SEEK_HOLE say where
 * there is something to read.
 *
 * A qcow2, VMDK or VHDX file holds a disk in a form of its own; stored as
 * it is, no VM would boot from it.  It is told by its first bytes.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/cli/import-source.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/range.h"

enum {
  PIECE_BYTES = 1 << 20
};

struct file_source {
  struct import_source base;
  int fd;
  uint8_t *buf; /* PIECE_BYTES bytes. */
};

static void
close_file (struct import_source *base)
{
  struct file_source *source = (struct file_source *) base;

  cleanup_close (&source->fd);
  free (source->buf);
  free (source);
}

/* ---- Reading ---- */

/* LEN bytes at OFFSET, all of them data. */
static int
read_data (struct file_source *source, uint64_t offset, uint64_t len,
           const struct import_sink *sink, struct bp_error *err)
{
  while (len > 0) {
    const size_t n = MIN (len, PIECE_BYTES);
    int r = bp_pread_exact (source->fd, source->buf, n, offset);

    if (r < 0)
      return bp_error_set (err, r == -EPROTO ? -EIO : r,
                           "%s: read at offset %llu: %s", source->base.what,
                           (unsigned long long) offset,
                           r == -EPROTO ? "the file has become shorter"
                                        : strerror (-r));
    r = sink->data (sink->opaque, source->buf, n, err);
    if (r < 0)
      return r;
    offset += n;
    len -= n;
  }
  return 0;
}

/* lseek, for what cannot do it: no holes.  Returns an offset in
 * [OFFSET, size].
 */
static uint64_t
seek_to (const struct file_source *source, uint64_t offset, int whence)
{
  const off_t r = lseek (source->fd, (off_t) offset, whence);
  const uint64_t size = source->base.size;

  if (r == -1)
    return whence == SEEK_DATA && errno != ENXIO ? offset : size;
  return MIN (MAX ((uint64_t) r, offset), size);
}

static int
read_file (struct import_source *base, const struct import_sink *sink,
           struct bp_error *err)
{
  struct file_source *source = (struct file_source *) base;
  uint64_t offset = 0;

  while (offset < base->size) {
    const uint64_t data = seek_to (source, offset, SEEK_DATA);
    uint64_t end = seek_to (source, data, SEEK_HOLE);
    int r = data > offset ? sink->hole (sink->opaque, data - offset, err) : 0;

    /* A file that changes under us may say "hole" where it said "data":
     * read a little all the same, so as to get on.
     */
    if (end == data)
      end = MIN (data + PIECE_BYTES, base->size);
    if (r == 0)
      r = read_data (source, data, end - data, sink, err);
    if (r < 0)
      return r;
    offset = end;
  }
  return 0;
}

/* ---- Opening ---- */

static int
find_size (struct file_source *source, struct bp_error *err)
{
  const char *what = source->base.what;
  struct stat st;
  off_t end;

  if (fstat (source->fd, &st) == -1)
    return bp_error_set (err, -errno, "%s: %m", what);
  if (!S_ISREG (st.st_mode) && !S_ISBLK (st.st_mode))
    return bp_error_set (err, -EINVAL,
                         "%s: neither a file, nor a block device, nor an "
                         "NBD URI",
                         what);
  end = lseek (source->fd, 0, SEEK_END);
  if (end == -1)
    return bp_error_set (err, -errno, "%s: find the size: %m", what);
  source->base.size = (uint64_t) end;
  return 0;
}

/* The name of the container format that starts with the LEN bytes at P,
 * or NULL.
 */
static const char *
container_format (const uint8_t *p, size_t len)
{
  static const struct {
    const char *format, *magic;
  } formats[] = {
    { "qcow2", "QFI\xfb" },
    { "vmdk", "KDMV" },
    { "vmdk", "COWD" },
    { "vmdk", "# Disk DescriptorFile" },
    { "vhdx", "vhdxfile" },
  };

  for (size_t i = 0; i < ARRAY_LEN (formats); i++) {
    const size_t n = strlen (formats[i].magic);

    if (len >= n && memcmp (p, formats[i].magic, n) == 0)
      return formats[i].format;
  }
  return NULL;
}

static int
refuse_container (struct file_source *source, const char **ret_format,
                  struct bp_error *err)
{
  const ssize_t n = bp_pread_all (source->fd, source->buf, 64, 0);
  const char *format;

  if (n < 0)
    return bp_error_set (err, (int) n, "%s: read: %m", source->base.what);
  format = container_format (source->buf, (size_t) n);
  if (format == NULL)
    return 0;
  *ret_format = format;
  return bp_error_set (err, -EOPNOTSUPP, "%s: is a %s file, not a disk",
                       source->base.what, format);
}

static const struct import_source_ops file_ops = {
  .read = read_file,
  .close = close_file,
};

int
import_file_open (struct import_source **ret_source, const char *what,
                  bool is_raw, const char **ret_format, struct bp_error *err)
{
  struct file_source *source = calloc (1, sizeof *source);
  int r = 0;

  if (source == NULL)
    return bp_error_set (err, -ENOMEM, "%s: %m", what);
  source->base.ops = &file_ops;
  source->base.what = what;
  source->buf = malloc (PIECE_BYTES);
  /* O_NONBLOCK: a FIFO must be refused, not waited for. */
  source->fd = open (what, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (source->fd == -1)
    r = bp_error_set (err, -errno, "%s: open: %m", what);
  else if (source->buf == NULL)
    r = bp_error_set (err, -ENOMEM, "%s: %m", what);
  if (r == 0)
    r = find_size (source, err);
  if (r == 0 && !is_raw)
    r = refuse_container (source, ret_format, err);
  if (r < 0) {
    close_file (&source->base);
    return r;
  }
  /* Advice only. */
  posix_fadvise (source->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  *ret_source = &source->base;
  return 0;
}
