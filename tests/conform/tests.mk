# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite for NBD servers, which is installed, and its tests.
# It shares no source with the daemon.

bin_PROGRAMS += conform/blobpager-nbd-conform
conform_blobpager_nbd_conform_SOURCES = \
	conform/apart.c \
	conform/apart.h \
	conform/channel.c \
	conform/channel.h \
	conform/check.c \
	conform/check.h \
	conform/checks-block-size.c \
	conform/checks-block-status.c \
	conform/checks-chunks.c \
	conform/checks-commands.c \
	conform/checks-errors.c \
	conform/checks-export-name.c \
	conform/checks-extents.c \
	conform/checks-flow.c \
	conform/checks-handshake.c \
	conform/checks-info.c \
	conform/checks-info-syntax.c \
	conform/checks-list.c \
	conform/checks-meta.c \
	conform/checks-meta-syntax.c \
	conform/checks-read.c \
	conform/checks-selection.c \
	conform/checks-several.c \
	conform/checks-structured.c \
	conform/checks-tls.c \
	conform/checks-write.c \
	conform/chunks.c \
	conform/chunks.h \
	conform/contexts.c \
	conform/contexts.h \
	conform/data.c \
	conform/data.h \
	conform/dial.c \
	conform/dial.h \
	conform/extents.c \
	conform/extents.h \
	conform/info.c \
	conform/info.h \
	conform/main.c \
	conform/option.c \
	conform/option.h \
	conform/options.c \
	conform/options.h \
	conform/probe.c \
	conform/probe.h \
	conform/protocol.c \
	conform/protocol.h \
	conform/session.c \
	conform/session.h \
	conform/suite.c \
	conform/suite.h \
	conform/target.c \
	conform/target.h \
	conform/tls.c \
	conform/tls.h \
	conform/transmission.c \
	conform/transmission.h \
	conform/uri.c \
	conform/uri.h \
	conform/utf8.c \
	conform/utf8.h \
	$(NULL)
nodist_conform_blobpager_nbd_conform_SOURCES = conform/synopsis.c
conform_blobpager_nbd_conform_LDADD = \
	$(top_builddir)/lib/base/libbase.la \
	$(LIBSSL_LIBS) \
	$(LIBCRYPTO_LIBS) \
	$(NULL)

conform_synopsis = $(top_srcdir)/man/synopsis-blobpager-nbd-conform.txt

conform/synopsis.c: $(conform_synopsis)
	$(AM_V_GEN)$(MKDIR_P) conform && { \
	  echo '#include "conform/options.h"'; \
	  echo 'const char conform_synopsis[] ='; \
	  $(text_to_c) $(conform_synopsis); \
	  echo '  ;'; \
	} > $@-t && mv $@-t $@

CLEANFILES += conform/synopsis.c conform/synopsis.c-t

# A server with bugs, for the test of the checks themselves.
check_PROGRAMS += conform/broken-server
conform_broken_server_SOURCES = \
	conform/broken-bugs.h \
	conform/broken-chunks.c \
	conform/broken-extents.c \
	conform/broken-handshake.c \
	conform/broken-info.c \
	conform/broken-meta.c \
	conform/broken-requests.c \
	conform/broken-server.c \
	conform/broken-tls.c \
	conform/broken-wire.c \
	conform/broken.h \
	conform/protocol.h \
	$(NULL)
conform_broken_server_LDADD = \
	$(top_builddir)/lib/base/libbase.la \
	$(LIBSSL_LIBS) \
	$(LIBCRYPTO_LIBS) \
	$(NULL)

# Shell tests: what the suite says of servers, and how it is used.
conform_scripts = \
	conform/test-conform-blobpagerd.sh \
	conform/test-conform-bugs.sh \
	conform/test-conform-nbd-server.sh \
	conform/test-conform-nbdkit.sh \
	conform/test-conform-qemu-nbd.sh \
	conform/test-conform-tls.sh \
	conform/test-conform-usage.sh \
	$(NULL)

TESTS += $(conform_scripts)
EXTRA_DIST += conform/functions.sh $(conform_scripts)
