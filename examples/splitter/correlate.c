/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ip.h>
#include <rte_jhash.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "announced.h"
#include "splitter.h"

#define NONE UINT32_MAX
#define PAYLOAD_MAX 4096 /* bytes of a packet that are looked into */
#define SIP_FLOWS 8	 /* from so many places media may come to one port */

/* Compared with memcmp: every byte that is not used is zero. */
struct endpoint {
	uint8_t addr[16];
	uint8_t port[2];
	uint8_t vlan[2][2]; /* those of the control session */
	uint8_t tenant[4];
	uint8_t proto;
	uint8_t ip_version;
	uint8_t zero[4];
};

struct expectation {
	struct endpoint at;
	uint64_t until; /* TSC */
	uint32_t master;
	uint16_t generation;
	uint8_t chain;
	uint8_t queue[LINKS_MAX];
	uint8_t flows;	     /* that may still be had */
	uint8_t used;	     /* one was */
	uint32_t same;	     /* next one in the bucket */
	uint32_t prev, next; /* by age */
};

struct master {
	uint32_t id;
	uint16_t generation;
};

struct correlate {
	struct correlate_opts o;
	struct flow_table *flows;
	uint64_t patience; /* TSC cycles */
	struct correlate_counts c;
	struct expectation *list;
	uint32_t oldest, newest, unused;
	uint32_t *buckets;
	uint32_t mask, seed;
	struct master *masters; /* of each slot of the flow table, if flow.expected */
	uint8_t copy[PAYLOAD_MAX];
};

/* ---- what is expected --------------------------------------------------------------- */

static uint32_t *
bucket(const struct correlate *c, const struct endpoint *at)
{
	return &c->buckets[rte_jhash(at, sizeof(*at), c->seed) & c->mask];
}

static struct expectation *
find(const struct correlate *c, const struct endpoint *at)
{
	uint32_t i;

	for (i = *bucket(c, at); i != NONE; i = c->list[i].same)
		if (memcmp(&c->list[i].at, at, sizeof(*at)) == 0)
			return &c->list[i];
	return NULL;
}

static void
age_append(struct correlate *c, struct expectation *e)
{
	uint32_t i = (uint32_t)(e - c->list);

	e->prev = c->newest;
	e->next = NONE;
	if (c->newest != NONE)
		c->list[c->newest].next = i;
	else
		c->oldest = i;
	c->newest = i;
}

static void
age_remove(struct correlate *c, struct expectation *e)
{
	if (e->prev != NONE)
		c->list[e->prev].next = e->next;
	else
		c->oldest = e->next;
	if (e->next != NONE)
		c->list[e->next].prev = e->prev;
	else
		c->newest = e->prev;
}

static void
forget(struct correlate *c, struct expectation *e)
{
	uint32_t i = (uint32_t)(e - c->list), *at = bucket(c, &e->at);

	while (*at != i)
		at = &c->list[*at].same;
	*at = e->same;
	age_remove(c, e);
	e->same = c->unused;
	c->unused = i;
	c->c.waiting--;
}

/* All wait equally long, so the oldest is over first. */
static void
expire(struct correlate *c, uint64_t now)
{
	struct expectation *e;

	while (c->oldest != NONE) {
		e = &c->list[c->oldest];
		if (e->until > now)
			return;
		c->c.expired += !e->used;
		forget(c, e);
	}
}

static struct expectation *
make(struct correlate *c, const struct endpoint *at)
{
	struct expectation *e;
	uint32_t *first;

	if (c->unused == NONE) {
		c->c.pushed_out++;
		forget(c, &c->list[c->oldest]);
	}
	e = &c->list[c->unused];
	c->unused = e->same;
	first = bucket(c, at);
	e->at = *at;
	e->same = *first;
	*first = (uint32_t)(e - c->list);
	c->c.waiting++;
	return e;
}

