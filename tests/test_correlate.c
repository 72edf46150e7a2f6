/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The splitter's control sessions: what their texts announce, and for how long and for
 * whom it is expected.  Without EAL; the time is a number.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "../examples/splitter/announced.h"
#include "../examples/splitter/policy.h"
#include "../examples/splitter/splitter.h"
#include "packet.h"

#define SLOTS 64
#define HAND 1000000 /* the time at the start */

/* ---- texts ------------------------------------------------------------------------- */

/* "proto/address:port ..." of all, "-" for the sender's address */
static const char *
listed(const struct announced *a, unsigned int n)
{
	static char text[2048];
	char addr[INET6_ADDRSTRLEN];
	unsigned int i;

	text[0] = '\0';
	for (i = 0; i < n; i++) {
		snprintf(addr, sizeof(addr), "-");
		if (a[i].ip_version != 0)
			inet_ntop(a[i].ip_version == 4 ? AF_INET : AF_INET6, a[i].addr, addr,
				  sizeof(addr));
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s/%s:%u",
			 i == 0 ? "" : " ", a[i].proto == IPPROTO_TCP ? "tcp" : "udp", addr,
			 a[i].port);
	}
	return text;
}

static const struct {
	bool server;
	const char *text, *want;
} ftp_texts[] = {
	{false, "PORT 192,0,2,1,4,1\r\n", "tcp/-:1025 tcp/192.0.2.1:1025"},
	{false, "port 192,0,2,1,255,255\n", "tcp/-:65535 tcp/192.0.2.1:65535"},
	{false, "NOOP\r\nPORT 192,0,2,1,4,1\r\nRETR x\r\n", "tcp/-:1025 tcp/192.0.2.1:1025"},
	{false, "PORT 192,0,2,1,3,255\r\n", ""}, /* 1023 */
	{false, "PORT 192,0,2,1,256,1\r\n", ""},
	{false, "PORT 192,0,2,256,4,1\r\n", ""},
	{false, "PORT 192,0,2,1,4\r\n", ""},
	{false, "PORT 192,0,2,1,4,\r\n", ""},
	{false, "PORT 192,0,2,1,4,1", ""}, /* 4,12? */
	{false, "PORT", ""},
	{false, "PORT \r\n", ""},
	{false, "", ""},
	{false, "227 Entering Passive Mode (192,0,2,1,4,1).\r\n", ""}, /* by the client */
	{true, "PORT 192,0,2,1,4,1\r\n", ""},
	{true, "227 Entering Passive Mode (192,0,2,1,4,1).\r\n", "tcp/-:1025 tcp/192.0.2.1:1025"},
	{true, "227 =192,0,2,1,4,1\r\n", "tcp/-:1025 tcp/192.0.2.1:1025"},
	{true, "227 v2 of 3,4 (192,0,2,1,4,1)\r\n", "tcp/-:1025 tcp/192.0.2.1:1025"},
	{true, "220 hi\r\n227 (192,0,2,1,4,1)\r\n", "tcp/-:1025 tcp/192.0.2.1:1025"},
	{true, "227 (192,0,2,1,4,1)", ""},
	{true, "2270 (192,0,2,1,4,1)\r\n", ""},
	{true, "229 Entering Extended Passive Mode (|||1025|)\r\n", "tcp/-:1025"},
	{true, "229 (!!!65535!)\r\n", "tcp/-:65535"},
	{true, "229 (|||65536|)\r\n", ""},
	{true, "229 (|||1025)\r\n", ""},
	{true, "229 (||!1025|)\r\n", ""},
	{true, "229 (\r\n", ""},
	{true, "229 ", ""},
	{false, "EPRT |1|192.0.2.1|1025|\r\n", "tcp/-:1025 tcp/192.0.2.1:1025"},
	{false, "EPRT |2|2001:db8::1|1025|\r\n", "tcp/-:1025 tcp/2001:db8::1:1025"},
	{false, "EPRT ,2,2001:db8::1,1025,\r\n", "tcp/-:1025 tcp/2001:db8::1:1025"},
	{false, "EPRT |2|192.0.2.1|1025|\r\n", "tcp/-:1025"}, /* no address of v6 */
	{false, "EPRT |3|192.0.2.1|1025|\r\n", ""},
	{false, "EPRT |1|192.0.2.1|1025\r\n", ""},
	{false, "EPRT |1|192.0.2.1\r\n", ""},
	{false, "EPRT |\r\n", ""},
};

