# SPDX-License-Identifier: BSD-3-Clause
# The real programs together: shell scripts, and C programs on libnbd.

integration_scripts = \
	integration/test-lagsim.sh \
	$(NULL)

TESTS += $(integration_scripts)
EXTRA_DIST += $(integration_scripts)
