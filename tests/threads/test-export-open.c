/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Names of exports: what they resolve to, and for how long. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/range.h"
#include "tests/harness/check.h"
#include "tests/harness/pager-fixture.h"

enum {
  MIB = 1 << 20,
  SIZE = MIB
};

/* Two images in a store. */
struct store {
  struct fixture f;
  uint8_t *bytes[2];
  struct bp_root roots[2];
  char hex[2][BP_ROOT_HEX_SIZE];
};

static void
store_init (struct store *store)
{
  static const char *const names[] = { "one", "two" };
  unsigned i;

  fixture_init (&store->f, 64 * MIB);
  for (i = 0; i < 2; i++) {
    store->bytes[i] = image_bytes (SIZE, 50 + i, false);
    store->roots[i] =
      fake_add_image (store->f.driver, names[i], store->bytes[i], SIZE);
    bp_root_format (&store->roots[i], store->hex[i]);
  }
}

static void
store_done (struct store *store)
{
  fake_wait_users (store->f.driver, 0);
  fixture_done (&store->f);
  free (store->bytes[0]);
  free (store->bytes[1]);
}

static struct export *
must_open (struct store *store, const char *name, unsigned image)
{
  struct export *export;

  CHECK_EQ (fixture_open (&store->f, name, &export), 0);
  CHECK (bp_root_equal (&export_get_info (export)->root,
                        &store->roots[image]));
  CHECK_EQ (read_and_compare (export, store->bytes[image], 0, SIZE), 0);
  return export;
}

static int
status_of (struct store *store, const char *name)
{
  struct export *export;
  int r = fixture_open (&store->f, name, &export);

  if (r == 0)
    fixture_close (export);
  return r;
}

static void
an_image_is_served_by_its_tag_its_root_and_both (void)
{
  struct store store;
  struct export *export;
  char name[256];

  store_init (&store);
  export = must_open (&store, "two", 1);
  CHECK_EQ (strcmp (export_get_info (export)->tag, "two"), 0);
  CHECK_EQ (export_placed_bytes (export), SIZE);
  fixture_close (export);

  export = must_open (&store, store.hex[0], 0);
  CHECK_EQ (strcmp (export_get_info (export)->tag, ""), 0);
  fixture_close (export);

  /* The tag is for the profile; the root is what is served. */
  snprintf (name, sizeof name, "two@%s", store.hex[0]);
  export = must_open (&store, name, 0);
  CHECK_EQ (strcmp (export_get_info (export)->tag, "two"), 0);
  CHECK_EQ (strcmp (export_get_info (export)->name, name), 0);
  fixture_close (export);
  store_done (&store);
}

static void
no_name_is_the_only_image (void)
{
  struct store store;
  struct fixture f;
  uint8_t *bytes = image_bytes (SIZE, 1, false);
  struct export *export;

  store_init (&store);
  CHECK_EQ (status_of (&store, ""), -ENOENT); /* There are two. */
  store_done (&store);

  fixture_init (&f, 64 * MIB);
  CHECK_EQ (fixture_open (&f, "", &export), -ENOENT);
  fake_add_image (f.driver, "only", bytes, SIZE);
  CHECK_EQ (fixture_open (&f, "", &export), 0);
  CHECK_EQ (strcmp (export_get_info (export)->name, "only"), 0);
  fixture_close (export);
  fixture_done (&f);
  free (bytes);
}

static void
what_is_no_export_is_not_found (void)
{
  static const char *const names[] = {
    "three",
    "session",
    "../one",
    "one@",
    "@",
    "one@12",
    "blob/",
    "blob/one",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "000000000000000000000000000000000000000000000000000000000000000",
    "one@0000000000000000000000000000000000000000000000000000000000000000",
    "blob/0000000000000000000000000000000000000000000000000000000000000000",
  };
  struct store store;
  char name[5000];
  size_t i;

  store_init (&store);
  for (i = 0; i < ARRAY_LEN (names); i++)
    CHECK_EQ (status_of (&store, names[i]), -ENOENT);
  memset (name, 'a', sizeof name);
  for (i = 100; i < sizeof name; i += 77) {
    name[i] = '\0';
    CHECK_EQ (status_of (&store, name), -ENOENT);
    name[i] = 'a';
  }
  snprintf (name, sizeof name, "%0200d@%s", 1, store.hex[0]);
  CHECK_EQ (status_of (&store, name), -ENOENT);
  store_done (&store);
}

static void
a_tag_that_lies_about_the_size_is_refused (void)
{
  struct store store;

  store_init (&store);
  fake_set_tag (store.f.driver, "one", &store.roots[0], SIZE + 4096, 10);
  CHECK_EQ (status_of (&store, "one"), -EPROTO);
  store_done (&store);
}

static void
a_tag_whose_index_is_missing_does_not_look_like_no_tag (void)
{
  const struct bp_root nowhere = { { 1, 2, 3 } };
  struct store store;

  store_init (&store);
  fake_set_tag (store.f.driver, "ghost", &nowhere, SIZE, 10);
  CHECK_EQ (status_of (&store, "ghost"), -EIO);
  CHECK_EQ (status_of (&store, "nobody"), -ENOENT);
  store_done (&store);
}

static void
a_tag_that_lies_about_its_segments_is_served (void)
{
  static const uint64_t lies[] = { 0, 1, 100000, UINT64_MAX };
  struct store store;
  size_t i;

  store_init (&store);
  for (i = 0; i < ARRAY_LEN (lies); i++) {
    fake_set_tag (store.f.driver, "one", &store.roots[0], SIZE, lies[i]);
    fixture_close (must_open (&store, "one", 0));
  }
  store_done (&store);
}