START_TEST(ftp_text)
{
	const char *text = ftp_texts[_i].text;
	struct announced out[ANNOUNCED_MAX];
	size_t len = strlen(text), k;
	char *copy;

	/* with exactly these bytes, and with each part of them, for who watches memory */
	for (k = 0; k <= len; k++) {
		copy = malloc(k);
		memcpy(copy, text, k);
		ftp_announced(copy, k, ftp_texts[_i].server, out);
		free(copy);
	}
	ck_assert_str_eq(listed(out, ftp_announced(text, len, ftp_texts[_i].server, out)),
			 ftp_texts[_i].want);
}
END_TEST

#define V4 "c=IN IP4 192.0.2.9\r\n"
#define AUDIO "m=audio 5000 RTP/AVP 0\r\n"

static const struct {
	bool whole;
	const char *text, *want;
} sip_texts[] = {
	{true, "INVITE sip:b SIP/2.0\r\nc: application/sdp\r\n\r\nv=0\r\n" V4 AUDIO,
	 "udp/192.0.2.9:5000 udp/192.0.2.9:5001"},
	{true, "v=0\n" V4 "m=audio 5000 RTP/AVP 0", "udp/192.0.2.9:5000 udp/192.0.2.9:5001"},
	{false, "v=0\n" V4 "m=audio 5000 RTP/AVP 0", ""},
	{true, V4 AUDIO, ""},	     /* not SDP */
	{true, "v=0\r\n" AUDIO, ""}, /* nowhere */
	{true, "v=0\r\n" AUDIO V4, "udp/192.0.2.9:5000 udp/192.0.2.9:5001"},
	{true, "v=0\r\n" V4 AUDIO "c=IN IP6 2001:db8::9\r\n",
	 "udp/2001:db8::9:5000 udp/2001:db8::9:5001"},
	{true, "v=0\r\n" V4 AUDIO "c=IN IP4 192.0.2.8\r\nm=video 6000 RTP/SAVP 9\r\n",
	 "udp/192.0.2.8:5000 udp/192.0.2.8:5001 udp/192.0.2.9:6000 udp/192.0.2.9:6001"},
	{true, "v=0\r\n" V4 "m=audio 0 RTP/AVP 0\r\nm=video 6000 RTP/AVPF 9\r\n",
	 "udp/192.0.2.9:6000 udp/192.0.2.9:6001"},
	{true, "v=0\r\n" V4 "m=audio 5000/2 RTP/AVP 0\r\n",
	 "udp/192.0.2.9:5000 udp/192.0.2.9:5001 udp/192.0.2.9:5002 udp/192.0.2.9:5003"},
	{true, "v=0\r\n" V4 AUDIO "a=rtcp:7000\r\n", "udp/192.0.2.9:5000 udp/192.0.2.9:7000"},
	{true, "v=0\r\n" V4 AUDIO "a=rtcp:7000 IN IP4 192.0.2.7\r\n",
	 "udp/192.0.2.9:5000 udp/192.0.2.7:7000"},
	{true, "v=0\r\n" V4 AUDIO "a=rtcp-mux\r\n", "udp/192.0.2.9:5000 udp/192.0.2.9:5001"},
	{true, "v=0\r\nc=IN IP4 233.252.0.1/127/3\r\n" AUDIO,
	 "udp/233.252.0.1:5000 udp/233.252.0.1:5001"},
	{true, "v=0\r\nc=IN IP4 0.0.0.0\r\n" AUDIO, ""}, /* on hold */
	{true, "v=0\r\nc=IN IP4 phone.example.org\r\n" AUDIO, ""},
	{true, "v=0\r\n" V4 "m=audio 5000 RTP/AVP 0\r\nc=IN IP4 phone.example.org\r\n", ""},
	{true, "v=0\r\nc=IN IP4 192.0.2.999\r\n" AUDIO, ""},
	{true, "v=0\r\nc=IN IP9 192.0.2.9\r\n" AUDIO, ""},
	{true, "v=0\r\n" V4 "m=image 5000 udptl t38\r\n", "udp/192.0.2.9:5000 udp/192.0.2.9:5001"},
	{true, "v=0\r\n" V4 "m=message 5000 TCP/MSRP *\r\n", "tcp/192.0.2.9:5000"},
	{true, "v=0\r\n" V4 "m=message 9 TCP/MSRP *\r\n", ""},
	{true, "v=0\r\n" V4 "m=audio 5000 DCCP/RTP/AVP 0\r\n", ""},
	{true, "v=0\r\n" V4 "m=audio 65535 RTP/AVP 0\r\n", "udp/192.0.2.9:65535"},
	{true, "v=0\r\n" V4 "m=audio 65536 RTP/AVP 0\r\n", ""},
	{true, "v=0\r\n" V4 "m=audio 1000 RTP/AVP 0\r\n", ""},
	{true, "v=0\r\n" V4 "m=audio\r\nm=\r\nm=audio 5000\r\nm=audio x RTP/AVP\r\n", ""},
	/* two messages; the second has no address of its own */
	{false, "v=0\r\n" V4 AUDIO "SIP/2.0 200 OK\r\n\r\nv=0\r\n" AUDIO,
	 "udp/192.0.2.9:5000 udp/192.0.2.9:5001"},
	{true, "v=0\r\n" V4 "BYE sip:b SIP/2.0\r\n" AUDIO, ""},
	{true, "\r\n\r\n", ""},
	{true, "", ""},
};

