/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Where the control socket is when nobody says, for the daemon and for the
 * commands that talk to it.
 *
 * Threads: reads the environment; call it before any thread changes that.
 */
#ifndef BP_CONTROL_PATH_H
#define BP_CONTROL_PATH_H

/* Where the daemon binds: in the first directory of $RUNTIME_DIRECTORY,
 * else /run/blobpager for root, else $XDG_RUNTIME_DIR/blobpager.  The
 * caller frees it; NULL if there is no such place (or no memory).
 */
char *control_default_path (void);

/* Where the commands connect: the first of all these places where there is
 * something; if nowhere, the daemon's.  The caller frees it; NULL as above.
 */
char *control_find_path (void);

#endif /* BP_CONTROL_PATH_H */
