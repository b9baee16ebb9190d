# SPDX-License-Identifier: BSD-3-Clause
# The blobpager command: one cmd-*.c per subcommand.
cli_sources = \
	$(NULL)
