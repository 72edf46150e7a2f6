/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Links between processes, on real hugepages: Check's child of each test is the
 * primary; the secondaries are this program again, started with a role.
 */
#include <errno.h>
#include <sys/stat.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_random.h>
#include <rte_version.h>

#include "../examples/common/idle.h"
#include "twoproc.h"

#ifdef __SANITIZE_ADDRESS__
#define MANY 128000
#else
#define MANY 1000000
#endif
#define BURST 32
#define LEN 64

static struct nfmeta_link *link_p;

/* ---- Packets that say what they are ---------------------------------------------- */

static void
fill(uint8_t *p, uint32_t seq)
{
	unsigned int i;

	memcpy(p, &seq, 4);
	for (i = 4; i < LEN; i++)
		p[i] = (uint8_t)(seq + i);
}

static int
is_packet(const uint8_t *p, uint32_t seq)
{
	uint8_t want[LEN];

	fill(want, seq);
	return memcmp(p, want, LEN) == 0;
}

static void
record_of(struct nfmeta_record *r, uint32_t seq)
{
	nfmeta_record_init(r);
	r->flags = NFMETA_L2_VALID | NFMETA_L3_VALID | NFMETA_FLOW_KNOWN;
	r->flow_id = seq;
	r->l3_off = 14;
	r->l4_off = 34;
	r->payload_off = (uint16_t)(seq % 1400);
	r->flow_gen = (uint16_t)(seq >> 3);
	r->app_id = seq * 3;
	r->port = 7;
	r->timestamp = (uint64_t)seq * 1000;
	r->user[15] = (uint8_t)seq;
}

static int
is_record(const struct nfmeta_record *got, uint32_t seq, uint32_t size)
{
	struct nfmeta_record want;

	record_of(&want, seq);
	want.size = (uint8_t)size;
	return got->size == size && memcmp(got, &want, size) == 0;
}

/* ---- The roles: what a child process does ---------------------------------------- */

static int
plain_eal(const char *prefix, const char *type, int huge)
{
	char prefix_option[128], type_option[64];
	char *argv[] = {"peer",
			prefix_option,
			type_option,
			"--no-pci",
			"-l",
			"0",
			"--no-telemetry",
			"--log-level=critical",
			"-m",
			"64",
			huge ? "--huge-dir" : "--no-huge",
			hugedir,
			NULL};

	snprintf(prefix_option, sizeof(prefix_option), "--file-prefix=%s", prefix);
	snprintf(type_option, sizeof(type_option), "--proc-type=%s", type);
	return rte_eal_init(huge ? 12 : 11, argv);
}

/* eal PREFIX TIMEOUT: attach EAL, say the result and the lcore id. */
static int
role_eal(char **arg)
{
	struct nfmeta_eal_opts o =
		NFMETA_EAL_OPTS(.file_prefix = arg[0], .timeout_ms = (uint32_t)atoi(arg[1]));
	int rc = nfmeta_eal_attach(&o);

	if (rc != 0) {
		say(rc);
		return 1;
	}
	printf("0 lcore %u\n", rte_lcore_id());
	fflush(stdout);
	wait_for_parent();
	nfmeta_eal_detach();
	return 0;
}

static void *
affinity_of_a_thread(void *cpus)
{
	pthread_getaffinity_np(pthread_self(), sizeof(cpu_set_t), cpus);
	return NULL;
}

/* manners PREFIX LOG: attaching leaves the host as it was. */
static int
role_manners(char **arg)
{
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS(.file_prefix = arg[0], .log_file = arg[1]);
	cpu_set_t mine, after, thread;
	sigset_t signals, signals_after;
	struct stat st;
	pthread_t t;
	int rc, cpu;

	pthread_getaffinity_np(pthread_self(), sizeof(mine), &mine);
	for (cpu = 0; CPU_COUNT(&mine) > 1; cpu++)
		CPU_CLR(cpu, &mine);
	pthread_setaffinity_np(pthread_self(), sizeof(mine), &mine);
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &signals, NULL);
	optind = 5;

	rc = nfmeta_eal_attach(&o);
	if (rc != 0) {
		say(rc);
		return 1;
	}
	pthread_getaffinity_np(pthread_self(), sizeof(after), &after);
	pthread_create(&t, NULL, affinity_of_a_thread, &thread);
	pthread_join(t, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &signals_after);
	if (!CPU_EQUAL(&mine, &after) || !CPU_EQUAL(&mine, &thread))
		printf("1 affinity changed\n");
	else if (memcmp(&signals, &signals_after, sizeof(unsigned long)) != 0)
		printf("1 signal mask changed\n");
	else if (optind != 5)
		printf("1 getopt's state changed\n");
	else if (stat(arg[1], &st) != 0 || st.st_size == 0)
		printf("1 no log in the log file\n");
	else if (nfmeta_eal_attach(&o) != -EALREADY)
		printf("1 attached twice\n");
	else
		printf("0 ok\n");
	fflush(stdout);
	nfmeta_eal_detach();
	return 0;
}