START_TEST(sip_text)
{
	const char *text = sip_texts[_i].text;
	struct announced out[ANNOUNCED_MAX];
	size_t len = strlen(text), k;
	char *copy;

	for (k = 0; k <= len; k++) {
		copy = malloc(k);
		memcpy(copy, text, k);
		sip_announced(copy, k, k % 2 == 0, out);
		free(copy);
	}
	ck_assert_str_eq(listed(out, sip_announced(text, len, sip_texts[_i].whole, out)),
			 sip_texts[_i].want);
}
END_TEST

/* More than a packet may say is not heard, and nothing is written behind. */
START_TEST(too_many)
{
	struct announced out[ANNOUNCED_MAX + 1];
	char text[4096] = "v=0\r\n" V4;
	int i;

	memset(out, 0xee, sizeof(out));
	for (i = 0; i < 100; i++)
		strcat(text, "m=a 5000/9 RTP/AVP\r\n");
	ck_assert_uint_eq(sip_announced(text, strlen(text), true, out), ANNOUNCED_MAX);
	ck_assert_uint_eq(out[ANNOUNCED_MAX].port, 0xeeee);
	text[0] = '\0';
	for (i = 0; i < 100; i++)
		strcat(text, "PORT 192,0,2,1,4,1\r\n");
	ck_assert_uint_eq(ftp_announced(text, strlen(text), false, out), ANNOUNCED_MAX);
	ck_assert_uint_eq(out[ANNOUNCED_MAX].port, 0xeeee);
	/* lines: the last of 256, and not the one behind it */
	for (i = 254; i <= 255; i++) {
		memset(text, '\n', (size_t)i);
		strcpy(text + i, "PORT 192,0,2,1,4,1\nPORT 192,0,2,1,4,1\n");
		ck_assert_uint_eq(ftp_announced(text, strlen(text), false, out), 2 * (256 - i));
		strcpy(text + i - 1, "v=0\n" V4 "m=a 5000 RTP/AVP\n");
		ck_assert_uint_eq(sip_announced(text, strlen(text), true, out), 2 * (255 - i));
	}
}
END_TEST

