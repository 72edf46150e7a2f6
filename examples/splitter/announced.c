/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "announced.h"

/* Below are services: their flows are not to be had by naming them. */
#define PORT_MIN 1024
/* No more are looked at: a packet of empty lines is not to take longer than others. */
#define LINES_MAX 256

/* What is left of some text; it has no 0 at its end. */
struct text {
	const char *at, *end;
};

struct list {
	struct announced *out;
	unsigned int n;
};

/* ---- words ------------------------------------------------------------------------ */

static inline size_t
left(const struct text *t)
{
	return (size_t)(t->end - t->at);
}

static inline bool
is_digit(const struct text *t)
{
	return t->at < t->end && *t->at >= '0' && *t->at <= '9';
}

/* The next character, if it is this one. */
static bool
skip(struct text *t, char c)
{
	if (t->at == t->end || *t->at != c)
		return false;
	t->at++;
	return true;
}

/* The next word, if it is this one; case does not count. */
static bool
skip_word(struct text *t, const char *word)
{
	size_t n = strlen(word);

	if (left(t) < n || strncasecmp(t->at, word, n) != 0)
		return false;
	t->at += n;
	return true;
}

/* Up to a character, and over it. */
static bool
skip_to(struct text *t, char c)
{
	const char *found = memchr(t->at, c, left(t));

	if (found == NULL)
		return false;
	t->at = found + 1;
	return true;
}

static bool
number(struct text *t, uint32_t max, uint32_t *value)
{
	uint32_t v = 0;

	if (!is_digit(t))
		return false;
	for (; is_digit(t); t->at++) {
		v = v * 10 + (uint32_t)(*t->at - '0');
		if (v > max)
			return false;
	}
	*value = v;
	return true;
}

static bool
next_line(struct text *rest, bool whole, struct text *line)
{
	const char *end = left(rest) > 0 ? memchr(rest->at, '\n', left(rest)) : NULL;

	if (end == NULL && (!whole || left(rest) == 0))
		return false;
	line->at = rest->at;
	line->end = end != NULL ? end : rest->end;
	rest->at = end != NULL ? end + 1 : rest->end;
	if (line->end > line->at && line->end[-1] == '\r')
		line->end--;
	return true;
}

static void
add(struct list *l, const struct announced *where, uint32_t port)
{
	if (port < PORT_MIN || port > UINT16_MAX || l->n == ANNOUNCED_MAX)
		return;
	l->out[l->n] = *where;
	l->out[l->n++].port = (uint16_t)port;
}

/* The address of all this text; a name is not looked up: ip_version 0. */
static void
address(struct text t, uint8_t ip_version, struct announced *where)
{
	char word[INET6_ADDRSTRLEN];

	memset(where->addr, 0, sizeof(where->addr));
	where->ip_version = 0;
	if (left(&t) >= sizeof(word))
		return;
	memcpy(word, t.at, left(&t));
	word[left(&t)] = '\0';
	if (inet_pton(ip_version == 4 ? AF_INET : AF_INET6, word, where->addr) == 1)
		where->ip_version = ip_version;
}

/* ---- FTP -------------------------------------------------------------------------- */

/* At the address of who says so, and at the one that is named. */
static void
add_both(struct list *l, const struct announced *named, uint32_t port)
{
	const struct announced sender = {.proto = IPPROTO_TCP};

	add(l, &sender, port);
	if (named->ip_version != 0)
		add(l, named, port);
}

/* h1,h2,h3,h4,p1,p2 */
static bool
six_numbers(struct text t, struct list *l)
{
	struct announced a = {.proto = IPPROTO_TCP, .ip_version = 4};
	uint32_t v[6];
	int i;

	for (i = 0; i < 6; i++)
		if ((i > 0 && !skip(&t, ',')) || !number(&t, 255, &v[i]))
			return false;
	for (i = 0; i < 4; i++)
		a.addr[i] = (uint8_t)v[i];
	add_both(l, &a, v[4] << 8 | v[5]);
	return true;
}

/* In a reply they may stand anywhere. */
static void
find_six_numbers(struct text t, struct list *l)
{
	while (t.at < t.end) {
		if (!is_digit(&t)) {
			t.at++;
			continue;
		}
		if (six_numbers(t, l))
			return;
		while (is_digit(&t))
			t.at++;
	}
}

/* <d>1<d>address<d>port<d>, <d> being any sign */
static void
extended_port(struct text t, struct list *l)
{
	struct announced a = {.proto = IPPROTO_TCP};
	uint32_t family, port;
	struct text addr;
	char d;

	if (left(&t) < 1)
		return;
	d = *t.at++;
	if (!number(&t, 2, &family) || family == 0 || !skip(&t, d))
		return;
	addr.at = t.at;
	if (!skip_to(&t, d))
		return;
	addr.end = t.at - 1;
	if (!number(&t, UINT16_MAX, &port) || !skip(&t, d))
		return;
	address(addr, family == 1 ? 4 : 6, &a);
	add_both(l, &a, port);
}

/* (<d><d><d>port<d>) */
static void
extended_passive(struct text t, struct list *l)
{
	struct announced sender = {.proto = IPPROTO_TCP};
	uint32_t port;
	char d;

	if (!skip_to(&t, '(') || left(&t) < 1)
		return;
	d = *t.at++;
	if (skip(&t, d) && skip(&t, d) && number(&t, UINT16_MAX, &port) && skip(&t, d))
		add(l, &sender, port);
}

