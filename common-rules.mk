# SPDX-License-Identifier: BSD-3-Clause
# Included by every Makefile.am: the flags that all code is built with.

NULL =

AM_CPPFLAGS = \
	-I$(top_srcdir) \
	-I$(top_builddir) \
	-D_GNU_SOURCE \
	$(NULL)
AM_CFLAGS = \
	-pthread \
	-fvisibility=hidden \
	$(WARNINGS_CFLAGS) \
	$(SANITIZER_CFLAGS) \
	$(NULL)
AM_LDFLAGS = -pthread $(SANITIZER_CFLAGS)