/* ---- flows --------------------------------------------------------------------------- */

static struct first first = {.links = 1};
static struct flow_table table;
static struct correlate *c;
static uint32_t next_slot;
/* of the next flow */
static uint8_t begin_chain;
static uint16_t begin_policy;

static void
setup(void)
{
	table = (struct flow_table){.slots = SLOTS, .hand = HAND, .first = &first};
	table.flows = aligned_alloc(64, SLOTS * sizeof(struct flow));
	memset(table.flows, 0, SLOTS * sizeof(struct flow));
	next_slot = 0;
}

static void
start(uint32_t max, const char *ports)
{
	struct correlate_opts o = {.max = max, .seconds = 100};

	ck_assert_int_eq(correlate_parse("--correlate", ports, &o), 0);
	c = correlate_open(&o, &table, 1);
	ck_assert_ptr_nonnull(c);
}

static void
teardown(void)
{
	correlate_close(c);
	free(table.flows);
	c = NULL;
}

/* A flow begins; a is the end that sent the first packet. */
static struct flow *
begin(uint8_t proto, const char *a, uint16_t port_a, const char *b, uint16_t port_b, uint16_t vlan)
{
	struct flow *f = &table.flows[next_slot++ % SLOTS];
	bool v6 = strchr(a, ':') != NULL;
	uint8_t addr[2][16] = {{0}};
	uint16_t port[2] = {port_a, port_b};
	uint16_t generation = f->generation;
	int low;

	inet_pton(v6 ? AF_INET6 : AF_INET, a, addr[0]);
	inet_pton(v6 ? AF_INET6 : AF_INET, b, addr[1]);
	low = memcmp(addr[0], addr[1], 16) > 0;
	memset(f, 0, sizeof(*f));
	f->generation = (uint16_t)(generation + 1);
	f->used = 1;
	f->first_reverse = (uint8_t)low;
	f->queue = 1;
	f->chain = begin_chain;
	f->policy = begin_policy;
	memcpy(f->key.addr_a, addr[low], 16);
	memcpy(f->key.addr_b, addr[!low], 16);
	f->key.port_a[0] = (uint8_t)(port[low] >> 8);
	f->key.port_a[1] = (uint8_t)port[low];
	f->key.port_b[0] = (uint8_t)(port[!low] >> 8);
	f->key.port_b[1] = (uint8_t)port[!low];
	f->key.vlan[0][1] = (uint8_t)vlan;
	f->key.proto = proto;
	f->key.ip_version = v6 ? 6 : 4;
	ck_assert_int_eq(correlate_first(c, f), f->expected);
	return f;
}

