# SPDX-License-Identifier: BSD-3-Clause
# The NBD server.
front_sources = \
	front/front.h \
	$(NULL)
