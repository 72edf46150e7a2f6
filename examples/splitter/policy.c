/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * A policy, in a section of its own; the first line that matches a flow holds:
 *
 *     [policy]
 *     telnet  = drop            proto tcp port 23
 *     backup  = forward         net 10.9.0.0/16, 2001:db8:9::/48
 *     web     = inspect ids,waf proto tcp from any to 192.0.2.0/24 port 80,443
 *     media   = shunt 20 ids    proto udp port 10000-20000
 *     default = inspect
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../common/common.h"
#include "flows.h"
#include "policy.h"

#define RULES_MAX 10000

static const char *const actions[] = {"drop", "forward", "inspect", "shunt", NULL};
static const char *const conditions[] = {"proto", "vlan", "net", "port", "from", "to", NULL};

static const struct {
	const char *name;
	uint8_t number;
} protos[] = {
	{"tcp", IPPROTO_TCP},	{"udp", IPPROTO_UDP}, {"sctp", IPPROTO_SCTP},
	{"icmp", IPPROTO_ICMP}, {"icmp6", 58},	      {"igmp", IPPROTO_IGMP},
	{"gre", IPPROTO_GRE},	{"esp", IPPROTO_ESP}, {"ah", IPPROTO_AH},
	{"ipip", IPPROTO_IPIP},
};

/* The words of a line, one at a time. */
struct words {
	const struct ini *i;
	char *next; /* NULL: there are no more */
	char *rest;
};

static void
step(struct words *w)
{
	w->next = strtok_r(NULL, " \t", &w->rest);
}

static int
index_of(const char *word, const char *const *names)
{
	int i;

	for (i = 0; names[i] != NULL; i++)
		if (strcmp(names[i], word) == 0)
			return i;
	return -1;
}

/* ---- values -------------------------------------------------------------------------------- */

/* 0: *v is within min and max; the whole text was it. */
static int
number(const char *text, unsigned long min, unsigned long max, unsigned long *v)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -1;
	errno = 0;
	*v = strtoul(text, &end, 10);
	return *end == '\0' && errno == 0 && *v >= min && *v <= max ? 0 : -1;
}

static int
parse_range(const struct ini *i, const char *what, char *text, unsigned long max, struct range *r)
{
	char *dash = strchr(text, '-'), whole[64];
	unsigned long low, high;
	int rc;

	snprintf(whole, sizeof(whole), "%s", text);
	if (dash != NULL)
		*dash = '\0';
	rc = number(text, 0, max, &low);
	high = low;
	if (rc == 0 && dash != NULL)
		rc = number(dash + 1, 0, max, &high);
	if (rc != 0)
		return ini_bad(i,
			       "%s \"%s\": a number from 0 to %lu, or two with \"-\" between, is"
			       " wanted",
			       what, whole, max);
	if (low > high)
		return ini_bad(i, "%s \"%s\": the first number is the greater one", what, whole);
	*r = (struct range){(uint16_t)low, (uint16_t)high};
	return 0;
}

static int
parse_vlan(const struct ini *i, char *text, struct range *r)
{
	if (strcmp(text, "none") != 0)
		return parse_range(i, "vlan", text, 4095, r);
	*r = (struct range){VLAN_NONE, VLAN_NONE};
	return 0;
}

static int
parse_proto(const struct ini *i, char *text, struct range *r)
{
	const char *names[RTE_DIM(protos) + 1];
	unsigned long v;
	char near[160];
	size_t k;

	for (k = 0; k < RTE_DIM(protos); k++) {
		names[k] = protos[k].name;
		if (strcasecmp(text, names[k]) == 0)
			break;
	}
	if (k < RTE_DIM(protos)) {
		r->low = r->high = protos[k].number;
		return 0;
	}
	names[k] = NULL;
	if (number(text, 0, 255, &v) != 0)
		return ini_bad(i, "proto \"%s\": a name or a number from 0 to 255 is wanted%s",
			       text, nearest(text, names, near, sizeof(near)));
	r->low = r->high = (uint16_t)v;
	return 0;
}