static void
a_pinned_tag_serves_its_root_only (void)
{
  struct store store;
  struct pin_option pin = { .tag = (char *) (uintptr_t) "one" };
  char name[256];

  store_init (&store);
  pin.root = store.roots[0];
  store.f.options.pins = &pin;
  store.f.options.nr_pins = 1;
  CHECK_EQ (status_of (&store, "one"), 0);
  CHECK_EQ (status_of (&store, "two"), 0);
  fake_set_tag (store.f.driver, "one", &store.roots[1], SIZE, 10);
  CHECK_EQ (status_of (&store, "one"), -EPERM);
  snprintf (name, sizeof name, "one@%s", store.hex[1]);
  CHECK_EQ (status_of (&store, name), -EPERM);
  snprintf (name, sizeof name, "one@%s", store.hex[0]);
  CHECK_EQ (status_of (&store, name), 0);
  store_done (&store);
}

static void
clients_share_a_root_until_the_last_has_left (void)
{
  struct store store;
  struct export *first, *second;

  store_init (&store);
  first = must_open (&store, "one", 0);
  fake_set_tag (store.f.driver, "one", &store.roots[1], SIZE, 10);
  second = must_open (&store, "one", 0);
  CHECK (first == second);
  fixture_close (first);
  first = must_open (&store, "one", 0);
  fixture_close (first);
  fixture_close (second);
  fixture_close (must_open (&store, "one", 1));
  store_done (&store);
}

static void
an_export_without_clients_is_resolved_afresh (void)
{
  struct store store;
  struct export *idle;

  store_init (&store);
  idle = must_open (&store, "one", 0);
  export_client_left (idle); /* Still referred to. */
  fixture_close (must_open (&store, "one", 0));
  fake_set_tag (store.f.driver, "one", &store.roots[1], SIZE, 10);
  fixture_close (must_open (&store, "one", 1));
  CHECK_EQ (read_and_compare (idle, store.bytes[0], 0, SIZE), 0);
  export_unref (idle);
  store_done (&store);
}

static void
the_driver_has_to_prove_the_size_of_a_blob (void)
{
  static const uint64_t lies[] = { 0, 1, SIZE - 1, SIZE + 1, 1 << 30,
                                   UINT64_MAX };
  struct store store;
  struct bp_root root;
  char name[80] = "blob/";
  size_t i;

  store_init (&store);
  root = fake_add_blob (store.f.driver, store.bytes[0], SIZE);
  bp_root_format (&root, name + 5);
  for (i = 0; i < ARRAY_LEN (lies); i++) {
    fake_lie (store.f.driver, &root, lies[i]);
    CHECK_EQ (status_of (&store, name), -EPROTO);
  }
  fake_lie (store.f.driver, &root, SIZE);
  CHECK_EQ (status_of (&store, name), 0);
  store_done (&store);
}

static void
tags_are_resolved_afresh_when_they_are_to_be_forgotten (void)
{
  struct store store;
  struct export *first, *second;

  store_init (&store);
  first = must_open (&store, "one", 0);
  fake_set_tag (store.f.driver, "one", &store.roots[1], SIZE, 10);
  pager_forget_tags (store.f.pager);
  second = must_open (&store, "one", 1);
  CHECK_EQ (read_and_compare (first, store.bytes[0], 0, SIZE), 0);
  fixture_close (first);
  fixture_close (second);
  store_done (&store);
}

static void
count_export (void *opaque, struct export *export)
{
  struct export_counts counts;

  export_get_counts (export, &counts);
  CHECK_EQ (counts.clients, 0);
  if (strcmp (export_get_info (export)->name, "one") == 0)
    *(uint64_t *) opaque += counts.reads;
}

static void
counts_outlive_the_clients (void)
{
  struct store store;
  uint64_t reads = 0;
  unsigned i;

  store_init (&store);
  for (i = 0; i < 3; i++)
    fixture_close (must_open (&store, "one", 0));
  pager_for_each_export (store.f.pager, count_export, &reads);
  CHECK_EQ (reads, 3);
  store_done (&store);
}

static void
count_any (void *opaque, struct export *export)
{
  (void) export;
  ++*(unsigned *) opaque;
}

static void
exports_without_clients_do_not_pile_up (void)
{
  struct store store;
  unsigned known = 0, i;
  char name[256];

  store_init (&store);
  for (i = 0; i < 200; i++) {
    snprintf (name, sizeof name, "tag%u@%s", i, store.hex[0]);
    CHECK_EQ (status_of (&store, name), 0);
  }
  fake_wait_users (store.f.driver, 0);
  pager_for_each_export (store.f.pager, count_any, &known);
  CHECK (known >= 10);
  CHECK (known <= 64);
  store_done (&store);
}

int
main (void)
{
  RUN (an_image_is_served_by_its_tag_its_root_and_both);
  RUN (no_name_is_the_only_image);
  RUN (what_is_no_export_is_not_found);
  RUN (a_tag_that_lies_about_the_size_is_refused);
  RUN (a_tag_whose_index_is_missing_does_not_look_like_no_tag);
  RUN (a_tag_that_lies_about_its_segments_is_served);
  RUN (a_pinned_tag_serves_its_root_only);
  RUN (clients_share_a_root_until_the_last_has_left);
  RUN (an_export_without_clients_is_resolved_afresh);
  RUN (the_driver_has_to_prove_the_size_of_a_blob);
  RUN (tags_are_resolved_afresh_when_they_are_to_be_forgotten);
  RUN (counts_outlive_the_clients);
  RUN (exports_without_clients_do_not_pile_up);
  return 0;
}
