/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_IDLE_H
#define EXAMPLES_IDLE_H

/*
 * What a loop does that found nothing to do: spin, then pause, then let others run, then
 * sleep.  The longer the sleep, the less of the CPU an idle link takes, and the
 * later the first packet is seen.  The header is all there is: every NF uses it.
 */

#include <sched.h>
#include <stdint.h>
#include <unistd.h>

#include <rte_pause.h>

struct idle {
	uint32_t rounds;   /* without anything to do */
	uint32_t sleep_us; /* the longest sleep; 0: none, the CPU is this loop's own */
};

static inline void
idle_wait(struct idle *idle)
{
	uint32_t n = idle->rounds < UINT32_MAX ? ++idle->rounds : UINT32_MAX;

	if (n <= 64)
		return;
	if (n <= 1024 || idle->sleep_us == 0)
		rte_pause();
	else if (n <= 2048)
		sched_yield(); /* the other side may need this very CPU */
	else
		usleep(n < 4096 ? idle->sleep_us / 10 : idle->sleep_us);
}

static inline void
idle_over(struct idle *idle)
{
	idle->rounds = 0;
}

#endif
