/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * An NF has to map the primary's memory at the primary's addresses.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "doctor.h"

#define CHECK "addresses"
#define BASE "start the primary with EAL's --base-virtaddr 0x100000000"

#define RANGES 64
#define ALIGN_MAX (1ull << 30) /* the largest hugepage */

struct ranges {
	uint64_t start[RANGES], end[RANGES];
	unsigned int n;
	uint64_t sum;
};

/* Shared files of the prefix, with what is reserved behind them (aligned) for more. */
static void
primary_ranges(const struct doctor *d, struct ranges *r)
{
	const char *map = text("%smap_", d->prefix), *dir = text("/dpdk/%s/", d->prefix);
	bool shared, before = false;
	size_t i;

	for (i = 0; i < d->maps.n; i++, before = shared) {
		const struct map *m = &d->maps.v[i];
		uint64_t *end = r->n > 0 ? &r->end[r->n - 1] : NULL;

		shared = strncmp(base_name(m->path), map, strlen(map)) == 0 ||
			 strstr(m->path, dir) != NULL ||
			 (before && m->reserved && m->path[0] == '\0' &&
			  m->start - *end < ALIGN_MAX);
		if (!shared)
			continue;
		r->sum += m->end - m->start;
		if (before && m->start - *end < ALIGN_MAX) {
			*end = m->end;
		} else if (r->n < RANGES) {
			r->start[r->n] = m->start;
			r->end[r->n++] = m->end;
		}
	}
}

static bool
meet(const struct ranges *r, uint64_t start, uint64_t end, uint64_t *at)
{
	unsigned int i;

	for (i = 0; i < r->n; i++)
		if (r->start[i] < end && r->end[i] > start) {
			*at = r->start[i] > start ? r->start[i] : start;
			return true;
		}
	return false;
}

/* A program that is linked to fixed addresses. */
static bool
fixed(const struct doctor *d, const struct ranges *r)
{
	uint64_t start[8], end[8], at;
	bool said = false;
	unsigned int k, n;
	struct elf e;
	int i;

	for (i = 0; i < d->nprograms; i++) {
		if (elf_open(&e, d->programs[i]) != 0)
			continue;
		n = elf_fixed(&e, start, end);
		for (k = 0; k < n; k++) {
			if (!meet(r, start[k], end[k], &at))
				continue;
			said = true;
			say(CHECK, PROBLEM, BAD_ADDRESS,
			    "link it with -pie, or move the primary (EAL's --base-virtaddr)",
			    "%s is linked to 0x%" PRIx64 ", where the primary has its memory",
			    d->programs[i], at);
			break;
		}
		elf_close(&e);
	}
	return said;
}

/* AddressSanitizer keeps a part of the address space for itself, on x86-64 this one. */
static bool
sanitizer(const struct doctor *d, const struct ranges *r)
{
	const struct lib *l;
	struct elf e;
	uint64_t at;
	bool has;

	if (!meet(r, 0x7fff8000, 0x10007fff8000, &at))
		return false;
	for (l = d->libs; l != NULL; l = l->next) {
		if (strncmp(base_name(l->path), "librte_", 7) == 0 || elf_open(&e, l->path) != 0)
			continue;
		has = elf_has(&e, "__asan_init");
		elf_close(&e);
		if (!has)
			continue;
		say(CHECK, PROBLEM, BAD_ADDRESS,
		    "start the primary with EAL's --base-virtaddr 0x7ea000000000",
		    "%s has AddressSanitizer, which keeps 0x%" PRIx64
		    " for itself, where the primary has its memory",
		    l->path, at);
		return true;
	}
	return false;
}

static bool
limit(const struct ranges *r)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_AS, &l) != 0 || l.rlim_cur == RLIM_INFINITY || l.rlim_cur > r->sum)
		return false;
	say(CHECK, PROBLEM, BAD_ADDRESS, "lift the limit (ulimit -v unlimited, LimitAS=)",
	    "the address space is limited to %llu MiB, the primary's memory takes %llu MiB of it",
	    (unsigned long long)l.rlim_cur >> 20, (unsigned long long)r->sum >> 20);
	return true;
}

/* Where the kernel puts libraries and programs, at random: x86-64, 47 bits. */
static bool
luck(const struct ranges *r)
{
#ifdef __x86_64__
	long long bits = file_number("/proc/sys/vm/mmap_rnd_bits"); /* root only */
	uint64_t at, span = 1ull << ((bits > 0 ? bits : 28) + 12);
	/* below the top: the stack's own room, 16 GiB; libraries, a few more */
	uint64_t low = 0x7ffffffff000 - span - (20ull << 30);
	uint64_t program = 0x555555554000;

	if (!meet(r, low, 0x800000000000, &at) &&
	    !meet(r, program, program + span + (4ull << 30), &at))
		return false;
	say(CHECK, WARNING, WELL, BASE,
	    "the primary has memory at 0x%" PRIx64
	    ", where the kernel puts programs and libraries%s: it is luck whether it is free in "
	    "the NF",
	    at, file_number("/proc/sys/kernel/randomize_va_space") == 0 ? "" : " at random");
	return true;
#else
	(void)r;
	return false;
#endif
}

void
check_addresses(struct doctor *d)
{
	struct ranges r = {.n = 0};
	bool said;

	if (d->primary != PRIMARY_ALIVE || !d->maps_read)
		return; /* said */
	primary_ranges(d, &r);
	if (r.n == 0) {
		say(CHECK, UNKNOWN, WELL, NULL, "the primary's memory is not found in its map");
		return;
	}
	/* all of them: each has something else to be done */
	said = fixed(d, &r);
	said = sanitizer(d, &r) || said;
	said = limit(&r) || said;
	said = luck(&r) || said;
	if (said)
		return;
	say(CHECK, OK, WELL, NULL,
	    "the primary's memory lies at 0x%" PRIx64 " to 0x%" PRIx64
	    ", where the kernel puts nothing by itself",
	    r.start[0], r.end[r.n - 1]);
}
