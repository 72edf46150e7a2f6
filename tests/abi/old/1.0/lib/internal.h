/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef NFMETA_INTERNAL_H
#define NFMETA_INTERNAL_H

/* What the rooms of lib/ share. */

#include <stddef.h>
#include <string.h>
#include <time.h>

#include <nfmeta/nfmeta.h>

/*
 * Set this thread's error sentence and return -code.  One line, no newline at
 * the end, both sides' values, what to do.
 */
__attribute__((format(printf, 2, 3))) int nfmeta__fail(int code, const char *fmt, ...);

/*
 * Take over an option struct of a caller that knows `given` bytes of it: what
 * the caller does not know is 0, what is not known here must be 0.
 *
 * @return 0, or -1: too small to be one, or an unknown tail is set
 */
static inline int
nfmeta__opts(void *to, size_t known, const void *from, size_t given)
{
	const uint8_t *tail = from;
	size_t i;

	if (given < sizeof(uint32_t))
		return -1;
	for (i = known; i < given; i++)
		if (tail[i] != 0)
			return -1;
	memset(to, 0, known);
	memcpy(to, from, given < known ? given : known);
	return 0;
}

static inline uint64_t
nfmeta__now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Fill in what this side publishes: versions and the layout of struct rte_mbuf. */
void nfmeta__handshake_local(struct nfmeta_shared_link *s);

/*
 * Judge the bytes of a handshake; needs no rte_eal_init.  The state of the link
 * is not judged, and nothing that is only known at run time (pools, rings).
 *
 * @param name   the link that was asked for
 * @param queue  the queue that was asked for
 * @return 0, or a refusal of nfmeta_link_attach()
 */
int nfmeta__handshake_check(const void *bytes, size_t len, const char *name, uint32_t queue);

#endif
