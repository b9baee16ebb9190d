# SPDX-License-Identifier: BSD-3-Clause
# Shared by the tests: shell functions, and C helpers.

EXTRA_DIST += \
	data/README \
	data/images.tsv \
	data/merkle.tsv \
	data/profile.tsv \
	harness/functions.sh \
	harness/nbdkit-sanitized.sh \
	harness/sanitizer-log.sh \
	$(NULL)

# Reading vectors and making bytes: add it to a test's LDADD.
noinst_LTLIBRARIES += harness/libharness.la
harness_libharness_la_SOURCES = \
	harness/image.c \
	harness/image.h \
	harness/vectors.c \
	harness/vectors.h \
	$(NULL)