/* Who says it last has it: a port may be another call's now. */
static void
expect(struct correlate *c, const struct flow *f, const struct endpoint *at)
{
	uint8_t link;
	uint32_t id = flow_id(c->flows, f);
	struct expectation *e = find(c, at);

	if (e != NULL && e->master == id && e->generation == f->generation) {
		age_remove(c, e);
	} else {
		if (e != NULL) {
			c->c.replaced += !e->used;
			age_remove(c, e);
		} else {
			e = make(c, at);
		}
		e->used = 0;
		c->c.expected++;
	}
	e->master = id;
	e->generation = f->generation;
	e->chain = f->chain;
	for (link = 0; link < c->flows->first->links; link++)
		e->queue[link] = flow_queue(c->flows, f, link);
	e->flows = f->control == CONTROL_FTP ? 1 : SIP_FLOWS;
	e->until = c->flows->hand + c->patience;
	age_append(c, e);
}

/* ---- control sessions ---------------------------------------------------------------- */

static uint8_t
control_of(const struct correlate *c, const uint8_t port[2], uint8_t proto)
{
	uint16_t p = (uint16_t)(port[0] << 8 | port[1]);
	unsigned int i;

	for (i = 0; i < c->o.n; i++)
		if (c->o.ports[i].port == p &&
		    (proto == IPPROTO_TCP ||
		     (proto == IPPROTO_UDP && c->o.ports[i].control == CONTROL_SIP)))
			return c->o.ports[i].control;
	return 0;
}

/* Where both ends have such a port, the server is who was talked to first. */
static bool
from_server(const struct correlate *c, const struct flow *f, unsigned int dir)
{
	bool a = control_of(c, f->key.port_a, f->key.proto) != 0;
	bool b = control_of(c, f->key.port_b, f->key.proto) != 0;

	if (a && b)
		return dir != f->first_reverse;
	return dir == 0 ? a : b;
}

/*
 * What is behind the L4 header, without what Ethernet added, in one piece; NULL: it is not
 * to be looked at.  whole: nothing of the datagram is missing.  The other end throws away
 * what has a wrong checksum.
 */
static const uint8_t *
payload(struct correlate *c, const struct flow *f, const struct rte_mbuf *m,
	const struct nfmeta_record *r, uint32_t *len, bool *whole)
{
	const struct rte_ipv4_hdr *ip4;
	const struct rte_ipv6_hdr *ip6;
	const struct rte_udp_hdr *udp;
	uint32_t end, have;

	if ((r->flags & NFMETA_L4_VALID) == 0 || r->payload_off == NFMETA_OFF_NONE ||
	    (r->flags & (NFMETA_L3_CSUM_BAD | NFMETA_L4_CSUM_BAD)) != 0)
		return NULL;
	if (f->key.ip_version == 4) {
		ip4 = rte_pktmbuf_read(m, r->l3_off, sizeof(*ip4), c->copy);
		end = ip4 == NULL ? 0 : r->l3_off + rte_be_to_cpu_16(ip4->total_length);
	} else {
		ip6 = rte_pktmbuf_read(m, r->l3_off, sizeof(*ip6), c->copy);
		end = ip6 == NULL ? 0
				  : r->l3_off + sizeof(*ip6) + rte_be_to_cpu_16(ip6->payload_len);
	}
	*whole = false;
	if (f->key.proto == IPPROTO_UDP && (r->flags & NFMETA_FRAG_MASK) == 0) {
		udp = rte_pktmbuf_read(m, r->l4_off, sizeof(*udp), c->copy);
		end = udp == NULL ? 0
				  : RTE_MIN(end,
					    (uint32_t)r->l4_off + rte_be_to_cpu_16(udp->dgram_len));
		*whole = true;
	}
	have = RTE_MIN(end, m->pkt_len);
	if (have <= r->payload_off)
		return NULL;
	*len = RTE_MIN(have - r->payload_off, (uint32_t)PAYLOAD_MAX);
	*whole &= r->payload_off + *len == end;
	return rte_pktmbuf_read(m, r->payload_off, *len, c->copy);
}

