/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpager add FILE: store a file as one blob, whole. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/progress.h"
#include "lib/base/cleanup.h"
#include "lib/base/io.h"
#include "lib/base/json.h"

static const char *store_path;
static const char *compress;
static bool with_progress, json;

/* The file on its way. */
struct file {
  const char *name;
  int fd;
  uint64_t size;
  struct progress progress;
};

static int
open_file (struct file *file, struct bp_error *err)
{
  struct stat st;

  /* O_NONBLOCK: a FIFO must be refused, not waited for. */
  file->fd = open (file->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file->fd == -1 || fstat (file->fd, &st) == -1)
    return bp_error_set (err, -errno, "%s: open: %m", file->name);
  if (!S_ISREG (st.st_mode))
    return bp_error_set (err, -EINVAL, "%s: not a file", file->name);
  file->size = (uint64_t) st.st_size;
  return 0;
}

static int
read_file (void *opaque, uint64_t offset, void *buf, size_t len,
           struct bp_error *err)
{
  struct file *file = opaque;
  const int r = bp_pread_exact (file->fd, buf, len, offset);

  if (r < 0)
    return bp_error_set (err, r == -EPROTO ? -EIO : r, "%s: read: %s",
                         file->name,
                         r == -EPROTO ? "the file has become shorter"
                                      : strerror (-r));
  progress_show (&file->progress, offset, file->size);
  return 0;
}

static void
cleanup_import (struct bp_import **import)
{
  bp_import_free (*import);
}
#define CLEANUP_IMPORT __attribute__ ((cleanup (cleanup_import)))

static int
add (struct bp_store *store, struct file *file, enum bp_codec codec,
     struct bp_root *ret_root, struct bp_error *err)
{
  CLEANUP_IMPORT struct bp_import *import = NULL;
  bool is_new;
  int r = bp_import_begin (&import, store, codec, err);

  if (r == 0)
    r = bp_import_add_blob (import, file->size, read_file, file, ret_root,
                            &is_new, err);
  return r < 0 ? r : bp_import_commit (import, NULL, err);
}

static void
print_blob (const struct bp_root *root, const struct file *file)
{
  char hex[BP_ROOT_HEX_SIZE];

  bp_root_format (root, hex);
  if (json) {
    CLEANUP_JSON struct json_object *obj = json_object_new_object ();

    bp_json_add_string (obj, "root", hex);
    bp_json_add_string (obj, "file", file->name);
    bp_json_add_u64 (obj, "size", file->size);
    cli_print_json (obj);
    return;
  }
  printf ("%s  %s\n", hex, file->name);
}

static int
run (int argc, char **argv)
{
  CLEANUP_STORE struct bp_store *store = NULL;
  const enum bp_codec codec = cli_parse_codec ("add", compress);
  struct file file = { .fd = -1 };
  struct bp_root root;
  struct bp_error err;
  int r;

  cli_want_operands ("add", argc, 1, 1);
  store = cli_open_store ("add", store_path, BP_STORE_CREATE);
  if (store == NULL)
    return CLI_FAILED;
  file.name = argv[0];
  progress_start (&file.progress, "add", with_progress);
  r = open_file (&file, &err);
  if (r == 0)
    r = add (store, &file, codec, &root, &err);
  cleanup_close (&file.fd);
  progress_clear (&file.progress);
  if (r < 0)
    return cli_fail (&err);
  print_blob (&root, &file);
  return CLI_DONE;
}

static const struct cli_option options[] = {
  CLI_OPTION_STORE (&store_path),
  CLI_OPTION_COMPRESS (&compress),
  CLI_OPTION_PROGRESS (&with_progress),
  CLI_OPTION_JSON (&json),
  { 0 },
};

const struct command cmd_add = {
  .name = "add",
  .synopsis = "--store=DIR [--compress=zstd|none] [--progress] [--json] FILE",
  .summary = "store a file as one blob",
  .options = options,
  .run = run,
};
