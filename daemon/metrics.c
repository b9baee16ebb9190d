/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The counters themselves. */
#include <config.h>

#include "daemon/metrics.h"

_Atomic uint64_t metrics[NR_METRICS];
