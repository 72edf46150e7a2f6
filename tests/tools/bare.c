/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The least DPDK process: starts EAL with the arguments, tells its mempool ops and
 * ends; with an argument behind EAL's ("-- stay") it stays.  Built by the test with
 * other libraries each time.
 */
#include <stdio.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mempool.h>

#ifdef THERE
/* A part that cannot lie anywhere else; the linker is told where. */
__attribute__((section(".there"), used)) static int there = 1;
#endif

int
main(int argc, char **argv)
{
	unsigned int i;
	int n = rte_eal_init(argc, argv);

	if (n < 0)
		return 1;
	printf("up\n");
	for (i = 0; i < rte_mempool_ops_table.num_ops; i++)
		printf("ops %u %s\n", i, rte_mempool_ops_table.ops[i].name);
	fflush(stdout);
	if (n + 1 < argc)
		pause();
	return 0;
}
