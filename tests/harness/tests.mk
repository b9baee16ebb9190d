# SPDX-License-Identifier: BSD-3-Clause
# Shared by the tests: shell functions, and C helpers.

EXTRA_DIST += \
	harness/functions.sh \
	harness/nbdkit-sanitized.sh \
	harness/sanitizer-log.sh \
	$(NULL)
