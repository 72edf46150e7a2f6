/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The policy's rules as rte_acl has them: one table for each version of IP.  A rule with
 * lists, or with "either end", is several there, of the same priority.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_acl.h>
#include <rte_byteorder.h>
#include <rte_errno.h>

#include "../common/common.h"
#include "policy.h"

#define ENTRIES_MAX 65536

/* What is looked up; fields behind the first lie in groups of 4 bytes. */
struct seek4 {
	uint8_t proto, pad[3];
	uint8_t from[4], to[4];
	uint8_t from_port[2], to_port[2];
	uint8_t vlan[2], fragment[2]; /* 1: a later one, without ports */
};

struct seek6 {
	uint8_t proto, pad[3];
	uint8_t from[16], to[16];
	uint8_t from_port[2], to_port[2];
	uint8_t vlan[2], fragment[2]; /* 1: a later one, without ports */
};

#define FIELDS4 7
#define FIELDS6 13
RTE_ACL_RULE_DEF(entry, FIELDS6);

static struct rte_acl_field_def
field(uint8_t type, uint8_t size, uint8_t number, uint8_t group, size_t offset)
{
	return (struct rte_acl_field_def){
		.type = type,
		.size = size,
		.field_index = number,
		.input_index = group,
		.offset = (uint32_t)offset,
	};
}

/* Both layouts: words of the two addresses between protocol and ports. */
static void
describe(struct rte_acl_config *c, unsigned int words)
{
	uint8_t i, n = 0;
	size_t at = 4;

	memset(c, 0, sizeof(*c));
	c->num_categories = 1;
	c->defs[n++] = field(RTE_ACL_FIELD_TYPE_BITMASK, 1, 0, 0, 0);
	for (i = 0; i < 2 * words; i++, at += 4, n++)
		c->defs[n] = field(RTE_ACL_FIELD_TYPE_MASK, 4, n, n, at);
	for (i = 0; i < 4; i++, at += 2, n++)
		c->defs[n] =
			field(RTE_ACL_FIELD_TYPE_RANGE, 2, n, (uint8_t)(2 * words + 1 + i / 2), at);
	c->num_fields = n;
}

/* ---- from rules to entries -------------------------------------------------------------- */

struct entries {
	struct entry *entry;
	uint32_t n, room;
	unsigned int words; /* of an address */
	int32_t priority;
	uint32_t number; /* of the rule, from 1 */
};

static const struct net any_net;
static const struct range any_range = {0, UINT16_MAX}, no_fragment = {0, 0};

static void
put_net(struct rte_acl_field *f, const struct net *net, unsigned int words)
{
	unsigned int i, bits = net->bits;
	uint32_t word;

	for (i = 0; i < words; i++) {
		memcpy(&word, net->addr + 4 * i, 4);
		f[i].value.u32 = rte_be_to_cpu_32(word);
		f[i].mask_range.u32 = RTE_MIN(bits, 32u);
		bits -= RTE_MIN(bits, 32u);
	}
}

static void
put_range(struct rte_acl_field *f, const struct range *r)
{
	f->value.u16 = r->low;
	f->mask_range.u16 = r->high;
}

static int
put(struct entries *e, const struct net *from, const struct net *to, const struct range *from_port,
    const struct range *to_port, const struct range *vlan, int proto, bool ports)
{
	struct rte_acl_field *f;
	struct entry *more;

	if (e->n == ENTRIES_MAX)
		return -1;
	if (e->n == e->room) {
		e->room = e->room > 0 ? 2 * e->room : 64;
		more = realloc(e->entry, e->room * sizeof(*e->entry));
		if (more == NULL)
			return complain("out of memory");
		e->entry = more;
	}
	more = &e->entry[e->n++];
	memset(more, 0, sizeof(*more));
	more->data.category_mask = 1;
	more->data.priority = e->priority;
	more->data.userdata = e->number;
	f = more->field;
	if (proto >= 0) {
		f->value.u8 = (uint8_t)proto;
		f->mask_range.u8 = UINT8_MAX;
	}
	put_net(f + 1, from, e->words);
	put_net(f + 1 + e->words, to, e->words);
	f += 1 + 2 * e->words;
	put_range(f, from_port);
	put_range(f + 1, to_port);
	put_range(f + 2, vlan);
	put_range(f + 3, ports ? &no_fragment : &any_range);
	return 0;
}

/* Every protocol and VLAN of the rule, for these ends. */
static int
put_rest(struct entries *e, const struct policy_rule *r, const struct net *from,
	 const struct net *to, const struct range *from_port, const struct range *to_port)
{
	unsigned int i, k;
	const struct range *vlan;
	int proto, rc = 0;

	for (i = 0; i < RTE_MAX(r->proto.n, 1u); i++) {
		proto = r->proto.n > 0 ? r->proto.v[i].low : -1;
		for (k = 0; k < RTE_MAX(r->vlan.n, 1u); k++) {
			vlan = r->vlan.n > 0 ? &r->vlan.v[k] : &any_range;
			rc |= put(e, from, to, from_port, to_port, vlan, proto,
				  r->from_port.n + r->to_port.n > 0);
		}
	}
	return rc;
}

static int
put_ports(struct entries *e, const struct policy_rule *r, const struct net *from,
	  const struct net *to, const struct ranges *from_port, const struct ranges *to_port)
{
	unsigned int i, k;
	int rc = 0;

	for (i = 0; i < RTE_MAX(from_port->n, 1u); i++)
		for (k = 0; k < RTE_MAX(to_port->n, 1u); k++)
			rc |= put_rest(e, r, from, to,
				       from_port->n > 0 ? &from_port->v[i] : &any_range,
				       to_port->n > 0 ? &to_port->v[k] : &any_range);
	return rc;
}