/* attach PREFIX LINK QUEUE TIMEOUT: attach, say the result, leave when told. */
static int
role_attach(char **arg)
{
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS(.file_prefix = arg[0]);
	struct nfmeta_link *link;
	int rc = nfmeta_eal_attach(&o);

	if (rc == 0)
		rc = nfmeta_link_attach(arg[1], (uint16_t)atoi(arg[2]), (uint32_t)atoi(arg[3]),
					&link);
	say(rc);
	if (rc == 0) {
		wait_for_parent();
		rc = nfmeta_link_detach(link);
		say(rc);
	}
	nfmeta_eal_detach();
	return rc != 0;
}

/* plain PREFIX LINK: as a DPDK program does, whatever became of the primary. */
static int
role_plain(char **arg)
{
	struct nfmeta_field field = {.flag = 1 << 20,
				     .offset = 96,
				     .seal_offset = 92,
				     .placement = NFMETA_PLACE_DYNFIELD,
				     .size = NFMETA_RECORD_CORE};
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.field = &field);
	struct nfmeta_link *link;
	int rc = plain_eal(arg[0], "secondary", 1);

	if (rc < 0) {
		printf("1 rte_eal_init\n");
		return 1;
	}
	rc = nfmeta_link_create("other", &o, &link);
	if (rc != -NFMETA_EROLE || strstr(nfmeta_error(), "primary only") == NULL) {
		printf("1 a secondary created a link\n");
		return 1;
	}
	rc = nfmeta_field_register(NULL, &field);
	if (rc != -NFMETA_EROLE) {
		printf("1 a secondary registered a field\n");
		return 1;
	}
	rc = nfmeta_link_attach(arg[1], 0, 0, &link);
	say(rc);
	_exit(rc != 0); /* as if it had crashed */
}

/* primary PREFIX huge|no-huge: create link "t" and live on. */
static int
role_primary(char **arg)
{
	struct nfmeta_link *link;

	if (plain_eal(arg[0], "primary", strcmp(arg[1], "huge") == 0) < 0) {
		printf("1 rte_eal_init\n");
		return 1;
	}
	say(nfmeta_link_create("t", NULL, &link));
	wait_for_parent();
	return nfmeta_link_destroy(link, NULL) != 0;
}

/* patch FILE OFFSET VALUE: change a word of a file, say what it was. */
static int
role_patch(char **arg)
{
	uint32_t old = 0, value = (uint32_t)strtoul(arg[2], NULL, 0);
	int fd = open(arg[0], O_RDWR);
	ssize_t n = pread(fd, &old, 4, atoi(arg[1]));

	n += pwrite(fd, &value, 4, atoi(arg[1]));
	printf("%d 0x%x\n", n == 8 ? 0 : 1, old);
	fflush(stdout);
	return 0;
}

/* hold PREFIX LINK N BLANKS: take packets and blanks, and die with them. */
static int
role_hold(char **arg)
{
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS(.file_prefix = arg[0]);
	unsigned int packets = (unsigned int)atoi(arg[2]), blanks = (unsigned int)atoi(arg[3]);
	struct rte_mbuf *m[256];
	struct nfmeta_link *link;
	int rc = nfmeta_eal_attach(&o);

	if (rc == 0)
		rc = nfmeta_link_attach(arg[1], 0, 1000, &link);
	while (rc == 0 && packets > 0)
		packets -= nfmeta_recv_burst(link, m, NULL, (uint16_t)packets);
	while (rc == 0 && blanks > 0)
		blanks -= nfmeta_blank_burst(link, m, (uint16_t)blanks);
	say(rc);
	wait_for_parent();
	return rc != 0;
}

/*
 * nf PREFIX LINK QUEUE STEP SIZE: return what comes, until the link closes (exit
 * status 0) or the primary is gone (3).  Packets are QUEUE, QUEUE + STEP, ...,
 * with records of SIZE bytes; STEP 0: do not look.
 */
