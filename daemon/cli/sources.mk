# SPDX-License-Identifier: BSD-3-Clause
# The blobpager command: one cmd-*.c per subcommand.
cli_sources = \
	cli/cli.c \
	cli/cli.h \
	cli/cmd-add.c \
	cli/cmd-import.c \
	cli/cmd-info.c \
	cli/cmd-ls.c \
	cli/cmd-merkle.c \
	cli/cmd-profile.c \
	cli/cmd-rm.c \
	cli/cmd-status.c \
	cli/cmd-verify.c \
	cli/control-client.c \
	cli/control-client.h \
	cli/image-import.c \
	cli/image-import.h \
	cli/import-file.c \
	cli/import-nbd.c \
	cli/import-source.c \
	cli/import-source.h \
	cli/main.c \
	cli/profile-actions.h \
	cli/profile-recordings.c \
	cli/profile-stored.c \
	cli/profile-text.c \
	cli/profile-text.h \
	cli/progress.c \
	cli/progress.h \
	cli/status-text.c \
	cli/status-text.h \
	cli/store-profiles.c \
	cli/store-profiles.h \
	cli/tag-json.c \
	cli/tag-json.h \
	$(NULL)