static struct endpoint
endpoint_of(const struct flow *f, const struct announced *a, unsigned int dir)
{
	struct endpoint at;

	memset(&at, 0, sizeof(at));
	if (a->ip_version == 0)
		memcpy(at.addr, dir == 0 ? f->key.addr_a : f->key.addr_b, sizeof(at.addr));
	else
		memcpy(at.addr, a->addr, sizeof(at.addr));
	at.port[0] = (uint8_t)(a->port >> 8);
	at.port[1] = (uint8_t)a->port;
	memcpy(at.vlan, f->key.vlan, sizeof(at.vlan));
	memcpy(at.tenant, f->key.tenant, sizeof(at.tenant));
	at.proto = a->proto;
	at.ip_version = a->ip_version == 0 ? f->key.ip_version : a->ip_version;
	return at;
}

void
correlate_look(struct correlate *c, const struct flow *f, const struct rte_mbuf *m,
	       const struct nfmeta_record *r, unsigned int dir)
{
	struct announced said[ANNOUNCED_MAX];
	struct endpoint at;
	const uint8_t *data;
	unsigned int i, n;
	uint32_t len;
	bool whole;

	data = payload(c, f, m, r, &len, &whole);
	if (data == NULL)
		return;
	if (f->control == CONTROL_FTP)
		n = ftp_announced(data, len, from_server(c, f, dir), said);
	else
		n = sip_announced(data, len, whole, said);
	if (n > 0)
		expire(c, c->flows->hand);
	for (i = 0; i < n; i++) {
		at = endpoint_of(f, &said[i], dir);
		expect(c, f, &at); /* the same again is none */
	}
}

/* ---- a flow's first packet ------------------------------------------------------------- */

static struct expectation *
find_end(const struct correlate *c, const struct flow *f, const uint8_t addr[16],
	 const uint8_t port[2])
{
	struct endpoint at;

	memset(&at, 0, sizeof(at));
	memcpy(at.addr, addr, sizeof(at.addr));
	memcpy(at.port, port, sizeof(at.port));
	memcpy(at.vlan, f->key.vlan, sizeof(at.vlan));
	memcpy(at.tenant, f->key.tenant, sizeof(at.tenant));
	at.proto = f->key.proto;
	at.ip_version = f->key.ip_version;
	return find(c, &at);
}

/*
 * What a line of the policy says of the flow stands, else who announces a flow could have
 * it pass by NFs that are to see it.  What comes under no line and would be forwarded or
 * dropped goes by the NFs of its control session, if that has some; out of a drop only
 * between the two hosts of that session, as long as it lives: it can name any other.
 */
static bool
is_open(const struct first *d, const struct flow *f, const struct expectation *e,
	const struct flow *master)
{
	if (d->policy == NULL || f->policy != d->policy->rules.rest.slot ||
	    d->chains[f->chain].n > 0 || d->chains[e->chain].n == 0)
		return false;
	return f->chain == CHAIN_NONE ||
	       (master != NULL && memcmp(master->key.addr_a, f->key.addr_a, 32) == 0);
}

bool
correlate_first(struct correlate *c, struct flow *f)
{
	struct expectation *a, *b, *e;
	const struct flow *master;
	uint8_t link;

	f->control = control_of(c, f->key.port_a, f->key.proto);
	if (f->control == 0)
		f->control = control_of(c, f->key.port_b, f->key.proto);
	c->c.controls += f->control != 0;
	if (c->oldest == NONE)
		return false;
	expire(c, c->flows->hand);
	a = find_end(c, f, f->key.addr_a, f->key.port_a);
	b = find_end(c, f, f->key.addr_b, f->key.port_b);
	e = a == NULL || (b != NULL && b->until > a->until) ? b : a;
	if (e == NULL)
		return false;
	master = flow_find(c->flows, e->master, e->generation); /* it may have moved since */
	if (is_open(c->flows->first, f, e, master))
		f->chain = e->chain;
	for (link = 0; link < c->flows->first->links; link++)
		flow_set_queue(c->flows, f, link,
			       master != NULL ? flow_queue(c->flows, master, link)
					      : e->queue[link]);
	f->expected = 1;
	c->masters[flow_id(c->flows, f)] = (struct master){e->master, e->generation};
	c->c.matched++;
	e->used = 1;
	if (--e->flows == 0)
		forget(c, e);
	return true;
}