static int
role_nf(char **arg)
{
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS(.file_prefix = arg[0], .timeout_ms = 1000);
	uint32_t queue = (uint32_t)atoi(arg[2]), step = (uint32_t)atoi(arg[3]), seq = queue;
	uint32_t size = (uint32_t)atoi(arg[4]);
	struct nfmeta_record recs[BURST];
	struct rte_mbuf *m[BURST];
	struct nfmeta_link *link;
	unsigned int i, n, idle = 0;
	uint64_t asked = 0;
	uint8_t how[BURST];
	int rc = nfmeta_eal_attach(&o);

	if (rc == 0)
		rc = nfmeta_link_attach(arg[1], (uint16_t)queue, 5000, &link);
	say(rc);
	if (rc != 0)
		return 1;
	for (;;) {
		n = nfmeta_recv_burst(link, m, recs, BURST);
		for (i = 0; i < n; i++) {
			uint8_t *p = rte_pktmbuf_mtod(m[i], uint8_t *);

			how[i] = (uint8_t)(seq % 3);
			if (step == 0)
				continue;
			if (m[i]->pkt_len != LEN || !is_packet(p, seq) ||
			    !is_record(&recs[i], seq, size)) {
				printf("1 packet %u is wrong\n", seq);
				return 2;
			}
			fill(p, ~seq);
			seq += step;
		}
		if (nfmeta_return_burst(link, m, how, (uint16_t)n) != n) {
			printf("1 return\n");
			return 2;
		}
		if (n == 0 && ++idle > 100)
			sched_yield();
		if (n != 0)
			idle = 0;
		if (now_us() - asked > 100000) {
			asked = now_us();
			rc = nfmeta_link_check(link);
			if (rc == -NFMETA_EPRIMARYGONE) {
				say(rc);
				return nfmeta_link_detach(link) == 0 ? 3 : 4;
			}
			if (rc != 0)
				break;
		}
	}
	while ((n = nfmeta_recv_burst(link, m, NULL, BURST)) != 0)
		nfmeta_return_burst(link, m, NULL, (uint16_t)n);
	rc = nfmeta_link_detach(link);
	nfmeta_eal_detach();
	return rc != 0;
}

/* idler PREFIX LINK SLEEP: give back what comes, sleeping as the examples do, until closed. */
static int
role_idler(char **arg)
{
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS(.file_prefix = arg[0], .timeout_ms = 1000);
	struct idle idle = {.sleep_us = (uint32_t)atoi(arg[2])};
	struct nfmeta_link *link = NULL;
	struct rte_mbuf *m[BURST];
	uint64_t asked = 0;
	uint16_t n;
	int rc = nfmeta_eal_attach(&o);

	if (rc == 0)
		rc = nfmeta_link_attach(arg[1], 0, 1000, &link);
	say(rc);
	while (rc == 0) {
		n = nfmeta_recv_burst(link, m, NULL, BURST);
		nfmeta_return_burst(link, m, NULL, n);
		if (n > 0)
			idle_over(&idle);
		else
			idle_wait(&idle);
		if (now_us() - asked < 10000)
			continue;
		asked = now_us();
		rc = nfmeta_link_check(link);
	}
	if (link != NULL)
		rc = nfmeta_link_detach(link);
	nfmeta_eal_detach();
	return rc != 0;
}

static const struct role roles[] = {
	{"idler", 3, role_idler},   {"eal", 2, role_eal},     {"manners", 2, role_manners},
	{"attach", 4, role_attach}, {"plain", 2, role_plain}, {"primary", 2, role_primary},
	{"patch", 3, role_patch},   {"hold", 4, role_hold},   {"nf", 5, role_nf},
};

/* ---- The primary ------------------------------------------------------------------- */

/* Packets next, next + step, ... into m; returns how many there are. */
static unsigned int
make(struct rte_mbuf **m, unsigned int n, uint32_t *next, uint32_t step)
{
	struct nfmeta_record r;
	unsigned int i;

	if (rte_pktmbuf_alloc_bulk(pool, m, n) != 0)
		return 0;
	for (i = 0; i < n; i++) {
		fill((uint8_t *)rte_pktmbuf_append(m[i], LEN), *next);
		record_of(&r, *next);
		ck_assert_int_eq(nfmeta_record_set(nfmeta_link_field(link_p), m[i], &r), 1);
		*next += step;
	}
	return n;
}

/* Collect until nothing is at the NFs, or the time is over. */
static void
collect_all(unsigned int queues)
{
	struct rte_mbuf *m[BURST];
	uint8_t how[BURST];
	uint64_t end = now_us() + 5000000;
	unsigned int q, n, rest;

	do {
		for (q = 0, rest = 0; q < queues; q++) {
			n = nfmeta_collect_burst(link_p, (uint16_t)q, m, how, BURST);
			rte_pktmbuf_free_bulk(m, n);
			rest += nfmeta_link_in_flight(link_p, (uint16_t)q);
		}
	} while (rest != 0 && now_us() < end);
	ck_assert_uint_eq(rest, 0);
}

static void
close_and_destroy(struct child *nfs, unsigned int queues)
{
	uint64_t lost = 1;
	unsigned int q;

	nfmeta_link_close(link_p);
	collect_all(queues);
	for (q = 0; q < queues; q++)
		ck_assert_int_eq(finish(&nfs[q]), 0);
	ck_ok(nfmeta_link_destroy(link_p, &lost));
	ck_assert_uint_eq(lost, 0);
}

/* ---- Packets down and up ------------------------------------------------------------- */

