# SPDX-License-Identifier: BSD-3-Clause
# One fuzz target per decoder; make check replays the corpus.

fuzz_programs = \
	fuzz/fuzz-image-index \
	fuzz/fuzz-nbd-handshake \
	fuzz/fuzz-nbd-request \
	fuzz/fuzz-pack \
	fuzz/fuzz-profile \
	fuzz/fuzz-session-reply \
	fuzz/fuzz-session-request \
	fuzz/fuzz-sha256 \
	fuzz/fuzz-tag \
	$(NULL)

check_PROGRAMS += $(fuzz_programs)
TESTS += $(fuzz_programs)
EXTRA_DIST += \
	fuzz/README \
	fuzz/corpus \
	fuzz/fuzz.sh \
	$(NULL)

# The main () of every target.
noinst_LTLIBRARIES += fuzz/libfuzzdriver.la
fuzz_libfuzzdriver_la_SOURCES = \
	fuzz/fuzz.h \
	fuzz/regression-driver.c \
	$(NULL)
fuzz_libfuzzdriver_la_LIBADD = harness/libharness.la
fuzz_ldadd = \
	fuzz/libfuzzdriver.la \
	$(top_builddir)/lib/libblobpager.la \
	$(NULL)

fuzz_fuzz_image_index_SOURCES = fuzz/fuzz-image-index.c
fuzz_fuzz_image_index_LDADD = $(fuzz_ldadd)
fuzz_fuzz_profile_SOURCES = fuzz/fuzz-profile.c
fuzz_fuzz_profile_LDADD = $(fuzz_ldadd)
fuzz_fuzz_sha256_SOURCES = fuzz/fuzz-sha256.c
fuzz_fuzz_sha256_LDADD = $(fuzz_ldadd) $(LIBCRYPTO_LIBS)
fuzz_fuzz_session_reply_SOURCES = fuzz/fuzz-session-reply.c
fuzz_fuzz_session_reply_LDADD = $(fuzz_ldadd)
fuzz_fuzz_session_request_SOURCES = fuzz/fuzz-session-request.c
fuzz_fuzz_session_request_LDADD = $(fuzz_ldadd)

# The daemon's front, over the fake pager, which must come before it.
fuzz_nbd_sources = fuzz/nbd-server.c fuzz/nbd-server.h
fuzz_nbd_ldadd = \
	fuzz/libfuzzdriver.la \
	harness/libfronttest.la \
	$(top_builddir)/daemon/libdaemon.la \
	$(top_builddir)/lib/libblobpager.la \
	$(NULL)
fuzz_fuzz_nbd_handshake_SOURCES = \
	fuzz/fuzz-nbd-handshake.c $(fuzz_nbd_sources)
fuzz_fuzz_nbd_handshake_LDADD = $(fuzz_nbd_ldadd)
fuzz_fuzz_nbd_request_SOURCES = \
	fuzz/fuzz-nbd-request.c \
	fuzz/nbd-model.c \
	fuzz/nbd-model.h \
	$(fuzz_nbd_sources) \
	$(NULL)
fuzz_fuzz_nbd_request_LDADD = $(fuzz_nbd_ldadd)
fuzz_fuzz_pack_SOURCES = fuzz/fuzz-pack.c
fuzz_fuzz_pack_LDADD = $(fuzz_ldadd)
fuzz_fuzz_tag_SOURCES = fuzz/fuzz-tag.c
fuzz_fuzz_tag_LDADD = $(fuzz_ldadd)