void
correlate_master(const struct correlate *c, const struct flow *f, uint32_t *id,
		 uint16_t *generation)
{
	const struct master *m = &c->masters[flow_id(c->flows, f)];

	*id = m->id;
	*generation = m->generation;
}

/* ---- options --------------------------------------------------------------------------- */

static int
parse_port(const char *option, const char *text, const char *name, struct correlate_opts *o)
{
	static const char *const names[] = {"ftp", "sip", NULL};
	static const uint16_t usual[] = {21, 5060};
	char word[32], near[80];
	const char *colon = strchr(name, ':');
	uint64_t port;
	int i;

	snprintf(word, sizeof(word), "%.*s", colon != NULL ? (int)(colon - name) : 31, name);
	for (i = 0; names[i] != NULL && strcmp(word, names[i]) != 0; i++)
		;
	if (names[i] == NULL)
		return complain("%s \"%s\": \"%s\" is none of ftp, sip and none%s", option, text,
				word, nearest(word, names, near, sizeof(near)));
	port = usual[i];
	if (colon != NULL && parse_u64(option, colon + 1, 1, UINT16_MAX, &port) != 0)
		return -1;
	if (o->n == CONTROL_PORTS_MAX)
		return complain("%s \"%s\": more than %d ports", option, text, CONTROL_PORTS_MAX);
	o->ports[o->n].port = (uint16_t)port;
	o->ports[o->n++].control = (uint8_t)(CONTROL_FTP + i);
	return 0;
}

int
correlate_parse(const char *option, const char *text, struct correlate_opts *o)
{
	char words[256], *word, *rest = NULL;

	o->n = 0;
	if (strcmp(text, "none") == 0)
		return 0;
	snprintf(words, sizeof(words), "%s", text);
	for (word = strtok_r(words, ", ", &rest); word != NULL; word = strtok_r(NULL, ", ", &rest))
		if (parse_port(option, text, word, o) != 0)
			return -1;
	if (o->n == 0)
		return complain("%s \"%s\": ftp, sip, both with a comma, or none is wanted", option,
				text);
	return 0;
}

/* ---- make and unmake ------------------------------------------------------------------- */

struct correlate *
correlate_open(const struct correlate_opts *o, struct flow_table *flows, uint64_t hz)
{
	struct correlate *c = calloc(1, sizeof(*c));
	uint32_t i, buckets = rte_align32pow2(o->max);

	if (c == NULL || (c->list = calloc(o->max, sizeof(*c->list))) == NULL ||
	    (c->buckets = malloc(buckets * sizeof(*c->buckets))) == NULL ||
	    (c->masters = calloc(flows->slots, sizeof(*c->masters))) == NULL) {
		complain("no memory for %u expected flows: take a smaller --correlate-max", o->max);
		correlate_close(c);
		return NULL;
	}
	c->o = *o;
	c->flows = flows;
	c->patience = o->seconds * hz;
	c->seed = (uint32_t)rte_rdtsc(); /* so that nobody can choose what collides */
	c->mask = buckets - 1;
	memset(c->buckets, 0xff, buckets * sizeof(*c->buckets));
	c->oldest = c->newest = c->unused = NONE;
	for (i = o->max; i-- > 0;) {
		c->list[i].same = c->unused;
		c->unused = i;
	}
	return c;
}

const struct correlate_counts *
correlate_counts(struct correlate *c, uint64_t now)
{
	expire(c, now);
	return &c->c;
}

void
correlate_close(struct correlate *c)
{
	if (c == NULL)
		return;
	free(c->list);
	free(c->buckets);
	free(c->masters);
	free(c);
}