static const struct {
	struct nfmeta_field_opts field;
	uint16_t queues;
	uint8_t when_full;
	const char *step, *size;
} floods[] = {
	{NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_DYNFIELD, .size = 16), 1, NFMETA_FULL_DROP,
	 "1", "16"},
	{NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_DYNFIELD, .size = 32), 1, NFMETA_FULL_BYPASS,
	 "1", "32"},
	{NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_UDATA64), 1, NFMETA_FULL_WAIT, "1", "8"},
	{NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_HEADROOM), 1, NFMETA_FULL_WAIT, "1", "64"},
	{NFMETA_FIELD_OPTS(.placement = NFMETA_PLACE_DYNFIELD, .size = 16), 2, NFMETA_FULL_DROP,
	 "2", "16"},
};

START_TEST(flood)
{
	struct nfmeta_field field;
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.queues = floods[_i].queues, .when_full = floods[_i].when_full,
				 .wait_us = 100000, .field = &field);
	const uint32_t queues = o.queues;
	struct {
		struct rte_mbuf *m[BURST];
		unsigned int n;
		uint32_t next, expect;
		uint64_t refused;
	} qs[2] = {0}, *q;
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	struct rte_mbuf *got[BURST];
	struct child nfs[2];
	uint8_t how[BURST];
	unsigned int i, j, k, moved, done;
	uint64_t last = now_us();
	char number[2] = "0";

	ck_ok(nfmeta_field_register(&floods[_i].field, &field));
	ck_ok(nfmeta_link_create("t", &o, &link_p));
	for (i = 0; i < queues; i++) {
		number[0] = (char)('0' + i);
		nfs[i] = START("nf", prefix_of(""), "t", number, floods[_i].step, floods[_i].size);
		ck_said(&nfs[i], 0);
		ck_assert_int_eq(nfmeta_link_peer(link_p, i), NFMETA_PEER_ALIVE);
		qs[i].next = qs[i].expect = i;
	}
	do {
		for (j = 0, done = 0, moved = 0; j < queues; j++) {
			q = &qs[j];
			if (q->n == 0 && q->next < MANY)
				q->n = make(q->m, BURST, &q->next, queues);
			k = nfmeta_send_burst(link_p, j, q->m, q->n);
			q->refused += q->n - k;
			memmove(q->m, q->m + k, (q->n - k) * sizeof(q->m[0]));
			q->n -= k;
			k = nfmeta_collect_burst(link_p, j, got, how, BURST);
			for (i = 0; i < k; i++) {
				ck_assert_int_eq(
					is_packet(rte_pktmbuf_mtod(got[i], uint8_t *), ~q->expect),
					1);
				ck_assert_uint_eq(how[i], q->expect % 3);
				q->expect += queues;
			}
			rte_pktmbuf_free_bulk(got, k);
			moved += k;
			done += q->expect >= MANY;
		}
		if (moved != 0)
			last = now_us();
		else
			sched_yield();
		ck_assert_msg(now_us() - last < 20000000, "nothing comes back, at %u",
			      qs[0].expect);
	} while (done < queues);
	for (j = 0; j < queues; j++) {
		ck_ok(nfmeta_link_stats(link_p, j, &s));
		ck_assert_uint_eq(s.sent, MANY / queues);
		ck_assert_uint_eq(s.received, MANY / queues);
		ck_assert_uint_eq(s.returned, MANY / queues);
		ck_assert_uint_eq(s.collected, MANY / queues);
		ck_assert_uint_eq(s.refused, qs[j].refused);
		ck_assert_uint_eq(s.down + s.held + s.up, 0);
	}
	close_and_destroy(nfs, queues);
}
END_TEST

/* ---- Attach and leave ------------------------------------------------------------------ */

START_TEST(queue_taken)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.queues = 2);
	struct child a, b;

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	ck_assert_uint_eq(lease_files(), 2);
	a = START("attach", prefix_of(""), "t", "0", "0");
	ck_said(&a, 0);
	b = START("attach", prefix_of(""), "t", "0", "0");
	ck_said(&b, NFMETA_EQUEUETAKEN);
	ck_says(&b, "queue 0");
	ck_assert_int_eq(finish(&b), 1);
	b = START("attach", prefix_of(""), "t", "1", "0");
	ck_said(&b, 0);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_ALIVE);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 1), NFMETA_PEER_ALIVE);
	ck_assert_int_eq(nfmeta_link_destroy(link_p, NULL), -EBUSY);
	ck_assert_int_eq(finish(&b), 0);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 1), NFMETA_PEER_NONE);
	ck_assert_int_eq(nfmeta_link_destroy(link_p, NULL), -EBUSY);
	ck_assert_int_eq(finish(&a), 0);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
}
END_TEST

/* In one process the leases do as well. */
START_TEST(same_process)
{
	struct nfmeta_link *a, *b;

	ck_ok(nfmeta_link_create("t", NULL, &link_p));
	ck_ok(nfmeta_link_attach("t", 0, 0, &a));
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_ALIVE);
	ck_assert_int_eq(nfmeta_link_attach("t", 0, 0, &b), -NFMETA_EQUEUETAKEN);
	ck_assert_int_eq(nfmeta_link_destroy(link_p, NULL), -EBUSY);
	ck_ok(nfmeta_link_check(a));
	ck_ok(nfmeta_link_detach(a));
	ck_ok(nfmeta_link_attach("t", 0, 0, &a));
	ck_ok(nfmeta_link_detach(a));
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_NONE);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
}
END_TEST

