/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The driver: one session with nbdkit-blobpager-plugin, its connections,
 * and the slow requests that travel on a connection of their own.
 *
 *   struct driver ─┬─ captive nbdkit (captive.c), or a URI
 *                  ├─ control connection: HELLO, lists, tags, profiles,
 *                  │  recordings                        (this file)
 *                  ├─ demand lanes ┐  a thread and a connection each:
 *                  └─ replay lanes ┘  OPEN, data, CLOSE    (fetcher.h)
 *
 * When the driver is lost, every key is gone with the session: the
 * observer is told, a new session is made with back-off (10 ms doubling
 * to 1 s), and fetches under way are retried on it.
 *
 * Nothing the driver says is trusted: names, sizes and JSON are bounded
 * and checked here; bytes by the verifier.
 */
#ifndef BP_DRIVER_H
#define BP_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/merkle.h"
#include "lib/tag.h"

struct driver;
struct fetcher;

struct driver_config {
  const char *store;  /* Start a captive nbdkit on this store … */
  const char *uri;    /* … or connect to this one. */
  unsigned timeout_s; /* --driver-timeout. */
};

/* What others must know of the session.  Called from driver threads with
 * no lock held; must not block.
 */
struct driver_observer {
  /* KEY was allocated for ROOT; called before any read of it is sent. */
  void (*key_opened) (void *opaque, uint64_t key,
                      const struct bp_root *root);
  /* The session is gone: its keys and recordings are no more. */
  void (*session_lost) (void *opaque);
  void *opaque;
};

/* Start; does not wait for the first session.  CONFIG is borrowed. */
int driver_new (struct driver **ret_driver,
                const struct driver_config *config, struct bp_error *err);

/* Set once, before anything is fetched. */
void driver_observe (struct driver *driver,
                     const struct driver_observer *observer);

/* Wait up to TIMEOUT_S for a session.  0, or why there is none yet. */
int driver_wait_ready (struct driver *driver, unsigned timeout_s,
                       struct bp_error *err);

/* Shutdown begins: whatever is under way or asked from now on, fetches
 * and slow requests alike, fails with -ESHUTDOWN as soon as may be, so
 * that those who wait for the driver can be joined.  When it returns, no
 * call of the observer is under way and none will come.
 */
void driver_shut_down (struct driver *driver);

/* End the session, fail what is under way with -ESHUTDOWN, stop the
 * captive nbdkit, join all threads.
 */
void driver_free (struct driver *driver);

struct fetcher *driver_fetcher (struct driver *driver);

/* For status: the URI (without secrets) and whether a session is up. */
const char *driver_uri (const struct driver *driver);
bool driver_is_connected (struct driver *driver);

/* ---- Slow requests.  Each blocks, at most driver-timeout, so none may be
 * called from an event loop or a lane.  Errors are the driver's, checked;
 * -EIO when there is no driver in time; -EPROTO for a malformed reply.
 * Results are the caller's to free.
 */
int driver_get_image (struct driver *driver, const char *name,
                      struct bp_tag *ret_tag, struct bp_error *err);
int driver_list_images (struct driver *driver, struct bp_tag **ret_tags,
                        size_t *ret_count, struct bp_error *err);
int driver_get_profile (struct driver *driver, const char *name,
                        char **ret_meta, uint8_t **ret_data,
                        size_t *ret_len, struct bp_error *err);
int driver_write_profile (struct driver *driver, const char *name,
                          const char *meta, const uint8_t *data, size_t len,
                          struct bp_error *err);
int driver_profile_used (struct driver *driver, const char *name,
                         const struct bp_root *root, const char *counters,
                         struct bp_error *err);
int driver_list_profiles (struct driver *driver, char **ret_json,
                          struct bp_error *err);
int driver_delete_profile (struct driver *driver, const char *name,
                           struct bp_error *err);

/* A recording belongs to the session it was started in: EPOCH, from the
 * start, makes stop and abort of a lost one fail with -EIO.
 */
struct driver_recording {
  uint64_t id;
  uint64_t epoch;      /* Number of the session. */
  uint64_t sent_start; /* fetcher_windows_sent when it was answered. */
};
int driver_record_start (struct driver *driver,
                         struct driver_recording *ret_recording,
                         struct bp_error *err);
/* The packed FileMessages. */
int driver_record_stop (struct driver *driver,
                        const struct driver_recording *recording,
                        uint8_t **ret_data, size_t *ret_len,
                        struct bp_error *err);
int driver_record_abort (struct driver *driver,
                         const struct driver_recording *recording,
                         struct bp_error *err);

#endif /* BP_DRIVER_H */