/* The bits behind the prefix have to be 0: else the line does not mean what it says. */
static bool
is_prefix(const struct net *net, unsigned int all)
{
	unsigned int bit;

	for (bit = net->bits; bit < all; bit++)
		if ((net->addr[bit / 8] & 0x80 >> bit % 8) != 0)
			return false;
	return true;
}

static int
parse_net(const struct ini *i, const char *what, char *text, struct net *net)
{
	char *slash = strchr(text, '/'), whole[80];
	unsigned long bits;
	unsigned int all;

	memset(net, 0, sizeof(*net));
	if (strcmp(text, "any") == 0)
		return 0;
	snprintf(whole, sizeof(whole), "%s", text);
	if (slash != NULL)
		*slash = '\0';
	if (inet_pton(AF_INET, text, net->addr) == 1)
		net->version = 4;
	else if (inet_pton(AF_INET6, text, net->addr) == 1)
		net->version = 6;
	else
		return ini_bad(i,
			       "%s \"%s\": an IPv4 or IPv6 network (192.0.2.0/24, 2001:db8::/32),"
			       " an address, or \"any\" is wanted",
			       what, whole);
	bits = all = net->version == 4 ? 32 : 128;
	if (slash != NULL && number(slash + 1, 0, all, &bits) != 0)
		return ini_bad(i, "%s \"%s\": a prefix has 0 to %u bits", what, whole, all);
	net->bits = (uint8_t)bits;
	if (!is_prefix(net, all))
		return ini_bad(i, "%s \"%s\": bits behind the prefix are not 0", what, whole);
	return 0;
}

/* ---- lists ------------------------------------------------------------------------------- */

/*
 * Words that belong to one list: "a,b", and "a, b".  The next value of it; NULL: there is
 * none.  more: a comma came before.
 */
static char *
list_next(struct words *w, char **at, bool *more)
{
	char *value, *comma;

	if (*at == NULL || **at == '\0') {
		if (!*more || w->next == NULL)
			return NULL;
		*at = w->next;
		step(w);
	}
	value = *at;
	comma = strchr(value, ',');
	*more = comma != NULL;
	if (comma != NULL)
		*comma = '\0';
	*at = comma != NULL ? comma + 1 : NULL;
	return value;
}

enum kind {
	NETS,
	PORTS,
	VLANS,
	PROTOS
};

static int
list_value(const struct ini *i, const char *what, char *value, enum kind kind, void *list)
{
	struct ranges *r = list;
	struct nets *n = list;

	if ((kind == NETS ? n->n : r->n) == POLICY_LIST)
		return ini_bad(i, "%s \"%s\": a list has at most %u values", what, value,
			       POLICY_LIST);
	switch (kind) {
	case NETS:
		return parse_net(i, what, value, &n->v[n->n++]);
	case PORTS:
		return parse_range(i, what, value, UINT16_MAX, &r->v[r->n++]);
	case VLANS:
		return parse_vlan(i, value, &r->v[r->n++]);
	default:
		return parse_proto(i, value, &r->v[r->n++]);
	}
}

static int
parse_list(struct words *w, const char *what, enum kind kind, void *list)
{
	unsigned int n = kind == NETS ? ((struct nets *)list)->n : ((struct ranges *)list)->n;
	bool more = true;
	char *value, *at = NULL;

	if (n > 0)
		return ini_bad(w->i, "%s is there twice: use a list, with \",\"", what);
	if (w->next == NULL || index_of(w->next, conditions) >= 0)
		return ini_bad(w->i, "%s has no value", what);
	while ((value = list_next(w, &at, &more)) != NULL)
		if (list_value(w->i, what, value, kind, list) != 0)
			return -1;
	return more ? ini_bad(w->i, "%s: a value is missing behind the last \",\"", what) : 0;
}

/* ---- a line ------------------------------------------------------------------------------- */