/* A packet of it, in as many segments as it has bytes; back: by who did not begin. */
static void
say(const struct flow *f, bool back, const char *text)
{
	uint8_t bytes[2048] = {0};
	uint32_t cuts[2048], len = (uint32_t)strlen(text),
			     l4 = f->key.proto == IPPROTO_TCP ? 20 : 8;
	uint32_t l3 = f->key.ip_version == 4 ? 20 : 40, i;
	struct nfmeta_record r = {.flags = NFMETA_L2_VALID | NFMETA_L3_VALID | NFMETA_L4_VALID,
				  .l3_off = 14,
				  .l4_off = (uint16_t)(14 + l3),
				  .payload_off = (uint16_t)(14 + l3 + l4)};
	struct rte_mbuf *m;

	if (l3 == 20) {
		bytes[14 + 2] = (uint8_t)((l3 + l4 + len) >> 8);
		bytes[14 + 3] = (uint8_t)(l3 + l4 + len);
	} else {
		bytes[14 + 4] = (uint8_t)((l4 + len) >> 8);
		bytes[14 + 5] = (uint8_t)(l4 + len);
	}
	if (l4 == 8) {
		bytes[14 + l3 + 4] = (uint8_t)((l4 + len) >> 8);
		bytes[14 + l3 + 5] = (uint8_t)(l4 + len);
	}
	memcpy(bytes + 14 + l3 + l4, text, len);
	/* what Ethernet puts behind is not said by anybody */
	len += 14 + l3 + l4;
	memcpy(bytes + len, "\r\nPORT 9,9,9,9,9,9\r\n", 20);
	for (i = 0; i < len; i++)
		cuts[i] = i;
	m = packet_new(bytes, len + 20, cuts, len);
	correlate_look(c, f, m, &r, f->first_reverse != back);
	packet_free(m);
}

static void
is_of(const struct flow *f, const struct flow *master)
{
	uint16_t generation;
	uint32_t id;

	ck_assert_int_eq(f->expected, master != NULL);
	ck_assert_uint_eq(f->queue, master != NULL ? master->queue : 1);
	if (master == NULL)
		return;
	correlate_master(c, f, &id, &generation);
	ck_assert_uint_eq(id, flow_id(&table, master));
	ck_assert_uint_eq(generation, master->generation);
}

static struct flow *
ftp_control(void)
{
	struct flow *f = begin(IPPROTO_TCP, "192.0.2.1", 30000, "192.0.2.100", 21, 0);

	f->queue = 3;
	ck_assert_int_eq(f->control, CONTROL_FTP);
	return f;
}

START_TEST(both_ends)
{
	struct flow *f, *g;

	start(8, "ftp,sip");
	f = ftp_control();
	say(f, false, "PORT 192,0,2,1,4,1\r\n");
	is_of(begin(IPPROTO_TCP, "192.0.2.100", 20, "192.0.2.1", 1026, 0), NULL);
	is_of(begin(IPPROTO_UDP, "192.0.2.100", 20, "192.0.2.1", 1025, 0), NULL);
	is_of(begin(IPPROTO_TCP, "192.0.2.100", 20, "192.0.2.1", 1025, 7), NULL); /* VLAN */
	is_of(begin(IPPROTO_TCP, "192.0.2.100", 20, "192.0.2.1", 1025, 0), f);
	is_of(begin(IPPROTO_TCP, "192.0.2.100", 22, "192.0.2.1", 1025, 0), NULL); /* once */
	say(f, true, "PORT 192,0,2,1,4,1\r\n"); /* by the server: no */
	is_of(begin(IPPROTO_TCP, "192.0.2.100", 23, "192.0.2.1", 1025, 0), NULL);
	say(f, true, "227 (10,0,0,1,4,2)\r\n"); /* at both addresses */
	is_of(begin(IPPROTO_TCP, "192.0.2.1", 40000, "192.0.2.100", 1026, 0), f);
	is_of(begin(IPPROTO_TCP, "192.0.2.1", 40000, "10.0.0.1", 1026, 0), f);
	f = begin(IPPROTO_TCP, "2001:db8::2", 30000, "2001:db8::1", 21, 0);
	f->queue = 5;
	say(f, true, "229 (|||2000|)\r\n");
	is_of(begin(IPPROTO_TCP, "2001:db8::2", 30001, "2001:db8::1", 2000, 0), f);
	say(f, false, "EPRT |2|2001:db8::2|2001|\r\n");
	is_of(begin(IPPROTO_TCP, "2001:db8::1", 20, "2001:db8::2", 2001, 0), f);
	/* both ends have the port: who was talked to is the server */
	g = begin(IPPROTO_TCP, "192.0.2.5", 21, "192.0.2.4", 21, 0);
	g->queue = 6;
	say(g, false, "PORT 192,0,2,5,8,1\r\n");
	is_of(begin(IPPROTO_TCP, "192.0.2.4", 20, "192.0.2.5", 2049, 0), g);
	ck_assert_uint_eq(correlate_counts(c, HAND)->waiting, 0);
	ck_assert_uint_eq(correlate_counts(c, HAND)->matched, 6);
}
END_TEST

