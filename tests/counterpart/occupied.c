/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The linker puts this where DPDK's primaries put their memory.
 */
__attribute__((section(".occupied"), used)) static char occupied[4096] = {1};