START_TEST(lease_file_gone)
{
	struct nfmeta_link *a = NULL;

	ck_ok(nfmeta_link_create("t", NULL, &link_p));
	ck_assert_int_eq(unlink(run_file("", "nfmeta.t.q0")), 0);
	ck_assert_int_eq(nfmeta_link_attach("t", 0, 0, &a), -NFMETA_ENOLINK);
	ck_assert_ptr_nonnull(strstr(nfmeta_error(), "lease"));
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_NONE);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
}
END_TEST

/* Looking for a link that is not there makes nothing. */
START_TEST(unknown_link)
{
	struct child c;
	unsigned int before;

	ck_ok(nfmeta_link_create("ids0", NULL, &link_p));
	before = memzones();
	c = START("attach", prefix_of(""), "ids1", "0", "50");
	ck_said(&c, NFMETA_ENOLINK);
	ck_says(&c, "'ids1'");
	ck_assert_int_eq(finish(&c), 1);
	c = START("attach", prefix_of(""), "ids0 ", "0", "50");
	ck_said(&c, EINVAL);
	ck_says(&c, "'ids0 '");
	ck_assert_int_eq(finish(&c), 1);
	c = START("attach", prefix_of(""), "ids0", "1", "0");
	ck_said(&c, EINVAL);
	ck_says(&c, "queue 1");
	ck_assert_int_eq(finish(&c), 1);
	c = START("plain", prefix_of(""), "ids1");
	ck_said(&c, NFMETA_ENOLINK);
	ck_assert_int_eq(finish(&c), 1);
	ck_assert_uint_eq(memzones(), before);
	ck_assert_uint_eq(lease_files(), 1);
	c = START("plain", prefix_of(""), "ids0");
	ck_said(&c, 0);
	ck_assert_int_eq(finish(&c), 0);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_DEAD); /* it just ended */
	ck_ok(nfmeta_link_destroy(link_p, NULL));
}
END_TEST

/* Files that EAL has in the runtime directory for one process. */
static unsigned int
files_of(pid_t pid)
{
	DIR *d = opendir(rte_eal_get_runtime_dir());
	unsigned int n = 0;
	struct dirent *e;
	char mark[32];

	ck_assert_ptr_nonnull(d);
	snprintf(mark, sizeof(mark), "_%d", pid);
	while ((e = readdir(d)) != NULL) {
		const char *at = strstr(e->d_name, mark);

		n += at != NULL && (at[strlen(mark)] == '\0' || at[strlen(mark)] == '_');
	}
	closedir(d);
	return n;
}

/* NFs come and go beside a primary that has traffic all the time. */
START_TEST(come_and_go)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_stats eth;
	struct rte_mbuf *m[BURST];
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	unsigned int i, n, k, before;
	uint64_t packets = 0, seen, lost = 1;
	uint8_t how[BURST];
	struct child c;
	int status;

	start_primary("net_null0,size=64");
	ck_assert_int_eq(rte_eth_dev_configure(0, 1, 1, &conf), 0);
	ck_assert_int_eq(rte_eth_rx_queue_setup(0, 0, 256, 0, NULL, pool), 0);
	ck_assert_int_eq(rte_eth_tx_queue_setup(0, 0, 256, 0, NULL), 0);
	ck_assert_int_eq(rte_eth_dev_start(0), 0);
	ck_ok(nfmeta_link_create("t", NULL, &link_p));
	before = memzones();
	for (i = 1; i <= 100; i++) {
		c = START("attach", prefix_of(""), "t", "0", "1000");
		close(c.in); /* leave at once */
		c.in = -1;
		seen = packets;
		do {
			n = rte_eth_rx_burst(0, 0, m, BURST);
			packets += n;
			k = nfmeta_send_burst(link_p, 0, m, (uint16_t)n);
			rte_pktmbuf_free_bulk(m + k, n - k);
			n = nfmeta_collect_burst(link_p, 0, m, how, BURST);
			rte_pktmbuf_free_bulk(m, n);
		} while (waitpid(c.pid, &status, WNOHANG) == 0);
		ck_said(&c, 0);
		ck_said(&c, 0);
		close(c.out);
		ck_assert_int_eq(status, 0);
		ck_assert_uint_gt(packets, seen);
		ck_assert_int_eq(rte_eth_stats_get(0, &eth), 0);
		ck_assert_uint_eq(eth.ipackets, packets);
		ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_NONE);
		ck_ok(nfmeta_link_stats(link_p, 0, &s));
		ck_assert_uint_eq(s.epoch, i);
	}
	ck_assert_uint_eq(memzones(), before);
	/* an NF in place has files of its own, one that left has none */
	ck_assert_uint_eq(files_of(c.pid), 0);
	c = START("attach", prefix_of(""), "t", "0", "1000");
	ck_said(&c, 0);
	ck_assert_uint_gt(files_of(c.pid), 0);
	finish(&c);
	ck_assert_uint_eq(files_of(c.pid), 0);
	ck_ok(nfmeta_link_destroy(link_p, &lost));
	ck_assert_uint_eq(lost, 0);
	rte_eth_dev_stop(0);
	rte_eth_dev_close(0);
	teardown();
}
END_TEST