/* The links of a chain; none named: all. */
static int
parse_links(const struct policy *p, struct words *w, struct policy_rule *r)
{
	uint8_t links[LINKS_MAX], n = 0;
	bool more = true;
	char near[160], *value, *at = NULL;
	int k, chain;

	r->chain = CHAIN_ALL;
	if (w->next == NULL || index_of(w->next, conditions) >= 0)
		return 0;
	while ((value = list_next(w, &at, &more)) != NULL) {
		k = index_of(value, p->links);
		if (k < 0)
			return ini_bad(w->i, "there is no link \"%s\"%s", value,
				       nearest(value, p->links, near, sizeof(near)));
		if (memchr(links, k, n) != NULL)
			return ini_bad(w->i, "link \"%s\" is there twice", value);
		links[n++] = (uint8_t)k;
	}
	if (more)
		return ini_bad(w->i, "a link is missing behind the last \",\"");
	chain = first_chain(p->first, links, n);
	if (chain < 0)
		return ini_bad(w->i, "there are more than %u different orders of links",
			       CHAINS_MAX);
	r->chain = (uint8_t)chain;
	return 0;
}

static int
parse_action(const struct policy *p, struct words *w, struct policy_rule *r)
{
	unsigned long after;
	char near[160];
	int action = w->next != NULL ? index_of(w->next, actions) : -1;

	if (action < 0)
		return ini_bad(w->i, "%s = \"%s\": drop, forward, inspect or shunt is wanted%s",
			       w->i->key, w->next != NULL ? w->next : "",
			       w->next != NULL ? nearest(w->next, actions, near, sizeof(near))
					       : "");
	step(w);
	if (action == 0 || action == 1) {
		r->chain = action == 0 ? CHAIN_DROP : CHAIN_NONE;
		return 0;
	}
	if (action == 3) {
		if (w->next == NULL || number(w->next, 1, UINT32_MAX, &after) != 0)
			return ini_bad(w->i,
				       "%s = shunt \"%s\": a number of packets from 1 to %u is"
				       " wanted",
				       w->i->key, w->next != NULL ? w->next : "", UINT32_MAX);
		r->shunt = true;
		r->after = (uint32_t)after;
		step(w);
	}
	return parse_links(p, w, r);
}

/* "from NETS", "to NETS", both with "port PORTS" behind; the networks may be left out. */
static int
parse_end(struct words *w, const char *what, struct nets *nets, struct ranges *ports)
{
	if (w->next == NULL)
		return ini_bad(w->i, "%s has no value", what);
	if (strcmp(w->next, "port") != 0 && parse_list(w, what, NETS, nets) != 0)
		return -1;
	if (w->next == NULL || strcmp(w->next, "port") != 0)
		return 0;
	step(w);
	return parse_list(w, "port", PORTS, ports);
}

static int
parse_condition(struct words *w, struct policy_rule *r, bool *directed)
{
	char near[160];
	int c = index_of(w->next, conditions);

	if (c < 0)
		return ini_bad(w->i, "\"%s\" is no condition%s", w->next,
			       nearest(w->next, conditions, near, sizeof(near)));
	step(w);
	switch (c) {
	case 0:
		return parse_list(w, "proto", PROTOS, &r->proto);
	case 1:
		return parse_list(w, "vlan", VLANS, &r->vlan);
	case 2:
		r->either_net = true;
		return *directed ? 0 : parse_list(w, "net", NETS, &r->from);
	case 3:
		r->either_port = true;
		return *directed ? 0 : parse_list(w, "port", PORTS, &r->from_port);
	case 4:
		*directed = true;
		return r->either_net || r->either_port
			       ? 0
			       : parse_end(w, "from", &r->from, &r->from_port);
	default:
		*directed = true;
		return r->either_net || r->either_port ? 0
						       : parse_end(w, "to", &r->to, &r->to_port);
	}
}

/* Ports are of these alone; a later fragment has none. */
static int
check_ports(const struct ini *i, struct policy_rule *r)
{
	static const uint8_t have[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP};
	unsigned int k;

	if (r->from_port.n + r->to_port.n == 0)
		return 0;
	for (k = 0; k < r->proto.n; k++)
		if (memchr(have, r->proto.v[k].low, sizeof(have)) == NULL)
			return ini_bad(i, "port: protocol %u has no ports (tcp, udp, sctp have)",
				       r->proto.v[k].low);
	for (k = 0; r->proto.n < sizeof(have) && k < sizeof(have) && (k > 0 || r->proto.n == 0);
	     k++)
		r->proto.v[r->proto.n++] = (struct range){have[k], have[k]};
	return 0;
}