static int
put_nets(struct entries *e, const struct policy_rule *r, const struct nets *from,
	 const struct nets *to)
{
	uint8_t version = e->words == 1 ? 4 : 6;
	const struct net *a, *b;
	unsigned int i, k;
	int rc = 0;

	for (i = 0; i < RTE_MAX(from->n, 1u); i++) {
		a = from->n > 0 ? &from->v[i] : &any_net;
		if (a->version != 0 && a->version != version)
			continue;
		for (k = 0; k < RTE_MAX(to->n, 1u); k++) {
			b = to->n > 0 ? &to->v[k] : &any_net;
			if (b->version != 0 && b->version != version)
				continue;
			rc |= put_ports(e, r, a, b, &r->from_port, &r->to_port);
			if (r->either_port)
				rc |= put_ports(e, r, a, b, &r->to_port, &r->from_port);
		}
	}
	return rc;
}

static int
put_rule(struct entries *e, const struct policy_rule *r)
{
	int rc = put_nets(e, r, &r->from, &r->to);

	if (r->either_net)
		rc |= put_nets(e, r, &r->to, &r->from);
	return rc;
}

/* ---- make and unmake ------------------------------------------------------------------------ */

static struct rte_acl_ctx *
make(const struct entries *e, unsigned int fields)
{
	static unsigned int number;
	struct rte_acl_config config;
	char name[RTE_ACL_NAMESIZE];
	struct rte_acl_param p = {
		.name = name,
		.socket_id = SOCKET_ID_ANY,
		.rule_size = RTE_ACL_RULE_SZ(fields),
		.max_rule_num = e->n,
	};
	struct rte_acl_ctx *ctx;
	int rc = 0;
	uint32_t i;

	snprintf(name, sizeof(name), "splitter_policy%u", number++);
	ctx = rte_acl_create(&p);
	if (ctx == NULL) {
		complain("too little hugepage memory for the policy: %s", rte_strerror(rte_errno));
		return NULL;
	}
	for (i = 0; i < e->n && rc == 0; i++)
		rc = rte_acl_add_rules(ctx, (const struct rte_acl_rule *)&e->entry[i], 1);
	describe(&config, e->words);
	if (rc == 0)
		rc = rte_acl_build(ctx, &config);
	if (rc == 0)
		return ctx;
	complain("the policy's %u entries cannot be made: %s", e->n, rte_strerror(-rc));
	rte_acl_free(ctx);
	return NULL;
}

static int
build(struct rte_acl_ctx **ctx, const struct policy_rules *rules, const char *path,
      unsigned int words, unsigned int fields)
{
	struct entries e = {.words = words};
	unsigned int i;
	int rc = 0;

	for (i = 0; i < rules->n && rc == 0; i++) {
		e.number = i + 1;
		e.priority = (int32_t)(RTE_ACL_MAX_PRIORITY - i);
		rc = put_rule(&e, &rules->rule[i]);
		if (rc != 0)
			complain("%s:%u: with \"%s\" the policy has more than %u combinations of"
				 " values: use shorter lists",
				 path, rules->rule[i].line, rules->rule[i].name, ENTRIES_MAX);
	}
	if (rc == 0 && e.n > 0) {
		*ctx = make(&e, fields);
		rc = *ctx != NULL ? 0 : -1;
	}
	free(e.entry);
	return rc;
}

int
acl_build(struct acl *acl, const struct policy_rules *rules, const char *path)
{
	memset(acl, 0, sizeof(*acl));
	if (build(&acl->ip4, rules, path, 1, FIELDS4) == 0 &&
	    build(&acl->ip6, rules, path, 4, FIELDS6) == 0)
		return 0;
	acl_free(acl);
	return -1;
}

void
acl_free(struct acl *acl)
{
	rte_acl_free(acl->ip4);
	rte_acl_free(acl->ip6);
	memset(acl, 0, sizeof(*acl));
}

/* ---- find -------------------------------------------------------------------------------- */

int
acl_find(const struct acl *acl, const struct nfmeta_flow_key *key, bool reverse, uint16_t vlan)
{
	const struct rte_acl_ctx *ctx = key->ip_version == 4 ? acl->ip4 : acl->ip6;
	const uint8_t *from = reverse ? key->addr_b : key->addr_a;
	const uint8_t *to = reverse ? key->addr_a : key->addr_b;
	const uint8_t *from_port = reverse ? key->port_b : key->port_a;
	const uint8_t *to_port = reverse ? key->port_a : key->port_b;
	const uint8_t tag[2] = {(uint8_t)(vlan >> 8), (uint8_t)vlan};
	struct seek4 s4 = {.proto = key->proto};
	struct seek6 s6 = {.proto = key->proto};
	const uint8_t *data = (const uint8_t *)&s4;
	uint32_t found = 0;

	if (ctx == NULL)
		return -1;
	if (key->ip_version == 4) {
		memcpy(s4.from, from, 4);
		memcpy(s4.to, to, 4);
		memcpy(s4.from_port, from_port, 2);
		memcpy(s4.to_port, to_port, 2);
		memcpy(s4.vlan, tag, 2);
		s4.fragment[1] = key->fragment;
	} else {
		memcpy(s6.from, from, 16);
		memcpy(s6.to, to, 16);
		memcpy(s6.from_port, from_port, 2);
		memcpy(s6.to_port, to_port, 2);
		memcpy(s6.vlan, tag, 2);
		s6.fragment[1] = key->fragment;
		data = (const uint8_t *)&s6;
	}
	rte_acl_classify(ctx, &data, &found, 1, 1);
	return (int)found - 1;
}
