# SPDX-License-Identifier: BSD-3-Clause
# Measuring tools, built with the tree.