static int
parse_rule(const struct policy *p, const struct ini *i, struct policy_rule *r)
{
	char text[2048];
	struct words w = {.i = i};
	bool directed = false;

	if (snprintf(text, sizeof(text), "%s", i->value) >= (int)sizeof(text))
		return ini_bad(i, "%s: the line is too long", i->key);
	w.next = strtok_r(text, " \t", &w.rest);
	if (parse_action(p, &w, r) != 0)
		return -1;
	while (w.next != NULL) {
		if (parse_condition(&w, r, &directed) != 0)
			return -1;
		if (directed && (r->either_net || r->either_port))
			return ini_bad(i,
				       "%s: net and port (of either end) cannot stand with from and"
				       " to; write \"from ... port\", \"to ... port\"",
				       i->key);
	}
	return check_ports(i, r);
}

/* ---- the file ----------------------------------------------------------------------------- */

static bool
has_conditions(const struct policy_rule *r)
{
	return r->from.n + r->to.n + r->from_port.n + r->to_port.n + r->vlan.n + r->proto.n > 0;
}

/* Lines that are no rules: what comes under none, and what is not IP. */
static int
parse_special(const struct policy *p, const struct ini *i, struct policy_rule *r)
{
	if (r->line != 0)
		return ini_bad(i, "%s is there already, in line %u", i->key, r->line);
	r->line = i->line;
	if (parse_rule(p, i, r) != 0)
		return -1;
	if (has_conditions(r))
		return ini_bad(i, "%s has no conditions", i->key);
	if (r->shunt && strcmp(r->name, "non-ip") == 0)
		return ini_bad(i, "non-ip = shunt: what is not IP has no flows");
	return 0;
}

static int
check_name(const struct ini *i)
{
	const char *c;

	for (c = i->key; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && strchr("-_.", *c) == NULL)
			return ini_bad(i,
				       "\"%s\": a name has letters, digits, \"-\", \"_\" and \".\"",
				       i->key);
	if (strlen(i->key) >= POLICY_NAME)
		return ini_bad(i, "\"%s\": a name has at most %u letters", i->key, POLICY_NAME - 1);
	return 0;
}

static int
line(const struct policy *p, struct policy_rules *rules, const struct ini *i)
{
	struct policy_rule *r;
	unsigned int k;

	if (strcmp(i->key, "default") == 0)
		return parse_special(p, i, &rules->rest);
	if (strcmp(i->key, "non-ip") == 0)
		return parse_special(p, i, &rules->non_ip);
	if (check_name(i) != 0)
		return -1;
	for (k = 0; k < rules->n; k++)
		if (strcmp(rules->rule[k].name, i->key) == 0)
			return ini_bad(i, "\"%s\" is there already, in line %u", i->key,
				       rules->rule[k].line);
	if (rules->n == RULES_MAX)
		return ini_bad(i, "there are more than %u rules", RULES_MAX);
	if (rules->n == rules->room) {
		rules->room = rules->room > 0 ? 2 * rules->room : 16;
		r = realloc(rules->rule, rules->room * sizeof(*r));
		if (r == NULL)
			return complain("out of memory");
		rules->rule = r;
	}
	r = &rules->rule[rules->n++];
	memset(r, 0, sizeof(*r));
	snprintf(r->name, sizeof(r->name), "%s", i->key);
	r->line = i->line;
	return parse_rule(p, i, r);
}

static void
rules_free(struct policy_rules *rules)
{
	acl_free(&rules->acl);
	free(rules->rule);
	memset(rules, 0, sizeof(*rules));
}

/* Sections of the splitter's other files: all may be one. */
static bool
is_foreign(const char *section)
{
	return strcmp(section, "splitter") == 0 || strcmp(section, "filter") == 0 ||
	       strcmp(section, "shunt") == 0;
}

