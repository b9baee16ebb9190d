# SPDX-License-Identifier: BSD-3-Clause
# Other people's programs as our clients, one small script each.

interop_scripts = \
	interop/test-file-system.sh \
	interop/test-vm.sh \
	interop/test-nbd-client.sh \
	interop/test-nbdcopy.sh \
	interop/test-nbdinfo.sh \
	interop/test-qemu-client.sh \
	interop/test-qemu-img-driver.sh \
	interop/test-tails.sh \
	$(NULL)

TESTS += $(interop_scripts)
EXTRA_DIST += $(interop_scripts)