START_TEST(closing)
{
	struct child nf;
	struct rte_mbuf *m[BURST];
	uint32_t next = 0;

	ck_ok(nfmeta_link_create("t", NULL, &link_p));
	nf = START("nf", prefix_of(""), "t", "0", "1", "16");
	ck_said(&nf, 0);
	ck_assert_uint_eq(make(m, BURST, &next, 1), BURST);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, BURST), BURST);
	nfmeta_link_close(link_p);
	ck_assert_uint_eq(make(m, 1, &next, 1), 1);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 1), 0);
	rte_pktmbuf_free(m[0]);
	close_and_destroy(&nf, 1);
}
END_TEST

/* ---- Death ------------------------------------------------------------------------------ */

START_TEST(nf_dies_with_packets)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = 512, .blanks = 64, .pool = pool);
	struct rte_mbuf *m[512];
	struct child nf, other;
	uint64_t held = 0;
	uint32_t next = 0;

	ck_ok(nfmeta_link_create("t", &o, &link_p));
	ck_assert_uint_eq(make(m, 512, &next, 1), 512);
	ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, m, 512), 512);
	nf = START("hold", prefix_of(""), "t", "32", "3");
	ck_said(&nf, 0);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_ALIVE);
	murder(&nf);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_DEAD);
	other = START("attach", prefix_of(""), "t", "0", "0");
	ck_said(&other, NFMETA_EDEADNF);
	ck_assert_int_eq(finish(&other), 1);
	ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_DEAD);
	ck_ok(nfmeta_link_destroy(link_p, &held));
	ck_assert_uint_eq(held, 35);
	ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE);

	/* The name is free. */
	ck_ok(nfmeta_link_create("t", &o, &link_p));
	nf = START("attach", prefix_of(""), "t", "0", "0");
	ck_said(&nf, 0);
	ck_assert_int_eq(finish(&nf), 0);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
}
END_TEST

/* Killed anywhere in its work: every packet is accounted for. */
START_TEST(nf_dies_any_time)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = 256);
	struct rte_mbuf *m[BURST];
	unsigned int round, n, k;
	uint64_t held, end;
	uint8_t how[BURST];
	uint32_t next;
	struct child nf;

	for (round = 0; round < 20; round++) {
		ck_ok(nfmeta_link_create("t", &o, &link_p));
		nf = START("nf", prefix_of(""), "t", "0", "0", "0");
		ck_said(&nf, 0);
		end = now_us() + 1000 + rte_rand_max(20000);
		for (next = 0; now_us() < end;) {
			n = make(m, BURST, &next, 1);
			k = nfmeta_send_burst(link_p, 0, m, (uint16_t)n);
			rte_pktmbuf_free_bulk(m + k, n - k);
			n = nfmeta_collect_burst(link_p, 0, m, how, BURST);
			rte_pktmbuf_free_bulk(m, n);
			if (now_us() + 100 >= end)
				kill(nf.pid, SIGKILL);
		}
		murder(&nf);
		ck_assert_int_eq(nfmeta_link_peer(link_p, 0), NFMETA_PEER_DEAD);
		ck_ok(nfmeta_link_destroy(link_p, &held));
		ck_assert_uint_le(held, BURST);
		ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE);
	}
	remove_dead_lcores();
}
END_TEST

START_TEST(primary_dies)
{
	struct child primary = START("primary", prefix_of("-x"), "huge"), nf, other;
	uint64_t begin;

	ck_said(&primary, 0);
	nf = START("nf", prefix_of("-x"), "t", "0", "0", "0");
	ck_said(&nf, 0);
	murder(&primary);
	begin = now_us();
	ck_said(&nf, NFMETA_EPRIMARYGONE);
	ck_assert_int_eq(finish(&nf), 3);
	ck_assert_uint_lt(now_us() - begin, 2000000);

	/* Its files are still there. */
	other = START("eal", prefix_of("-x"), "0");
	ck_said(&other, NFMETA_EPRIMARYDEAD);
	ck_says(&other, "dead");
	ck_assert_int_eq(finish(&other), 1);
	other = START("plain", prefix_of("-x"), "t");
	ck_said(&other, NFMETA_EPRIMARYDEAD);
	ck_assert_int_eq(finish(&other), 1);

	/* A new one clears up; attaching works again. */
	primary = START("primary", prefix_of("-x"), "huge");
	ck_said(&primary, 0);
	nf = START("attach", prefix_of("-x"), "t", "0", "1000");
	ck_said(&nf, 0);
	ck_assert_int_eq(finish(&nf), 0);
	ck_assert_int_eq(finish(&primary), 0);
}
END_TEST