START_TEST(sip_media)
{
	struct flow *f, *g;
	int i;

	start(64, "ftp,sip");
	f = begin(IPPROTO_UDP, "192.0.2.1", 5060, "192.0.2.100", 5060, 0);
	f->queue = 3;
	ck_assert_int_eq(f->control, CONTROL_SIP);
	say(f, false, "INVITE sip:b SIP/2.0\r\n\r\nv=0\r\n" V4 "m=audio 5000 RTP/AVP 0");
	is_of(begin(IPPROTO_UDP, "192.0.2.9", 5001, "192.0.2.77", 7001, 0), f);
	for (i = 0; i < 9; i++) /* from several places, but not from all */
		is_of(begin(IPPROTO_UDP, "192.0.2.77", (uint16_t)(7000 + i), "192.0.2.9", 5000, 0),
		      i < 8 ? f : NULL);
	ck_assert_uint_eq(correlate_counts(c, HAND)->expected, 2);
	/* over TCP, the SDP in a segment of its own */
	g = begin(IPPROTO_TCP, "2001:db8::1", 30000, "2001:db8::2", 5060, 0);
	g->queue = 4;
	say(g, true, "v=0\r\nc=IN IP6 2001:db8::9\r\nm=audio 5000 RTP/AVP 0\r\nm=");
	is_of(begin(IPPROTO_UDP, "2001:db8::9", 5000, "2001:db8::7", 9000, 0), g);
	/* the same port again, by another one: he has it now */
	say(f, false, "v=0\r\n" V4 "m=audio 6000 RTP/AVP 0");
	g = begin(IPPROTO_UDP, "192.0.2.2", 5060, "192.0.2.100", 5060, 0);
	g->queue = 2;
	say(g, true, "v=0\r\n" V4 "m=audio 6000 RTP/AVP 0");
	is_of(begin(IPPROTO_UDP, "192.0.2.9", 6000, "192.0.2.7", 9000, 0), g);
	ck_assert_uint_eq(correlate_counts(c, HAND)->replaced, 2);
	/* both ends announced: the later one's */
	say(f, false, "v=0\r\n" V4 "m=audio 7000 RTP/AVP 0");
	table.hand++;
	say(g, false, "v=0\r\nc=IN IP4 192.0.2.10\r\nm=audio 7000 RTP/AVP 0");
	is_of(begin(IPPROTO_UDP, "192.0.2.9", 7000, "192.0.2.10", 7000, 0), g);
}
END_TEST

/* Waits as long as was said, from when it was said last. */
START_TEST(time_is_over)
{
	const struct correlate_counts *n;
	struct flow *f;

	start(8, "ftp");
	f = ftp_control();
	say(f, false, "PORT 192,0,2,1,4,1\r\n");
	table.hand += 60;
	say(f, false, "PORT 192,0,2,1,4,1\r\n");
	say(f, false, "PORT 192,0,2,1,4,2\r\n");
	table.hand += 99;
	is_of(begin(IPPROTO_TCP, "192.0.2.100", 20, "192.0.2.1", 1025, 0), f);
	table.hand += 1;
	is_of(begin(IPPROTO_TCP, "192.0.2.100", 20, "192.0.2.1", 1026, 0), NULL);
	n = correlate_counts(c, table.hand);
	ck_assert_uint_eq(n->expected, 2);
	ck_assert_uint_eq(n->expired, 1);
	ck_assert_uint_eq(n->waiting, 0);
}
END_TEST

