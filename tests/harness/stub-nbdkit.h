/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* nbdkit, for tests of the plugin's parts: see stub-nbdkit.c. */
#ifndef BP_STUB_NBDKIT_H
#define BP_STUB_NBDKIT_H

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_bool client_has_gone;

#endif /* BP_STUB_NBDKIT_H */
