# SPDX-License-Identifier: BSD-3-Clause
# The NBD server.
front_sources = \
	front/front.c \
	front/front.h \
	front/listener.c \
	front/listener.h \
	front/loop.c \
	front/loop.h \
	$(NULL)