START_TEST(oldest_goes)
{
	const struct correlate_counts *n;
	char text[64];
	struct flow *f;
	int i;

	start(4, "ftp");
	f = ftp_control();
	for (i = 0; i < 6; i++) {
		snprintf(text, sizeof(text), "PORT 192,0,2,1,4,%d\r\n", i);
		say(f, false, text);
		if (i == 3) /* said again: it is not the oldest any more */
			say(f, false, "PORT 192,0,2,1,4,0\r\n");
	}
	n = correlate_counts(c, HAND);
	ck_assert_uint_eq(n->expected, 6);
	ck_assert_uint_eq(n->pushed_out, 2);
	ck_assert_uint_eq(n->waiting, 4);
	for (i = 0; i < 6; i++)
		is_of(begin(IPPROTO_TCP, "192.0.2.100", 20, "192.0.2.1", (uint16_t)(1024 + i), 0),
		      i == 1 || i == 2 ? NULL : f);
	ck_assert_uint_eq(correlate_counts(c, HAND)->waiting, 0);
	for (i = 0; i < 1000; i++) { /* and the room is there again */
		snprintf(text, sizeof(text), "PORT 192,0,2,1,%d,%d\r\n", 4 + i / 256, i % 256);
		say(f, false, text);
	}
	ck_assert_uint_eq(correlate_counts(c, HAND)->waiting, 4);
	ck_assert_uint_eq(correlate_counts(c, HAND)->pushed_out, 2 + 996);
}
END_TEST

/* Where the control session is now; if it is not, where it was. */
START_TEST(master_moves)
{
	struct flow *f, *g;

	start(8, "ftp");
	f = ftp_control();
	say(f, false, "PORT 192,0,2,1,4,1\r\n");
	say(f, false, "PORT 192,0,2,1,4,2\r\n");
	f->queue = 9;
	g = begin(IPPROTO_TCP, "192.0.2.100", 20, "192.0.2.1", 1025, 0);
	ck_assert_uint_eq(g->queue, 9);
	f->used = 0;
	g = begin(IPPROTO_TCP, "192.0.2.100", 20, "192.0.2.1", 1026, 0);
	ck_assert_uint_eq(g->queue, 3);
	ck_assert_int_eq(g->expected, 1);
}
END_TEST

/* At every link. */
START_TEST(several_links)
{
	struct flow *f, *g;

	first.links = 3;
	table.more = aligned_alloc(64, SLOTS * 2 * sizeof(struct flow_more));
	memset(table.more, 0, SLOTS * 2 * sizeof(struct flow_more));
	start(8, "ftp");
	f = ftp_control();
	flow_more(&table, f, 1)->queue = 4;
	flow_more(&table, f, 2)->queue = 5;
	say(f, false, "PORT 192,0,2,1,4,1\r\n");
	say(f, false, "PORT 192,0,2,1,4,2\r\n");
	flow_more(&table, f, 2)->queue = 6;
	g = begin(IPPROTO_TCP, "192.0.2.100", 20, "192.0.2.1", 1025, 0);
	ck_assert_uint_eq(flow_queue(&table, g, 0), 3);
	ck_assert_uint_eq(flow_queue(&table, g, 1), 4);
	ck_assert_uint_eq(flow_queue(&table, g, 2), 6);
	f->used = 0;
	g = begin(IPPROTO_TCP, "192.0.2.100", 20, "192.0.2.1", 1026, 0);
	ck_assert_uint_eq(flow_queue(&table, g, 1), 4);
	ck_assert_uint_eq(flow_queue(&table, g, 2), 5);
	free(table.more);
}
END_TEST

/*
 * By the control session's links, where no line speaks of the flow and it would go by none;
 * out of a drop only between the same two hosts.
 */
