# SPDX-License-Identifier: BSD-3-Clause
# The control socket and the metrics.
control_sources = \
	control/control.h \
	control/control-path.c \
	control/control-path.h \
	$(NULL)