/* ---- EAL of a host ----------------------------------------------------------------------- */

START_TEST(eal_no_primary)
{
	struct child c;
	uint64_t begin;

	c = START("eal", prefix_of("-none"), "0");
	ck_said(&c, NFMETA_ENOPRIMARY);
	ck_says(&c, prefix_of("-none"));
	ck_assert_int_eq(finish(&c), 1);
	begin = now_us();
	c = START("eal", prefix_of("-none"), "300");
	ck_said(&c, NFMETA_ENOPRIMARY);
	ck_assert_int_eq(finish(&c), 1);
	ck_assert_uint_ge(now_us() - begin, 300000);
	ck_assert_int_ne(access(run_file("-none", ""), F_OK), 0); /* nothing was made */
}
END_TEST

START_TEST(eal_waits_for_the_primary)
{
	struct child c = START("eal", prefix_of("-late"), "20000"), primary;

	usleep(200000);
	primary = START("primary", prefix_of("-late"), "huge");
	ck_said(&primary, 0);
	ck_said(&c, 0);
	ck_assert_int_eq(finish(&c), 0);
	ck_assert_int_eq(finish(&primary), 0);
}
END_TEST

START_TEST(eal_no_huge)
{
	struct child primary = START("primary", prefix_of("-small"), "no-huge"), c;

	ck_said(&primary, 0);
	c = START("eal", prefix_of("-small"), "0");
	ck_said(&c, NFMETA_ENOHUGE);
	ck_says(&c, "hugepages");
	ck_assert_int_eq(finish(&c), 1);
	ck_assert_int_eq(finish(&primary), 0);
}
END_TEST

START_TEST(eal_bad_options)
{
	static const char *const prefixes[] = {"", "a/b", "..", "a%b", "a b"};
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS();
	unsigned int i;

	for (i = 0; i < RTE_DIM(prefixes); i++) {
		o.file_prefix = prefixes[i];
		ck_assert_int_eq(nfmeta_eal_attach(&o), -EINVAL);
	}
	o.file_prefix = prefix_of("-none");
	ck_assert_int_eq(nfmeta_eal_attach(&o), -NFMETA_ENOPRIMARY);
	o.sz = 1;
	ck_assert_int_eq(nfmeta_eal_attach(&o), -EINVAL);
	nfmeta_eal_detach(); /* does no harm */
}
END_TEST

START_TEST(eal_in_a_primary)
{
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS();

	ck_assert_int_eq(nfmeta_eal_attach(&o), -EALREADY);
}
END_TEST

START_TEST(eal_manners)
{
	char log[256];
	struct child c;

	snprintf(log, sizeof(log), "%s", run_file("", "manners.log"));
	c = START("manners", prefix_of(""), log);
	ck_said(&c, 0);
	ck_assert_int_eq(finish(&c), 0);
	unlink(log);
	c = START("manners", prefix_of(""), "/nonexistent/log");
	ck_said(&c, EINVAL);
	ck_assert_int_eq(finish(&c), 1);
}
END_TEST

START_TEST(eal_lcore_ids_differ)
{
	struct child c[4];
	unsigned int i, j;

	for (i = 0; i < 4; i++)
		c[i] = START("eal", prefix_of(""), "0");
	for (i = 0; i < 4; i++) {
		ck_said(&c[i], 0);
		for (j = 0; j < i; j++)
			ck_assert_str_ne(c[i].line, c[j].line);
	}
	ck_assert_uint_eq(lease_files(), 4);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(finish(&c[i]), 0);
	ck_assert_uint_eq(lease_files(), 1);
	/* What a dead one leaves is used again. */
	murder(&c[3]);
	for (i = 0; i < 2; i++) {
		c[i] = START("eal", prefix_of(""), "0");
		ck_said(&c[i], 0);
	}
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(finish(&c[i]), 0);
	remove_dead_lcores();
}
END_TEST

static uint32_t
patch(const char *offset, const char *value)
{
	struct child c = START("patch", run_file("", "config"), offset, value);
	uint32_t old;

	ck_said(&c, 0);
	old = (uint32_t)strtoul(c.says, NULL, 16);
	ck_assert_int_eq(finish(&c), 0);
	return old;
}

