# SPDX-License-Identifier: BSD-3-Clause
# Shared by the tests: shell functions, and C helpers.

EXTRA_DIST += \
	data/README \
	data/images.tsv \
	data/merkle.tsv \
	data/profile.tsv \
	data/sha256.tsv \
	harness/as-systemd.py \
	harness/control-talk.py \
	harness/crowd.py \
	harness/functions.sh \
	harness/menu.sh \
	harness/nbdkit-sanitized.sh \
	harness/nbdkit.supp \
	harness/profile-functions.sh \
	harness/sanitizer-log.sh \
	harness/store-fixture.h \
	harness/tls-functions.sh \
	$(NULL)

# Reading vectors and making bytes: add it to a test's LDADD.
noinst_LTLIBRARIES += harness/libharness.la
harness_libharness_la_SOURCES = \
	harness/image.c \
	harness/image.h \
	harness/synthetic-index.c \
	harness/synthetic-index.h \
	harness/vectors.c \
	harness/vectors.h \
	$(NULL)

# A client that speaks NBD by hand.
noinst_LTLIBRARIES += harness/libnbdclient.la
harness_libnbdclient_la_SOURCES = \
	harness/check.h \
	harness/nbd-client.c \
	harness/nbd-client.h \
	$(NULL)

# The front over a pager in memory, with such clients.
# Its pager takes the place of the daemon's: before $(LDADD).
noinst_LTLIBRARIES += harness/libfronttest.la
harness_libfronttest_la_SOURCES = \
	harness/check.h \
	harness/fake-map.c \
	harness/fake-map.h \
	harness/fake-pager.c \
	harness/fake-pager.h \
	harness/front-client.c \
	harness/front-client.h \
	harness/structured-read.c \
	harness/structured-read.h \
	$(NULL)
harness_libfronttest_la_LIBADD = harness/libnbdclient.la

# TLS for that client.
noinst_LTLIBRARIES += harness/libtlstest.la
harness_libtlstest_la_SOURCES = \
	harness/tls-client.c \
	harness/tls-client.h \
	$(NULL)

# The pager over a driver in memory, which takes the place of the daemon's:
# before $(LDADD).
noinst_LTLIBRARIES += harness/libpagertest.la
harness_libpagertest_la_SOURCES = \
	harness/check.h \
	harness/fake-fetcher.c \
	harness/fake-fetcher.h \
	harness/pager-fixture.c \
	harness/pager-fixture.h \
	$(NULL)

# A driver and its session, for C tests on libnbd.
noinst_LTLIBRARIES += harness/libtestdriver.la
harness_libtestdriver_la_SOURCES = \
	harness/test-driver.c \
	harness/test-driver.h \
	harness/test-session.c \
	harness/test-session.h \
	$(NULL)

# The profile manager's world, in memory.
noinst_LTLIBRARIES += harness/libworld.la
harness_libworld_la_SOURCES = \
	harness/check.h \
	harness/fake-driver.c \
	harness/fake-lane.c \
	harness/fake-state.h \
	harness/fake-world.c \
	harness/fake-world.h \
	$(NULL)

# Stores, drivers and fetches, for the tests of the fetcher.
noinst_LTLIBRARIES += harness/libfetching.la
harness_libfetching_la_SOURCES = \
	harness/fetching.c \
	harness/fetching.h \
	harness/vast-blob.c \
	$(NULL)

# For shell tests: what of an export can be read.
check_PROGRAMS += harness/read-map
harness_read_map_SOURCES = harness/read-map.c
harness_read_map_LDADD = $(top_builddir)/lib/libblobpager.la $(LIBNBD_LIBS)

# Programs that the shell tests of profiles use.
check_PROGRAMS += harness/nbd-reader harness/put-profile
harness_nbd_reader_SOURCES = harness/nbd-reader.c
harness_nbd_reader_LDADD = $(LIBNBD_LIBS) $(LIBCRYPTO_LIBS)
harness_put_profile_SOURCES = harness/put-profile.c
harness_put_profile_LDADD = $(top_builddir)/lib/libblobpager.la

# Preloaded into nbdkit: one by ../run in a sanitizer build, one by the test
# of blobs that hang.
EXTRA_DIST += \
	harness/hang-pread.c \
	harness/init-first.c \
	$(NULL)
noinst_DATA = harness/hang-pread.so
if SANITIZER
noinst_DATA += harness/init-first.so
endif
CLEANFILES = $(noinst_DATA)

harness/init-first.so: harness/init-first.c
	$(AM_V_CC)$(MKDIR_P) harness && \
	  $(CC) $(DEFS) -I$(top_builddir) $(WARNINGS_CFLAGS) -shared -fPIC \
	  -Wl,-z,initfirst -o $@ $(srcdir)/harness/init-first.c

harness/hang-pread.so: harness/hang-pread.c
	$(AM_V_CC)$(MKDIR_P) harness && \
	  $(CC) $(DEFS) -D_GNU_SOURCE -I$(top_builddir) $(WARNINGS_CFLAGS) \
	  -shared -fPIC -o $@ $(srcdir)/harness/hang-pread.c