static int
read_rules(const struct policy *p, struct policy_rules *rules)
{
	struct ini i;
	int rc;

	memset(rules, 0, sizeof(*rules));
	snprintf(rules->rest.name, sizeof(rules->rest.name), "default");
	snprintf(rules->non_ip.name, sizeof(rules->non_ip.name), "non-ip");
	if (ini_open(&i, "--policy", p->path) != 0)
		return -1;
	while ((rc = ini_next(&i)) == 1) {
		if (is_foreign(i.section))
			continue;
		if (strcmp(i.section, "policy") != 0)
			rc = ini_bad(&i, "there is no section [%s]; a policy is in [policy]",
				     i.section);
		else
			rc = line(p, rules, &i);
		if (rc != 0)
			break;
	}
	ini_close(&i);
	if (rc != 0)
		rules_free(rules);
	return rc;
}

/* ---- counters -------------------------------------------------------------------------------- */

static int
slot_of(struct policy *p, struct policy_rule *r)
{
	struct policy_count *c;
	unsigned int k;

	for (k = 0; k < p->ncounts; k++) {
		if (strcmp(p->counts[k].name, r->name) == 0) {
			r->slot = (uint16_t)k;
			return 0;
		}
	}
	if (k == UINT16_MAX)
		return complain("%s: the policy had more than %u names", p->path, UINT16_MAX);
	c = realloc(p->counts, (k + 1) * sizeof(*c));
	if (c == NULL)
		return complain("out of memory");
	p->counts = c;
	memset(&c[k], 0, sizeof(*c));
	memcpy(c[k].name, r->name, sizeof(c[k].name));
	r->slot = (uint16_t)k;
	p->ncounts++;
	return 0;
}

/* Rules of the same name before and after go on with the same counters. */
static int
slots(struct policy *p, struct policy_rules *rules)
{
	unsigned int k;

	for (k = 0; k < rules->n; k++)
		if (slot_of(p, &rules->rule[k]) != 0)
			return -1;
	if (slot_of(p, &rules->rest) != 0)
		return -1;
	return slot_of(p, &rules->non_ip);
}

void
policy_count(struct policy *p, const struct flow_table *t, struct flow *f)
{
	const struct chain *chain = flow_chain(t, f);
	uint64_t packets = f->packets[0] + f->packets[1];
	struct policy_count *c = &p->counts[f->policy];
	const struct flow_passed *passed;

	c->flows++;
	c->packets += packets;
	c->bytes += f->bytes[0] + f->bytes[1];
	if (chain->n == 0)
		return;
	passed = flow_passed(t, f, chain->link[0]);
	c->inspected += packets - passed->packets[0] - passed->packets[1];
}

/* ---- find --------------------------------------------------------------------------------- */

const struct policy_rule *
policy_find(const struct policy *p, const struct nfmeta_flow_key *key, bool reverse,
	    const struct nfmeta_record *r)
{
	uint16_t vlan = r->vlan_count > 0 ? r->vlan_outer & 0xfff : VLAN_NONE;
	int k;

	if (key->ip_version == 0)
		return &p->rules.non_ip;
	k = acl_find(&p->rules.acl, key, reverse, vlan);
	return k >= 0 ? &p->rules.rule[k] : &p->rules.rest;
}

/* ---- make and unmake ------------------------------------------------------------------------- */

struct policy *
policy_open(const char *path, struct first *first, const char *const *links)
{
	struct policy *p = calloc(1, sizeof(*p));

	if (p == NULL) {
		complain("out of memory");
		return NULL;
	}
	p->path = path;
	p->first = first;
	p->links = links;
	if (read_rules(p, &p->rules) != 0 || slots(p, &p->rules) != 0) {
		policy_close(p);
		return NULL;
	}
	return p;
}

int
policy_build(struct policy *p)
{
	return acl_build(&p->rules.acl, &p->rules, p->path);
}

void
policy_reload(struct policy *p)
{
	struct policy_rules rules;

	if (read_rules(p, &rules) != 0 || slots(p, &rules) != 0 ||
	    acl_build(&rules.acl, &rules, p->path) != 0) {
		rules_free(&rules);
		p->reloads_failed++;
		complain("the policy stays as it is");
		return;
	}
	rules_free(&p->rules);
	p->rules = rules;
	p->reloads++;
	note("%u rules of policy from \"%s\"", rules.n, p->path);
}

void
policy_close(struct policy *p)
{
	if (p == NULL)
		return;
	rules_free(&p->rules);
	free(p->counts);
	free(p);
}