START_TEST(eal_other_dpdk)
{
	struct child c;
	char old[16];

	snprintf(old, sizeof(old), "0x%x", patch("4", "0x150b0263"));
	c = START("eal", prefix_of(""), "0");
	ck_said(&c, NFMETA_EDPDKVERSION);
	ck_says(&c, "DPDK 21.11.2");
	ck_says(&c, rte_version());
	ck_assert_int_eq(finish(&c), 1);
	patch("4", old);

	/* Before the primary is ready; EAL would wait for ever. */
	snprintf(old, sizeof(old), "0x%x", patch("0", "0"));
	c = START("eal", prefix_of(""), "100");
	ck_said(&c, NFMETA_ENOPRIMARY);
	ck_says(&c, "not ready");
	ck_assert_int_eq(finish(&c), 1);
	patch("0", old);
	c = START("eal", prefix_of(""), "0");
	ck_said(&c, 0);
	ck_assert_int_eq(finish(&c), 0);
}
END_TEST

/* A primary with another struct rte_mbuf. */
START_TEST(other_mbuf_layout)
{
	struct nfmeta_shared_link *s;
	struct child c;

	ck_ok(nfmeta_link_create("t", NULL, &link_p));
	s = rte_memzone_lookup("nfmeta.t")->addr;
	s->mbuf_layout[0] = 192;
	s->mbuf_layout[8] += 4;
	c = START("attach", prefix_of(""), "t", "0", "0");
	ck_said(&c, NFMETA_EMBUF);
	ck_says(&c, "size 192, this side 128");
	ck_says(&c, "192/0/16/18/20/22/24/32/40/");
	ck_says(&c, "128/0/16/18/20/22/24/32/36/");
	ck_assert_int_eq(finish(&c), 1);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
}
END_TEST

static int
by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A packet wakes an NF that has been idle; how fast is printed, and nobody's promise. */
START_TEST(wakes)
{
	static const char *const sleeps[] = {"100", "1000"};
	uint64_t took[5], began;
	struct rte_mbuf *m;
	struct child nf;
	unsigned int i;
	uint8_t how;

	ck_ok(nfmeta_link_create("t", NULL, &link_p));
	nf = START("idler", prefix_of(""), "t", sleeps[_i]);
	ck_said(&nf, 0);
	for (i = 0; i < RTE_DIM(took); i++) {
		usleep(_i == 0 ? 200000 : 500000); /* until it sleeps for so long */
		m = rte_pktmbuf_alloc(pool);
		began = now_us();
		ck_assert_uint_eq(nfmeta_send_burst(link_p, 0, &m, 1), 1);
		while (nfmeta_collect_burst(link_p, 0, &m, &how, 1) == 0)
			ck_assert_uint_lt(now_us() - began, 10000000);
		took[i] = now_us() - began;
		rte_pktmbuf_free(m);
	}
	qsort(took, RTE_DIM(took), sizeof(took[0]), by_size);
	printf("idle, sleeps of %s us: a packet is back after %ju us (median), %ju us (longest of "
	       "%zu)\n",
	       sleeps[_i], (uintmax_t)took[RTE_DIM(took) / 2], (uintmax_t)took[RTE_DIM(took) - 1],
	       RTE_DIM(took));
	fflush(stdout);
	nfmeta_link_close(link_p);
	ck_assert_int_eq(finish(&nf), 0);
	ck_ok(nfmeta_link_destroy(link_p, NULL));
}
END_TEST

/* ---- main ---------------------------------------------------------------------------------- */

int
main(int argc, char **argv)
{
	int status = play_role(argc, argv, roles, RTE_DIM(roles));
	TCase *link, *bare, *idle;
	Suite *s;

	if (status >= 0)
		return status;
	s = suite_create("two processes");
	link = tcase_create("links");
	bare = tcase_create("without a primary");
	suite_add_tcase(s, bare);
	tcase_set_timeout(bare, 120);
	tcase_add_test(bare, come_and_go);
	tcase_add_test(bare, primary_dies);
	tcase_add_test(bare, eal_no_primary);
	tcase_add_test(bare, eal_waits_for_the_primary);
	tcase_add_test(bare, eal_no_huge);
	tcase_add_test(bare, eal_bad_options);
	suite_add_tcase(s, link);
	tcase_add_checked_fixture(link, setup, teardown);
	tcase_set_timeout(link, 240);
	tcase_add_loop_test(link, flood, 0, RTE_DIM(floods));
	tcase_add_test(link, queue_taken);
	tcase_add_test(link, same_process);
	tcase_add_test(link, lease_file_gone);
	tcase_add_test(link, unknown_link);
	tcase_add_test(link, closing);
	tcase_add_test(link, nf_dies_with_packets);
	tcase_add_test(link, nf_dies_any_time);
	tcase_add_test(link, eal_in_a_primary);
	tcase_add_test(link, eal_manners);
	tcase_add_test(link, eal_lcore_ids_differ);
	tcase_add_test(link, eal_other_dpdk);
	tcase_add_test(link, other_mbuf_layout);
	idle = tcase_create("idle");
	suite_add_tcase(s, idle);
	tcase_add_checked_fixture(idle, setup, teardown);
	tcase_set_timeout(idle, 60);
	tcase_add_loop_test(idle, wakes, 0, 2);
	return run_suite(s, "two");
}
