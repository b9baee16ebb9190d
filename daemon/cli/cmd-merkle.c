/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpager merkle FILE...: print roots, as sha256sum prints digests. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/cli/cli.h"
#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/merkle.h"

enum {
  PIECE_BYTES = 1 << 20
};

static bool json;

static void
cleanup_builder (struct bp_merkle_builder **builder)
{
  bp_merkle_builder_free (*builder);
}
#define CLEANUP_BUILDER __attribute__ ((cleanup (cleanup_builder)))

/* The rest of FD. */
static int
add_file (struct bp_merkle_builder *builder, int fd, const char *name,
          struct bp_error *err)
{
  CLEANUP_FREE uint8_t *buf = malloc (PIECE_BYTES);

  if (buf == NULL)
    return bp_error_set (err, -ENOMEM, "%s: %m", name);
  for (;;) {
    const ssize_t n = read (fd, buf, PIECE_BYTES);
    int r;

    if (n == 0)
      return 0;
    if (n == -1 && errno == EINTR)
      continue;
    if (n == -1)
      return bp_error_set (err, -errno, "%s: read: %m", name);
    r = bp_merkle_builder_add (builder, buf, (size_t) n);
    if (r < 0)
      return bp_error_set (err, r, "%s: %s", name,
                           r == -EFBIG ? "larger than 2^40 bytes"
                                       : strerror (-r));
  }
}

static int
root_of_file (const char *name, struct bp_root *ret_root,
              uint64_t *ret_size, struct bp_error *err)
{
  CLEANUP_BUILDER struct bp_merkle_builder *builder = NULL;
  CLEANUP_CLOSE int opened = -1;
  int fd = STDIN_FILENO, r;

  if (strcmp (name, "-") != 0) {
    fd = opened = open (name, O_RDONLY | O_CLOEXEC);
    if (fd == -1)
      return bp_error_set (err, -errno, "%s: open: %m", name);
  }
  r = bp_merkle_builder_new (&builder, false);
  if (r < 0)
    return bp_error_set (err, r, "%s: %m", name);
  r = add_file (builder, fd, name, err);
  if (r < 0)
    return r;
  r = bp_merkle_builder_finish (builder, ret_root, ret_size, NULL, NULL);
  return r < 0 ? bp_error_set (err, r, "%s: %m", name) : 0;
}

static void
add_json (struct json_object *array, const char *root, uint64_t size,
          const char *name)
{
  struct json_object *item = json_object_new_object ();

  bp_json_add_string (item, "root", root);
  bp_json_add_string (item, "file", name);
  bp_json_add_u64 (item, "size", size);
  json_object_array_add (array, item);
}

static int
run (int argc, char **argv)
{
  CLEANUP_JSON struct json_object *array = json_object_new_array ();
  int status = CLI_DONE;

  cli_want_operands ("merkle", argc, 1, INT_MAX);
  for (int i = 0; i < argc; i++) {
    char hex[BP_ROOT_HEX_SIZE];
    struct bp_root root;
    struct bp_error err;
    uint64_t size;

    if (root_of_file (argv[i], &root, &size, &err) < 0) {
      status = cli_fail (&err);
      continue;
    }
    bp_root_format (&root, hex);
    if (json)
      add_json (array, hex, size, argv[i]);
    else
      printf ("%s  %s\n", hex, argv[i]);
  }
  if (json)
    cli_print_json (array);
  return status;
}

static const struct cli_option options[] = {
  CLI_OPTION_JSON (&json),
  { 0 },
};

const struct command cmd_merkle = {
  .name = "merkle",
  .synopsis = "[--json] FILE...",
  .summary = "print the Merkle roots of files",
  .options = options,
  .run = run,
};
