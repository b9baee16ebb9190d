# SPDX-License-Identifier: BSD-3-Clause
# The blobpager command: one cmd-*.c per subcommand.
cli_sources = \
	cli/cli.c \
	cli/cli.h \
	cli/cmd-ls.c \
	cli/cmd-merkle.c \
	cli/cmd-rm.c \
	cli/main.c \
	cli/progress.c \
	cli/progress.h \
	cli/store-profiles.c \
	cli/store-profiles.h \
	cli/tag-json.c \
	cli/tag-json.h \
	$(NULL)