START_TEST(links_of_the_policy)
{
	enum {
		ALL = CHAIN_ALL,
		NONE = CHAIN_NONE,
		DROP = CHAIN_DROP,
		ONE
	};
	static const struct {
		uint8_t control, own;
		bool line, elsewhere;
		uint8_t want;
	} cases[] = {
		{ONE, NONE, false, false, ONE},	  {ONE, NONE, false, true, ONE},
		{ONE, NONE, true, false, NONE},	  {ONE, DROP, false, false, ONE},
		{ONE, DROP, false, true, DROP},	  {ONE, DROP, true, false, DROP},
		{ONE, ALL, false, false, ALL},	  {NONE, ALL, false, false, ALL},
		{NONE, DROP, false, false, DROP}, {DROP, ALL, false, false, ALL},
		{DROP, NONE, false, false, NONE},
	};
	struct policy policy = {.rules.rest.slot = 7};
	struct flow *f, *g;

	first = (struct first){
		.links = 1,
		.policy = &policy,
		.nchains = 4,
		.chains = {[ALL] = {.n = 1, .mask = 1}, [ONE] = {.n = 1, .mask = 1}}};
	start(8, "ftp");
	begin_chain = cases[_i].control;
	f = ftp_control();
	say(f, true, "227 (192,0,2,200,4,1)\r\n");
	begin_chain = cases[_i].own;
	begin_policy = cases[_i].line ? 1 : 7;
	g = begin(IPPROTO_TCP, "192.0.2.1", 40000,
		  cases[_i].elsewhere ? "192.0.2.200" : "192.0.2.100", 1025, 0);
	ck_assert_int_eq(g->expected, 1);
	ck_assert_uint_eq(g->chain, cases[_i].want);
}
END_TEST

/* What the other end throws away, or has no such port. */
START_TEST(not_looked_at)
{
	struct nfmeta_record r = {.flags = NFMETA_L4_VALID | NFMETA_L4_CSUM_BAD};
	struct rte_mbuf *m = packet_new(NULL, 0, NULL, 0);
	struct flow *f;

	start(8, "ftp:2121,sip");
	f = begin(IPPROTO_TCP, "192.0.2.1", 30000, "192.0.2.100", 21, 0);
	ck_assert_int_eq(f->control, 0);
	f = begin(IPPROTO_UDP, "192.0.2.1", 30000, "192.0.2.100", 2121, 0);
	ck_assert_int_eq(f->control, 0);
	f = begin(IPPROTO_TCP, "192.0.2.1", 30000, "192.0.2.100", 2121, 0);
	ck_assert_int_eq(f->control, CONTROL_FTP);
	correlate_look(c, f, m, &r, 0);
	r.flags = NFMETA_L4_VALID | NFMETA_L3_CSUM_BAD;
	correlate_look(c, f, m, &r, 0);
	r.flags = NFMETA_L3_VALID;
	correlate_look(c, f, m, &r, 0);
	r = (struct nfmeta_record){
		.flags = NFMETA_L4_VALID, .l3_off = 14, .l4_off = 34, .payload_off = 54};
	correlate_look(c, f, m, &r, 0); /* less there than it says */
	packet_free(m);
	ck_assert_uint_eq(correlate_counts(c, HAND)->expected, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("correlate");
	TCase *t = tcase_create("texts"), *f = tcase_create("flows");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, ftp_text, 0, RTE_DIM(ftp_texts));
	tcase_add_loop_test(t, sip_text, 0, RTE_DIM(sip_texts));
	tcase_add_test(t, too_many);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(f, setup, teardown);
	tcase_add_test(f, both_ends);
	tcase_add_test(f, sip_media);
	tcase_add_test(f, time_is_over);
	tcase_add_test(f, oldest_goes);
	tcase_add_test(f, master_moves);
	tcase_add_test(f, several_links);
	tcase_add_loop_test(f, links_of_the_policy, 0, 11);
	tcase_add_test(f, not_looked_at);
	suite_add_tcase(s, f);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
