/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "nfmeta-daq.h"

/* filled below */
static int
start(struct core *c)
{
	return core_fail(c, "dpdk: is not built yet");
}

const struct source source_ports = {
	.start = start,
};
