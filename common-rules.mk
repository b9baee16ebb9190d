# SPDX-License-Identifier: BSD-3-Clause
# Included by every Makefile.am: the flags that all code is built with.

NULL =

# The lines of a text as those of a C string.
text_to_c = $(SED) -e 's/\\/&&/g; s/"/\\"/g; s/.*/  "&\\n"/'

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
