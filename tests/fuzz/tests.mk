# SPDX-License-Identifier: BSD-3-Clause
# One fuzz target per decoder; make check replays the corpus.
