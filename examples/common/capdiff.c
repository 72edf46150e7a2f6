/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * capdiff - are the packets of one capture those of the other?
 *
 * Packets are compared byte for byte.  Between any two addresses they must come
 * in the same order (that holds every flow, and its fragments, in order); so
 * must the packets that are not IP.  Between different pairs of addresses the
 * order is free: several queues may mix them.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>

#define PAIR 32 /* bytes of two IPv6 addresses */

struct packet {
	uint8_t pair[PAIR + 1]; /* IP version, then both addresses, lower one first */
	uint64_t place;		/* in its capture, from 1 */
	uint64_t ns;
	uint32_t len;
	uint8_t *bytes;
};

struct capture {
	const char *path;
	struct packet *p;
	size_t n, room;
	uint64_t bytes;
};

static _Noreturn void
fail(const char *what, const char *path, const char *why)
{
	fprintf(stderr, "capdiff: %s \"%s\": %s\n", what, path, why);
	exit(2);
}

/* The two addresses behind Ethernet and its tags. */
static void
find_pair(struct packet *p)
{
	uint32_t off = 12, size, first;
	const uint8_t *b = p->bytes;
	int order;

	memset(p->pair, 0, sizeof(p->pair));
	while (off + 6 <= p->len &&
	       ((b[off] == 0x81 && b[off + 1] == 0x00) || (b[off] == 0x88 && b[off + 1] == 0xa8) ||
		(b[off] == 0x91 && b[off + 1] == 0x00)))
		off += 4;
	if (off + 2 > p->len)
		return;
	if (b[off] == 0x08 && b[off + 1] == 0x00) {
		size = 4;
		first = off + 2 + 12;
	} else if (b[off] == 0x86 && b[off + 1] == 0xdd) {
		size = 16;
		first = off + 2 + 8;
	} else {
		return;
	}
	if (first + 2 * size > p->len)
		return;
	order = memcmp(b + first, b + first + size, size) > 0;
	p->pair[0] = size == 4 ? 4 : 6;
	memcpy(p->pair + 1, b + first + (order ? size : 0), size);
	memcpy(p->pair + 1 + size, b + first + (order ? 0 : size), size);
}

static void
add(struct capture *c, const struct pcap_pkthdr *h, const u_char *data)
{
	struct packet *p;

	if (c->n == c->room) {
		c->room = c->room > 0 ? 2 * c->room : 4096;
		c->p = realloc(c->p, c->room * sizeof(*c->p));
		if (c->p == NULL)
			fail("reading", c->path, "out of memory");
	}
	p = &c->p[c->n++];
	p->place = c->n;
	p->ns = (uint64_t)h->ts.tv_sec * 1000000000 + (uint64_t)h->ts.tv_usec;
	p->len = h->caplen;
	p->bytes = malloc(h->caplen > 0 ? h->caplen : 1);
	if (p->bytes == NULL)
		fail("reading", c->path, "out of memory");
	memcpy(p->bytes, data, h->caplen);
	c->bytes += h->caplen;
	find_pair(p);
}

static int
by_pair(const void *a, const void *b)
{
	const struct packet *x = a, *y = b;
	int rc = memcmp(x->pair, y->pair, sizeof(x->pair));

	return rc != 0 ? rc : (x->place > y->place) - (x->place < y->place);
}

static void
read_capture(struct capture *c, const char *path)
{
	char err[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	const u_char *data;
	pcap_t *p;
	int rc;

	memset(c, 0, sizeof(*c));
	c->path = path;
	p = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, err);
	if (p == NULL)
		fail("cannot read", path, err);
	while ((rc = pcap_next_ex(p, &h, &data)) == 1)
		add(c, h, data);
	if (rc != PCAP_ERROR_BREAK)
		fail("cannot read", path, pcap_geterr(p));
	pcap_close(p);
	if (c->n > 0)
		qsort(c->p, c->n, sizeof(*c->p), by_pair);
}

static void
free_capture(struct capture *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		free(c->p[i].bytes);
	free(c->p);
}

static bool
same(const struct packet *x, const struct packet *y, bool times)
{
	return x->len == y->len && memcmp(x->bytes, y->bytes, x->len) == 0 &&
	       (!times || x->ns == y->ns);
}

/* Is this packet further on in the other capture's same pair? */
static size_t
find_later(const struct capture *c, size_t from, const struct packet *want, bool times)
{
	size_t i;

	for (i = from; i < c->n && memcmp(c->p[i].pair, want->pair, sizeof(want->pair)) == 0; i++)
		if (same(&c->p[i], want, times))
			return i;
	return SIZE_MAX;
}

/* Both are sorted by pair, then place: walk along them. */
static int
compare(const struct capture *a, const struct capture *b, bool subset, bool times)
{
	uint64_t missing = 0, extra = 0;
	size_t i = 0, j = 0, k;
	int order;

	while (i < a->n || j < b->n) {
		if (i == a->n)
			order = 1;
		else if (j == b->n)
			order = -1;
		else
			order = memcmp(a->p[i].pair, b->p[j].pair, sizeof(a->p[i].pair));
		if (order == 0 && same(&a->p[i], &b->p[j], times)) {
			i++;
			j++;
			continue;
		}
		if (order == 0)
			order = find_later(a, i, &b->p[j], times) != SIZE_MAX ? -1 : 1;
		if (order < 0) {
			if (!subset && missing + extra < 5)
				printf("packet %ju of \"%s\" is missing or late in \"%s\"\n",
				       (uintmax_t)a->p[i].place, a->path, b->path);
			missing++;
			i++;
			continue;
		}
		k = j++;
		if (missing + extra < 5)
			printf("packet %ju of \"%s\" is not in \"%s\", or out of order\n",
			       (uintmax_t)b->p[k].place, b->path, a->path);
		extra++;
	}
	if (extra > 0 || (missing > 0 && !subset)) {
		printf("differ: %ju missing or late, %ju not expected\n", (uintmax_t)missing,
		       (uintmax_t)extra);
		return 1;
	}
	if (subset)
		printf("same: %zu packets, %ju bytes; %ju others are left out\n", b->n,
		       (uintmax_t)b->bytes, (uintmax_t)missing);
	else
		printf("same: %zu packets, %ju bytes\n", a->n, (uintmax_t)a->bytes);
	return 0;
}

int
main(int argc, char **argv)
{
	bool subset = false, times = false;
	struct capture a, b;
	int c, rc;

	while ((c = getopt(argc, argv, "st")) != -1) {
		if (c == 's')
			subset = true;
		else if (c == 't')
			times = true;
		else
			optind = argc + 1;
	}
	if (optind != argc - 2) {
		fprintf(stderr, "usage: capdiff [-s] [-t] CAPTURE OTHER\n"
				"  -s  OTHER may lack packets\n"
				"  -t  the times have to agree, too\n"
				"Exit status: 0 same, 1 different, 2 cannot read.\n");
		return 2;
	}
	read_capture(&a, argv[optind]);
	read_capture(&b, argv[optind + 1]);
	rc = compare(&a, &b, subset, times);
	free_capture(&a);
	free_capture(&b);
	return rc;
}