unsigned int
ftp_announced(const void *data, size_t len, bool server, struct announced out[ANNOUNCED_MAX])
{
	struct text rest = {data, (const char *)data + len}, line;
	struct list l = {.out = out};
	unsigned int i;

	for (i = 0; i < LINES_MAX && next_line(&rest, false, &line); i++) {
		if (server && (skip_word(&line, "227 ") || skip_word(&line, "227-")))
			find_six_numbers(line, &l);
		else if (server && (skip_word(&line, "229 ") || skip_word(&line, "229-")))
			extended_passive(line, &l);
		else if (!server && skip_word(&line, "PORT "))
			six_numbers(line, &l);
		else if (!server && skip_word(&line, "EPRT "))
			extended_port(line, &l);
	}
	return l.n;
}

/* ---- SDP -------------------------------------------------------------------------- */

#define PAIRS_MAX 8 /* of ports, of one media line */

struct sdp {
	bool inside;		/* after v= */
	bool media;		/* after m= */
	struct announced all;	/* c= before any m= */
	struct announced where; /* of this m= */
	struct announced rtcp;	/* ip_version 0: at "where" */
	uint32_t port, pairs;
};

/* "IN IP4 192.0.2.1", perhaps with "/ttl" behind */
static void
connection(struct text t, struct announced *where)
{
	uint8_t ip_version;
	struct text end;

	where->ip_version = 0;
	if (skip_word(&t, "IN IP4 "))
		ip_version = 4;
	else if (skip_word(&t, "IN IP6 "))
		ip_version = 6;
	else
		return;
	for (end = t; end.at < end.end && *end.at != '/' && *end.at != ' ';)
		end.at++;
	t.end = end.at;
	address(t, ip_version, where);
}

/* "audio 49170/2 RTP/AVP 0" */
static void
media_line(struct text t, struct sdp *s)
{
	s->media = true;
	s->where = s->all;
	s->where.proto = IPPROTO_UDP;
	s->rtcp = (struct announced){.port = 0};
	s->pairs = 1;
	if (!skip_to(&t, ' ') || !number(&t, UINT16_MAX, &s->port))
		s->port = 0;
	if (s->port != 0 && skip(&t, '/') && !number(&t, UINT16_MAX, &s->pairs))
		s->pairs = 1;
	if (!skip(&t, ' '))
		s->port = 0;
	else if (skip_word(&t, "TCP/"))
		s->where.proto = IPPROTO_TCP;
	else if (!skip_word(&t, "RTP/") && !skip_word(&t, "UDP/") && !skip_word(&t, "udptl"))
		s->port = 0;
}

/* "53020", perhaps with " IN IP4 192.0.2.1" behind */
static void
rtcp_line(struct text t, struct sdp *s)
{
	uint32_t port;

	if (!number(&t, UINT16_MAX, &port))
		return;
	s->rtcp.port = (uint16_t)port;
	if (skip(&t, ' '))
		connection(t, &s->rtcp);
}

/* Nobody can be talked to at 0.0.0.0: that is a call on hold. */
static bool
is_somewhere(const struct announced *a)
{
	static const uint8_t none[16];

	return a->ip_version != 0 && memcmp(a->addr, none, sizeof(none)) != 0;
}

/* All lines about one m= have come. */
static void
media_end(struct sdp *s, struct list *l)
{
	bool tcp = s->where.proto == IPPROTO_TCP;
	struct announced rtcp = s->where;
	uint32_t i;

	if (s->media && s->port != 0 && is_somewhere(&s->where)) {
		if (is_somewhere(&s->rtcp)) {
			memcpy(rtcp.addr, s->rtcp.addr, sizeof(rtcp.addr));
			rtcp.ip_version = s->rtcp.ip_version;
		}
		for (i = 0; i < s->pairs && i < PAIRS_MAX; i++) {
			add(l, &s->where, s->port + 2 * i);
			if (!tcp && s->rtcp.port == 0)
				add(l, &rtcp, s->port + 2 * i + 1);
		}
		if (!tcp)
			add(l, &rtcp, s->rtcp.port);
	}
	s->media = false;
}

unsigned int
sip_announced(const void *data, size_t len, bool whole, struct announced out[ANNOUNCED_MAX])
{
	struct text rest = {data, (const char *)data + len}, line;
	struct list l = {.out = out};
	struct sdp s = {.inside = false};
	unsigned int i;
	char what;

	for (i = 0; i < LINES_MAX && next_line(&rest, whole, &line); i++) {
		if (left(&line) < 2 || line.at[1] != '=') { /* SDP is over */
			media_end(&s, &l);
			s.inside = false;
			continue;
		}
		what = *line.at;
		line.at += 2;
		if (what == 'v') {
			media_end(&s, &l);
			s = (struct sdp){.inside = true};
		} else if (!s.inside) {
			continue;
		} else if (what == 'm') {
			media_end(&s, &l);
			media_line(line, &s);
		} else if (what == 'c') {
			connection(line, s.media ? &s.where : &s.all);
		} else if (what == 'a' && s.media && skip_word(&line, "rtcp:")) {
			rtcp_line(line, &s);
		}
	}
	media_end(&s, &l);
	return l.n;
}
