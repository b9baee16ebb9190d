# SPDX-License-Identifier: BSD-3-Clause
# The control socket and the metrics.
control_sources = \
	control/commands.c \
	control/commands.h \
	control/control.c \
	control/control.h \
	control/control-path.c \
	control/control-path.h \
	control/metrics-text.c \
	control/peer.c \
	control/peer.h \
	control/status.c \
	$(NULL)
