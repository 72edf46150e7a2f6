/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * capdiff - are the packets of one capture those of the other?
 *
 * Packets are compared byte for byte.  Between any two addresses they must come
 * in the same order (that holds every flow, and its fragments, in order); so
 * must the packets that are not IP.  Between different pairs of addresses the
 * order is free: several queues may mix them.  With -f only the packets of each
 * flow must come in order: where flows are shunted, others may overtake.
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
#define PORTS (1 + PAIR)
#define REST (PORTS + 4)

struct packet {
	/*
	 * What has to be in order: IP version, then both addresses, lower one first;
	 * with -f also the ports, in the addresses' order, protocol, whether it is a
	 * later fragment, and VLAN ids.
	 */
	uint8_t pair[REST + 2 + 4];
	uint64_t place; /* in its capture, from 1 */
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

static bool by_flow;

static bool
is_extension(uint8_t proto)
{
	return proto == 0 || proto == 43 || proto == 44 || proto == 51 || proto == 60;
}

/* Finds what is behind the IP header at "off"; returns its protocol. */
static uint8_t
find_l4(const struct packet *p, uint32_t *off, bool *later)
{
	const uint8_t *b = p->bytes + *off;
	uint8_t proto, len;

	if (p->pair[0] == 4) {
		*later = ((b[6] & 0x1f) | b[7]) != 0;
		*off += (b[0] & 15u) * 4;
		return b[9];
	}
	proto = b[6];
	*off += 40;
	while (is_extension(proto) && *off + 8 <= p->len && !*later) {
		b = p->bytes + *off;
		len = proto == 44 ? 0 : b[1];
		*later = proto == 44 && (b[2] | (b[3] & 0xf8)) != 0;
		*off += proto == 51 ? (len + 2u) * 4 : (len + 1u) * 8;
		proto = b[0];
	}
	return proto;
}

/* The flow between the two addresses; l3: where the IP header is. */
static void
find_flow(struct packet *p, uint32_t l3, bool swap)
{
	uint32_t off = l3, i, vlans = 0;
	const uint8_t *b = p->bytes;
	bool later = false;
	uint8_t proto;

	proto = find_l4(p, &off, &later);
	p->pair[REST] = proto;
	p->pair[REST + 1] = later;
	for (i = 14; i + 2 <= l3 && vlans < 2; i += 4, vlans++) {
		p->pair[REST + 2 + 2 * vlans] = b[i] & 15;
		p->pair[REST + 3 + 2 * vlans] = b[i + 1];
	}
	if (later || off + 8 > p->len)
		return;
	if (proto == 6 || proto == 17 || proto == 132) {
		memcpy(p->pair + PORTS, b + off + (swap ? 2 : 0), 2);
		memcpy(p->pair + PORTS + 2, b + off + (swap ? 0 : 2), 2);
	} else if ((proto == 1 && (b[off] == 0 || b[off] == 8)) ||
		   (proto == 58 && (b[off] == 128 || b[off] == 129))) {
		memcpy(p->pair + PORTS, b + off + 4, 2); /* an echo's identifier */
	}
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
	order = memcmp(b + first, b + first + size, size);
	p->pair[0] = size == 4 ? 4 : 6;
	memcpy(p->pair + 1, b + first + (order > 0 ? size : 0), size);
	memcpy(p->pair + 1 + size, b + first + (order > 0 ? 0 : size), size);
	if (by_flow)
		find_flow(p, off + 2, order > 0);
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

	while ((c = getopt(argc, argv, "stf")) != -1) {
		if (c == 's')
			subset = true;
		else if (c == 't')
			times = true;
		else if (c == 'f')
			by_flow = true;
		else
			optind = argc + 1;
	}
	if (optind != argc - 2) {
		fprintf(stderr, "usage: capdiff [-s] [-t] [-f] CAPTURE OTHER\n"
				"  -s  OTHER may lack packets\n"
				"  -t  the times have to agree, too\n"
				"  -f  the order counts within flows only\n"
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
