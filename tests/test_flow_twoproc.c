/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Flow state between processes.  Check's child of each test is the upfront NF; the
 * NFs keep a flow table of their own in shared memory, so that it can be compared.
 * An NF that sees what must not be says so and ends.
 */
#include <errno.h>

#include "twoproc.h"

#define BURST 32
#define IDS 16384 /* flow ids there are */
#define NFS 4
#define NOTES "flow.notes"
#define PATIENCE 30 /* s */
#ifdef __SANITIZE_ADDRESS__
#define MANY 128000
#define SOME 8000
#else
#define MANY 1000000
#define SOME 50000
#endif

/* ---- What an NF knows, in shared memory ------------------------------------------ */

#define RUN 0
#define PAUSE 1 /* touch nothing */
#define END 2	/* take what there is, return all, leave */
#define LEAVE 3 /* leave at once */

/* The newest generation of a flow id that was heard of. */
struct entry {
	uint16_t gen;
	uint8_t heard;	   /* of any generation */
	uint8_t open;	   /* else it has ended */
	uint8_t announced; /* by NEW */
	uint8_t told;	   /* since the snapshot began */
	uint8_t reserved[2];
};

struct notes {
	uint32_t command; /* written by the upfront NF */
	uint32_t obeyed __rte_cache_aligned;
	uint32_t round;	   /* of its loop */
	uint32_t seen_in;  /* round of the last message */
	uint32_t pausing;  /* may pause for random times */
	uint32_t blocked;  /* replies that found no room */
	uint32_t verdicts; /* sent */
	uint32_t last_id;  /* of the last DELETE */
	uint32_t disorder; /* DELETEs whose first id is not the last one's + 1 */
	uint32_t loading;
	uint64_t last_seq;
	uint64_t packets, news, deletes, snapshots;
	uint64_t first;	  /* packets that came before the NEW of their flow */
	uint64_t implied; /* flows ended by word of the next generation */
	uint64_t late;	  /* words about a generation that is not the newest */
	uint64_t unknown; /* deletes of what was never heard of */
	uint64_t forgotten;
	struct nfmeta_flow_stats stats;
	struct entry table[IDS];
};

static struct notes *notes; /* of NFS NFs */

/* Pseudo-random numbers, the same in every run. */
static uint32_t
rnd(uint32_t *state, uint32_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state % below;
}

/* ---- The NF ------------------------------------------------------------------------ */

struct payload {
	uint32_t id;
	uint16_t gen;
	uint16_t nf;
};

static int __attribute__((format(printf, 1, 2))) wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("1 ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	fflush(stdout);
	return -1;
}

#define PACKET 0 /* instead of a message type */

/* Word of a flow: a packet, NEW, or an entry of a snapshot. */
static int
flow_lives(struct notes *me, uint8_t type, uint32_t id, uint16_t gen)
{
	struct entry *e;

	if (id >= IDS)
		return wrong("flow %u in type %u", id, type);
	e = &me->table[id];
	if (!e->heard || nfmeta_flow_newer(gen, e->gen)) {
		me->implied += e->open;
		*e = (struct entry){.gen = gen, .heard = 1, .open = 1};
		me->first += type == PACKET;
	} else if (gen != e->gen) {
		/* Packets may overtake a NEW that waits in the backlog, nothing else. */
		if (type != NFMETA_MSG_NEW)
			return wrong("flow %u.%u in type %u after %u", id, gen, type, e->gen);
		me->late++;
		return 0;
	} else if (!e->open) {
		return wrong("flow %u.%u in type %u after its end", id, gen, type);
	}
	e->told = 1;
	if (type == NFMETA_MSG_NEW) {
		if (e->announced)
			return wrong("flow %u.%u began twice", id, gen);
		e->announced = 1;
		me->news++;
	}
	return 0;
}

static int
flow_ends(struct notes *me, uint32_t id, uint16_t gen)
{
	struct entry *e;

	if (id >= IDS)
		return wrong("delete of flow %u", id);
	e = &me->table[id];
	if (e->heard && nfmeta_flow_newer(e->gen, gen)) {
		me->late++;
		return 0;
	}
	if (!e->heard || e->gen != gen) {
		me->implied += e->open;
		me->unknown++;
		*e = (struct entry){.gen = gen, .heard = 1};
		return 0;
	}
	if (!e->open)
		return wrong("flow %u.%u was deleted twice", id, gen);
	e->open = 0;
	__atomic_store_n(&me->deletes, me->deletes + 1, __ATOMIC_RELEASE);
	return 0;
}

static int
take_message(struct notes *me, const struct nfmeta_flow_batch *b)
{
	const struct nfmeta_flow_state *s;
	const struct nfmeta_flow_delete *d;
	unsigned int i;

	if (b->seq <= me->last_seq)
		return wrong("message %lu after %lu", (unsigned long)b->seq,
			     (unsigned long)me->last_seq);
	me->last_seq = b->seq;
	switch (b->type) {
	case NFMETA_MSG_SNAPSHOT:
		if ((b->flags & NFMETA_MSG_FIRST) != 0) {
			for (i = 0; i < IDS; i++)
				me->table[i].told = 0;
			me->loading = 1;
		}
		if (!me->loading)
			return wrong("a part of no snapshot");
		/* fall through */
	case NFMETA_MSG_NEW:
		for (i = 0; i < b->count; i++) {
			s = nfmeta_flow_entry(b, (uint16_t)i);
			if (flow_lives(me, b->type, s->flow_id, s->flow_gen) != 0)
				return -1;
			if (s->app_id != s->flow_id * 3)
				return wrong("application %u of flow %u", s->app_id, s->flow_id);
		}
		break;
	case NFMETA_MSG_DELETE:
		d = nfmeta_flow_entry(b, 0);
		me->disorder += d->flow_id != me->last_id + 1;
		for (i = 0; i < b->count; i++) {
			d = nfmeta_flow_entry(b, (uint16_t)i);
			if (flow_ends(me, d->flow_id, d->flow_gen) != 0)
				return -1;
			me->last_id = d->flow_id;
		}
		break;
	case NFMETA_MSG_RESET:
		for (i = 0; i < IDS; i++) {
			me->forgotten += me->table[i].open;
			me->table[i].open = 0;
		}
		me->loading = 0;
		break;
	default:
		return wrong("a message of type %u", b->type);
	}
	if (b->type == NFMETA_MSG_SNAPSHOT && (b->flags & NFMETA_MSG_LAST) != 0) {
		for (i = 0; i < IDS; i++)
			if (me->table[i].open && !me->table[i].told) {
				me->table[i].open = 0;
				me->forgotten++;
			}
		me->loading = 0;
		me->snapshots++;
	}
	return 0;
}

static int
take_packets(struct notes *me, uint32_t nf, struct rte_mbuf **m, const struct nfmeta_record *recs,
	     unsigned int n)
{
	const struct payload *p;
	unsigned int i;

	for (i = 0; i < n; i++) {
		p = rte_pktmbuf_mtod(m[i], const struct payload *);
		if (recs[i].size < NFMETA_RECORD_CORE || recs[i].flow_id != p->id ||
		    recs[i].flow_gen != p->gen || p->nf != nf)
			return wrong("packet %u.%u of NF %u: record %u.%u, size %u", p->id, p->gen,
				     p->nf, recs[i].flow_id, recs[i].flow_gen, recs[i].size);
		if (flow_lives(me, PACKET, p->id, p->gen) != 0)
			return -1;
	}
	me->packets += n;
	return 0;
}

/* Packets, then the messages whose turn it is.  Returns how many, or -1. */
static int
flow_round(struct nfmeta_link *link, struct notes *me, uint32_t nf)
{
	const struct nfmeta_flow_batch *b;
	struct nfmeta_record recs[BURST];
	struct rte_mbuf *m[BURST];
	int n, rc;

	__atomic_store_n(&me->round, me->round + 1, __ATOMIC_SEQ_CST);
	n = nfmeta_recv_burst(link, m, recs, BURST);
	if (take_packets(me, nf, m, recs, (unsigned int)n) != 0)
		return -1;
	nfmeta_return_burst(link, m, NULL, (uint16_t)n);
	while ((rc = nfmeta_flow_next(link, &b)) > 0) {
		me->seen_in = me->round;
		if (take_message(me, b) != 0)
			return -1;
		n++;
	}
	if (rc < 0)
		return wrong("nfmeta_flow_next: %d %s", rc, nfmeta_error());
	return n;
}

static int
look_up_notes(void)
{
	const struct rte_memzone *mz = rte_memzone_lookup(NOTES);

	if (mz == NULL)
		return wrong("no memzone %s", NOTES);
	notes = mz->addr;
	return 0;
}

/*
 * nf PREFIX LINK NUMBER TYPES: serve queue 0 as NF NUMBER; do what its notes say,
 * from the first word on.
 */
static int
role_nf(char **arg)
{
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS(.file_prefix = arg[0], .timeout_ms = 1000);
	uint32_t nf = (uint32_t)atoi(arg[2]), command, idle = 0, seed = nf + 1;
	struct nfmeta_link *link;
	struct notes *me;
	int rc = nfmeta_eal_attach(&o), n;

	if (rc == 0)
		rc = nfmeta_link_attach(arg[1], 0, 5000, &link);
	if (rc == 0)
		rc = nfmeta_flow_subscribe(link, strtoull(arg[3], NULL, 0));
	if (rc == 0 && look_up_notes() != 0)
		return 2;
	say(rc);
	if (rc != 0)
		return 1;
	me = &notes[nf];
	me->stats.sz = sizeof(me->stats);
	for (;;) {
		command = __atomic_load_n(&me->command, __ATOMIC_ACQUIRE);
		n = 0;
		if (command == RUN || command == END)
			n = flow_round(link, me, nf);
		if (n < 0)
			return 2;
		if (n > 0 && me->pausing && rnd(&seed, 256) == 0)
			usleep(rnd(&seed, 2000));
		nfmeta_flow_stats(link, 0, &me->stats);
		__atomic_store_n(&me->obeyed, command, __ATOMIC_RELEASE);
		if (command == LEAVE || (command == END && n == 0))
			break;
		idle = n != 0 ? 0 : idle + 1;
		if (idle > 20)
			sched_yield();
	}
	rc = nfmeta_link_detach(link);
	if (rc != 0)
		say(rc);
	nfmeta_eal_detach();
	return rc != 0;
}

/* verdicts PREFIX LINK NUMBER HOW-MANY: send so many, in order, as fast as it goes. */
static int
role_verdicts(char **arg)
{
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS(.file_prefix = arg[0], .timeout_ms = 1000);
	uint32_t nf = (uint32_t)atoi(arg[2]), many = (uint32_t)atoi(arg[3]), seed = nf + 1;
	struct nfmeta_flow_verdict v[NFMETA_FLOW_MAX(struct nfmeta_flow_verdict)];
	uint32_t i, n = 0, sent = 0;
	struct rte_mbuf *m[BURST];
	struct nfmeta_link *link;
	int rc = nfmeta_eal_attach(&o);

	if (rc == 0)
		rc = nfmeta_link_attach(arg[1], 0, 5000, &link);
	if (rc == 0 && look_up_notes() != 0)
		return 2;
	say(rc);
	if (rc != 0)
		return 1;
	for (;;) {
		bool over = __atomic_load_n(&notes[nf].command, __ATOMIC_ACQUIRE) == END;

		i = nfmeta_recv_burst(link, m, NULL, BURST);
		nfmeta_return_burst(link, m, NULL, (uint16_t)i);
		if (over && i == 0)
			break;
		if (n == 0) {
			n = RTE_MIN(1 + rnd(&seed, (uint32_t)RTE_DIM(v)), many - sent);
			memset(v, 0, sizeof(v));
			for (i = 0; i < n; i++) {
				v[i].flow_id = (sent + i) % 1000;
				v[i].verdict = NFMETA_ACTION_SHUNT;
				v[i].after = sent + i;
				v[i].who = (uint16_t)nf;
			}
		}
		rc = n == 0 ? -EAGAIN : nfmeta_flow_reply(link, NFMETA_MSG_VERDICT, v, (uint16_t)n);
		if (rc == 0) {
			sent += n;
			n = 0;
			notes[nf].verdicts = sent;
		} else if (rc != -EAGAIN) {
			say(rc);
			return 2;
		} else {
			__atomic_add_fetch(&notes[nf].blocked, n != 0, __ATOMIC_RELAXED);
			sched_yield();
		}
	}
	rc = nfmeta_link_detach(link);
	if (rc != 0)
		say(rc);
	nfmeta_eal_detach();
	return rc != 0;
}

#define TABLE_IDS 8 /* that are written and read */

/* What a table entry of a generation says. */
static void
key_of(struct nfmeta_flow_key *key, uint32_t id, uint16_t gen)
{
	memset(key, 0, sizeof(*key));
	memset(key->addr_a, (uint8_t)gen, sizeof(key->addr_a));
	memset(key->addr_b, (uint8_t)(gen >> 8), sizeof(key->addr_b));
	memcpy(key->port_a, &gen, 2);
	key->port_b[0] = (uint8_t)id;
	key->ip_version = 6;
	key->proto = (uint8_t)(gen % 255);
}

static int
check_entry(const struct nfmeta_table_flow *e, uint32_t id, bool there)
{
	struct nfmeta_flow_key key;
	uint16_t gen = e->flow_gen;

	key_of(&key, id, gen);
	if (memcmp(e->addr_a, key.addr_a, 16) != 0 || memcmp(e->addr_b, key.addr_b, 16) != 0 ||
	    memcmp(e->port_a, key.port_a, 2) != 0 || memcmp(e->port_b, key.port_b, 2) != 0 ||
	    e->proto != key.proto)
		return wrong("flow %u.%u: tuple of another one", id, gen);
	if (e->app_id != 0 && e->app_id != gen * 7u)
		return wrong("flow %u.%u: application %u", id, gen, e->app_id);
	/* Application and action are set together; closing forgets the action. */
	if (there &&
	    nfmeta_table_action(e) != (e->app_id != 0 ? NFMETA_ACTION_INSPECT : NFMETA_ACTION_NONE))
		return wrong("flow %u.%u: application %u, action %u", id, gen, e->app_id,
			     nfmeta_table_action(e));
	if (nfmeta_table_bytes(e->from_a) != nfmeta_table_packets(e->from_a) * 100 ||
	    nfmeta_table_bytes(e->from_b) != nfmeta_table_packets(e->from_b) * 1000)
		return wrong("flow %u.%u: half a counter", id, gen);
	return 0;
}

/*
 * reader PREFIX LINK NUMBER: read the link's table all the time; look up the flow
 * of each packet, which is there, and send a verdict on it.
 */
static int
role_reader(char **arg)
{
	struct nfmeta_eal_opts o = NFMETA_EAL_OPTS(.file_prefix = arg[0], .timeout_ms = 1000);
	uint32_t nf = (uint32_t)atoi(arg[2]), seed = nf + 1, flows, id;
	struct nfmeta_flow_verdict v = {.verdict = NFMETA_ACTION_DROP};
	const struct nfmeta_table_flow *table;
	struct nfmeta_table_flow e;
	struct nfmeta_record recs[BURST];
	struct rte_mbuf *m[BURST];
	struct nfmeta_link *link;
	struct notes *me;
	unsigned int i, n;
	int rc = nfmeta_eal_attach(&o);

	if (rc == 0)
		rc = nfmeta_link_attach(arg[1], 0, 5000, &link);
	if (rc == 0 && look_up_notes() != 0)
		return 2;
	if (rc == 0 &&
	    nfmeta_flow_subscribe(link, NFMETA_TYPE(NFMETA_MSG_DELETE)) != -NFMETA_ENOFLOW)
		return wrong("messages from a link without any") + 3;
	say(rc);
	if (rc != 0)
		return 1;
	me = &notes[nf];
	table = nfmeta_table_flows(nfmeta_link_table(link), &flows);
	if (table == NULL || flows != IDS)
		return wrong("a table of %u flows", flows) + 3;
	for (;;) {
		bool over = __atomic_load_n(&me->command, __ATOMIC_ACQUIRE) == END;

		for (i = 0; i < 100; i++) {
			id = rnd(&seed, TABLE_IDS);
			rc = nfmeta_table_read(&table[id], &e);
			if (rc == -EAGAIN) {
				me->late++;
				continue;
			}
			if (!me->table[id].heard && rc == 0 && e.flow_gen == 0)
				continue; /* never used */
			if (check_entry(&e, id, rc == 1) != 0)
				return 2;
			if (me->table[id].heard && nfmeta_flow_newer(me->table[id].gen, e.flow_gen))
				return wrong("flow %u.%u after %u", id, e.flow_gen,
					     me->table[id].gen) +
				       3;
			me->table[id].gen = e.flow_gen;
			me->table[id].heard = 1;
			me->news += rc == 1;
		}
		n = nfmeta_recv_burst(link, m, recs, BURST);
		for (i = 0; i < n; i++) {
			v.flow_id = recs[i].flow_id;
			v.flow_gen = recs[i].flow_gen;
			if (nfmeta_table_lookup(table, flows, v.flow_id, v.flow_gen, &e) != 1 ||
			    check_entry(&e, v.flow_id, true) != 0)
				return wrong("flow %u.%u has packets and is not there", v.flow_id,
					     v.flow_gen) +
				       3;
			if (nfmeta_table_lookup(table, flows, v.flow_id, (uint16_t)(v.flow_gen - 1),
						&e) != 0)
				return wrong("an old generation is found") + 3;
			while ((rc = nfmeta_flow_reply(link, NFMETA_MSG_VERDICT, &v, 1)) == -EAGAIN)
				sched_yield();
			if (rc != 0)
				return wrong("%d %s", rc, nfmeta_error()) + 3;
		}
		me->packets += n;
		nfmeta_return_burst(link, m, NULL, (uint16_t)n);
		if (over && n == 0)
			break;
		if (n == 0)
			sched_yield();
	}
	rc = nfmeta_link_detach(link);
	if (rc != 0)
		say(rc);
	nfmeta_eal_detach();
	return rc != 0;
}

static const struct role roles[] = {
	{"nf", 4, role_nf},
	{"reader", 3, role_reader},
	{"verdicts", 4, role_verdicts},
};

/* ---- The upfront NF ---------------------------------------------------------------- */

/* A flow id, and the flow that has it. */
struct flow {
	uint16_t gen;
	uint8_t open;
	uint8_t packets; /* that are still to come */
};

struct peer {
	struct nfmeta_link *link;
	struct child nf;
	bool stopped;
	bool telling;  /* a snapshot */
	uint32_t from; /* next flow id of it */
	uint64_t requests;
	uint64_t accepted; /* packets */
	uint32_t backlog;  /* longest */
	int patience;	   /* rounds that go on though it is not up to date */
};

static struct flow flows[IDS];
static struct peer peers[NFS];
static struct nfmeta_flow_to to[NFS];
static unsigned int nfs;
static uint32_t seed;
static uint64_t patience_ends;
static const struct rte_memzone *notes_zone;
static unsigned int zones_before;

#define EVERYTHING                                                                                 \
	(NFMETA_TYPE(NFMETA_MSG_NEW) | NFMETA_TYPE(NFMETA_MSG_UPDATE) |                            \
	 NFMETA_TYPE(NFMETA_MSG_DELETE) | NFMETA_TYPE(NFMETA_MSG_COUNTERS))

static void
setup_notes(void)
{
	struct nfmeta_field field;

	setup();
	ck_ok(nfmeta_field_register(NULL, &field)); /* stays for ever, with DPDK's lists */
	notes_zone = rte_memzone_reserve(NOTES, NFS * sizeof(struct notes), SOCKET_ID_ANY, 0);
	ck_assert_ptr_nonnull(notes_zone);
	notes = notes_zone->addr;
	memset(notes, 0, NFS * sizeof(struct notes));
	seed = 2463534242;
	zones_before = memzones();
}

static void
teardown_notes(void)
{
	ck_assert_uint_eq(memzones(), zones_before);
	rte_memzone_free(notes_zone);
	teardown();
}

static struct nfmeta_flow_stats
feed(const struct peer *p)
{
	struct nfmeta_flow_stats s = {.sz = sizeof(s)};

	ck_ok(nfmeta_flow_stats(p->link, 0, &s));
	return s;
}

static void
start_nf(unsigned int j)
{
	char number[16], types[32], name[16];

	snprintf(number, sizeof(number), "%u", j);
	snprintf(types, sizeof(types), "%#lx", (unsigned long)EVERYTHING);
	snprintf(name, sizeof(name), "t%u", j);
	peers[j].nf = START("nf", prefix_of(""), name, number, types);
	ck_said(&peers[j].nf, 0);
}

/* A link of its own for each NF, and the NFs. */
static void
start_chain(unsigned int n, const struct nfmeta_link_opts *o)
{
	char name[16];
	unsigned int j;

	nfs = n;
	for (j = 0; j < n; j++) {
		snprintf(name, sizeof(name), "t%u", j);
		ck_ok(nfmeta_link_create(name, o, &peers[j].link));
		to[j].link = peers[j].link;
		start_nf(j);
	}
}

/* SIGSTOP, and wait until it has stopped. */
static void
halt(struct peer *p)
{
	int status;

	ck_assert_int_eq(kill(p->nf.pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(p->nf.pid, &status, WUNTRACED), p->nf.pid);
	ck_assert_int_ne(WIFSTOPPED(status), 0);
	p->stopped = true;
}

static void
resume(struct peer *p)
{
	ck_assert_int_eq(kill(p->nf.pid, SIGCONT), 0);
	p->stopped = false;
}

/* An NF that has something to say has found a fault. */
static void
listen_to_complaints(void)
{
	struct pollfd p = {.events = POLLIN};
	unsigned int j;

	for (j = 0; j < nfs; j++) {
		p.fd = peers[j].nf.out;
		if (poll(&p, 1, 0) == 1) {
			listen_to(&peers[j].nf);
			ck_abort_msg("NF %u: %s", j, peers[j].nf.line);
		}
	}
}

/* Begin to wait for something. */
static void
be_patient(void)
{
	patience_ends = now_us() + PATIENCE * 1000000;
}

static void
wait_a_little(const char *what)
{
	listen_to_complaints();
	ck_assert_msg(now_us() < patience_ends, "waited %u s for %s", PATIENCE, what);
	sched_yield();
}

/* The next part of a snapshot that is going on. */
static void
tell_some(struct peer *p)
{
	struct nfmeta_flow_state s[NFMETA_FLOW_MAX(struct nfmeta_flow_state)];
	uint32_t id = p->from, n = 0, room = 1 + rnd(&seed, (uint32_t)RTE_DIM(s));
	uint8_t flags = id == 0 ? NFMETA_MSG_FIRST : 0;
	int rc;

	memset(s, 0, sizeof(s));
	for (; id < IDS && n < room; id++)
		if (flows[id].open) {
			s[n].flow_id = id;
			s[n].flow_gen = flows[id].gen;
			s[n++].app_id = id * 3;
		}
	if (id == IDS)
		flags |= NFMETA_MSG_LAST;
	rc = nfmeta_flow_snapshot(p->link, 0, n != 0 ? s : NULL, (uint16_t)n, flags);
	if (rc == 0) {
		p->from = id;
		p->telling = id != IDS;
	} else if (rc == -NFMETA_EGAP) {
		p->telling = false;
	} else {
		ck_assert_msg(rc == -EAGAIN, "%d %s", rc, nfmeta_error());
	}
}

/* One round with one NF. */
static void
serve(struct peer *p)
{
	const struct nfmeta_flow_batch *b;
	struct rte_mbuf *m[BURST];
	uint8_t how[BURST];
	unsigned int i, n;
	int rc;

	n = nfmeta_collect_burst(p->link, 0, m, how, BURST);
	for (i = 0; i < n; i++)
		ck_assert_uint_eq(how[i] & ~NFMETA_INJECTED, NFMETA_FORWARD);
	rte_pktmbuf_free_bulk(m, n);
	while ((rc = nfmeta_flow_collect(p->link, 0, &b)) > 0) {
		if (b->type == NFMETA_MSG_RESYNC) {
			p->telling = true;
			p->from = 0;
			p->requests++;
		} else {
			ck_assert_uint_eq(b->type, NFMETA_MSG_ACK);
		}
	}
	ck_assert_msg(rc == 0, "%d %s", rc, nfmeta_error());
	if (p->telling)
		tell_some(p);
	p->backlog = RTE_MAX(p->backlog, feed(p).backlog);
}

static void
serve_all(void)
{
	unsigned int j;

	for (j = 0; j < nfs; j++)
		serve(&peers[j]);
}

/* Until all NFs that do not sleep know all there is. */
static void
settle(void)
{
	struct nfmeta_flow_stats s;
	unsigned int j, behind;

	be_patient();
	do {
		serve_all();
		for (j = 0, behind = 0; j < nfs; j++) {
			s = feed(&peers[j]);
			behind +=
				!peers[j].stopped &&
				(s.state != NFMETA_FEED_STREAM || s.backlog != 0 ||
				 s.seen != s.sent || nfmeta_link_in_flight(peers[j].link, 0) != 0);
		}
		if (behind != 0)
			wait_a_little("the NFs to get up to date");
	} while (behind != 0);
}

/* Give a command, and wait until it is obeyed. */
static void
command(unsigned int j, uint32_t what)
{
	__atomic_store_n(&notes[j].command, what, __ATOMIC_RELEASE);
	be_patient();
	while (__atomic_load_n(&notes[j].obeyed, __ATOMIC_ACQUIRE) != what)
		wait_a_little("a command to be obeyed");
}

/* All NFs have what the upfront NF has. */
static void
compare_tables(void)
{
	unsigned int j, id;

	settle();
	for (j = 0; j < nfs; j++) {
		if (peers[j].stopped)
			continue;
		command(j, PAUSE);
		for (id = 0; id < IDS; id++) {
			const struct entry *e = &notes[j].table[id];

			ck_assert_msg(e->open == flows[id].open &&
					      (!e->open || e->gen == flows[id].gen),
				      "flow %u.%u is %s, NF %u has %u.%u as %s", id, flows[id].gen,
				      flows[id].open ? "there" : "over", j, id, e->gen,
				      e->open ? "there" : "over");
		}
		command(j, RUN);
	}
}

static void
end_chain(void)
{
	uint64_t lost = 1;
	unsigned int j, k;
	int status;

	for (j = 0; j < nfs; j++) {
		__atomic_store_n(&notes[j].command, END, __ATOMIC_RELEASE);
		be_patient();
		while (waitpid(peers[j].nf.pid, &status, WNOHANG) == 0) {
			for (k = 0; k < nfs; k++)
				if (peers[k].link != NULL)
					serve(&peers[k]);
			ck_assert_msg(now_us() < patience_ends, "NF %u does not leave", j);
			sched_yield();
		}
		ck_assert_int_eq(status, 0);
		close(peers[j].nf.in);
		close(peers[j].nf.out);
		do {
			k = nfmeta_link_in_flight(peers[j].link, 0);
			serve(&peers[j]);
		} while (nfmeta_link_in_flight(peers[j].link, 0) < k);
		ck_assert_uint_eq(nfmeta_link_in_flight(peers[j].link, 0), 0);
		ck_ok(nfmeta_link_destroy(peers[j].link, &lost));
		ck_assert_uint_eq(lost, 0);
		peers[j].link = NULL;
	}
}

/* Flows from, from + 1, ... begin, at their next generation.  Returns what the call did. */
static int
begin(const uint32_t *ids, unsigned int n)
{
	struct nfmeta_flow_state s[NFMETA_FLOW_MAX(struct nfmeta_flow_state)];
	unsigned int i;

	memset(s, 0, sizeof(s));
	for (i = 0; i < n; i++) {
		struct flow *f = &flows[ids[i]];

		ck_assert_uint_eq(f->open, 0);
		f->gen++;
		f->open = 1;
		s[i].flow_id = ids[i];
		s[i].flow_gen = f->gen;
		s[i].app_id = ids[i] * 3;
	}
	return nfmeta_flow_broadcast(to, (uint16_t)nfs, NFMETA_MSG_NEW, s, (uint16_t)n);
}

static int
end(const uint32_t *ids, unsigned int n)
{
	struct nfmeta_flow_delete d[NFMETA_FLOW_MAX(struct nfmeta_flow_delete)];
	unsigned int i;

	memset(d, 0, sizeof(d));
	for (i = 0; i < n; i++) {
		struct flow *f = &flows[ids[i]];

		ck_assert_uint_eq(f->open, 1);
		f->open = 0;
		d[i].flow_id = ids[i];
		d[i].flow_gen = f->gen;
		d[i].reason = NFMETA_END_TIMEOUT;
	}
	return nfmeta_flow_broadcast(to, (uint16_t)nfs, NFMETA_MSG_DELETE, d, (uint16_t)n);
}

/* n flows from first on begin, many in a message; all NFs know them then. */
static void
begin_many(uint32_t first, uint32_t n)
{
	uint32_t ids[NFMETA_FLOW_MAX(struct nfmeta_flow_state)], i, k;

	for (i = 0; i < n; i += k) {
		for (k = 0; k < RTE_DIM(ids) && i + k < n; k++)
			ids[k] = first + i + k;
		ck_assert_int_eq(begin(ids, k), 0);
		settle();
	}
}

/* ---- Very many flows --------------------------------------------------------------- */

#define CHURN_IDS 4096 /* so few that each is used again and again */

#define LARGE 0	  /* there is always room */
#define BACKLOG 1 /* messages wait */
#define SMALL 2	  /* messages are given up */

static const struct churn {
	uint8_t carrier;
	uint8_t nfs;
	uint8_t size;
	uint32_t many;
} churns[] = {
	{NFMETA_CARRIER_RING, 2, LARGE, MANY},	 {NFMETA_CARRIER_INBAND, 2, LARGE, MANY},
	{NFMETA_CARRIER_RING, 1, LARGE, SOME},	 {NFMETA_CARRIER_INBAND, 1, LARGE, SOME},
	{NFMETA_CARRIER_RING, 4, LARGE, SOME},	 {NFMETA_CARRIER_INBAND, 4, LARGE, SOME},
	{NFMETA_CARRIER_RING, 2, BACKLOG, SOME}, {NFMETA_CARRIER_INBAND, 2, BACKLOG, SOME},
	{NFMETA_CARRIER_RING, 1, SMALL, SOME},	 {NFMETA_CARRIER_INBAND, 1, SMALL, SOME},
	{NFMETA_CARRIER_RING, 2, SMALL, SOME},	 {NFMETA_CARRIER_INBAND, 2, SMALL, SOME},
	{NFMETA_CARRIER_RING, 4, SMALL, SOME},	 {NFMETA_CARRIER_INBAND, 4, SMALL, SOME},
};

static uint32_t idle_ids[CHURN_IDS], nb_idle;	    /* oldest first, a circle */
static uint32_t done_ids[CHURN_IDS], nb_done;	    /* flows with all their packets sent */
static uint32_t wanting_ids[CHURN_IDS], nb_wanting; /* flows with packets to come */
static uint32_t idle_at;
static uint64_t refused; /* packets */

/* Some packets of flows that want some, each to the flow's NF; what it refuses is dropped. */
static void
send_some(unsigned int n)
{
	struct rte_mbuf *m[NFS][BURST], *one;
	unsigned int counts[NFS] = {0}, j, at;
	struct nfmeta_record r;
	struct payload *p;
	uint16_t k;
	uint32_t id;

	while (n-- > 0 && nb_wanting > 0) {
		at = rnd(&seed, nb_wanting);
		id = wanting_ids[at];
		j = id % nfs;
		one = rte_pktmbuf_alloc(pool);
		if (one == NULL || counts[j] == BURST) {
			rte_pktmbuf_free(one);
			break;
		}
		p = (struct payload *)rte_pktmbuf_append(one, 60);
		*p = (struct payload){.id = id, .gen = flows[id].gen, .nf = (uint16_t)j};
		nfmeta_record_init(&r);
		r.flags = NFMETA_FLOW_KNOWN;
		r.flow_id = id;
		r.flow_gen = flows[id].gen;
		ck_assert_int_eq(nfmeta_record_set(nfmeta_link_field(peers[j].link), one, &r), 1);
		m[j][counts[j]++] = one;
		if (--flows[id].packets == 0) {
			wanting_ids[at] = wanting_ids[--nb_wanting];
			done_ids[nb_done++] = id;
		}
	}
	for (j = 0; j < nfs; j++) {
		k = nfmeta_send_burst(peers[j].link, 0, m[j], (uint16_t)counts[j]);
		peers[j].accepted += k;
		refused += counts[j] - k;
		rte_pktmbuf_free_bulk(&m[j][k], counts[j] - k);
	}
}

static unsigned int
begin_some(unsigned int n)
{
	uint32_t ids[64];
	unsigned int i;

	n = RTE_MIN(n, RTE_MIN(nb_idle, (uint32_t)RTE_DIM(ids)));
	for (i = 0; i < n; i++) {
		ids[i] = idle_ids[idle_at++ % CHURN_IDS];
		flows[ids[i]].packets = (uint8_t)(1 + rnd(&seed, 3));
		wanting_ids[nb_wanting++] = ids[i];
	}
	nb_idle -= n;
	if (n > 0)
		begin(ids, n);
	return n;
}

static unsigned int
end_some(unsigned int n)
{
	uint32_t ids[256], at;
	unsigned int i;

	n = RTE_MIN(n, RTE_MIN(nb_done, (uint32_t)RTE_DIM(ids)));
	for (i = 0; i < n; i++) {
		at = rnd(&seed, nb_done);
		ids[i] = done_ids[at];
		done_ids[at] = done_ids[--nb_done];
		idle_ids[(idle_at + nb_idle++) % CHURN_IDS] = ids[i];
	}
	if (n > 0)
		end(ids, n);
	return n;
}

/* May more happen, or are the NFs too far behind? */
static bool
may_go_on(void)
{
	struct nfmeta_flow_stats s;
	bool go_on = true;
	unsigned int j;

	for (j = 0; j < nfs; j++) {
		if (peers[j].stopped)
			continue;
		go_on &= nfmeta_link_in_flight(peers[j].link, 0) <= 32;
		s = feed(&peers[j]);
		if (s.state == NFMETA_FEED_STREAM)
			peers[j].patience = (int)rnd(&seed, 200);
		else if (peers[j].patience-- <= 0)
			go_on = false;
		go_on &= s.backlog <= 8;
	}
	return go_on;
}

START_TEST(churn)
{
	const struct churn *c = &churns[_i];
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.ring_size = 512, .carrier = c->carrier,
						     .blanks = 16, .pool = pool);
	uint64_t begun = 0, ended = 0, news, deletes, lost_at = 0, last = now_us();
	uint32_t forced = 0, sleeper = 0, j, id;
	struct nfmeta_flow_stats s;
	bool sleeping = false, until_lost = false;

	if (c->size != LARGE) {
		o.ring_size = 64;
		o.flow_ring = 512;
	}
	if (c->size == SMALL)
		o.flow_backlog = 1024;
	refused = 0;
	memset(flows, 0, sizeof(flows));
	memset(peers, 0, sizeof(peers));
	for (nb_idle = 0; nb_idle < CHURN_IDS; nb_idle++)
		idle_ids[nb_idle] = nb_idle;
	nb_done = nb_wanting = idle_at = 0;
	start_chain(c->nfs, &o);
	settle();
	for (j = 0; j < nfs; j++)
		notes[j].pausing = 1;

	while (ended < c->many) {
		/* Ten times one NF sleeps until messages to it wait, or are given up. */
		if (c->size != LARGE && !sleeping && ended >= (uint64_t)forced * c->many / 10) {
			sleeper = forced++ % nfs;
			until_lost = c->size == SMALL;
			sleeping = true;
		}
		/* Now and then while it loads a snapshot. */
		for (j = 0; j < nfs && c->size == SMALL && !sleeping; j++)
			if (feed(&peers[j]).state == NFMETA_FEED_SNAPSHOT && rnd(&seed, 6) == 0) {
				sleeper = j;
				until_lost = false;
				sleeping = true;
			}
		if (sleeping && !peers[sleeper].stopped) {
			lost_at = feed(&peers[sleeper]).lost;
			halt(&peers[sleeper]);
		}
		if (sleeping) {
			s = feed(&peers[sleeper]);
			if ((until_lost ? s.lost > lost_at + rnd(&seed, 100)
					: s.backlog > rnd(&seed, 50) || s.lost > lost_at) ||
			    (ended == begun && begun >= c->many)) {
				resume(&peers[sleeper]);
				sleeping = false;
			}
		}
		if (may_go_on()) {
			if (begun < c->many)
				begun += begin_some(
					(unsigned int)RTE_MIN(1 + rnd(&seed, 64), c->many - begun));
			send_some(1 + rnd(&seed, BURST));
			send_some(1 + rnd(&seed, BURST));
			ended += end_some(1 + rnd(&seed, 64));
			be_patient();
		} else {
			wait_a_little("an NF that is too far behind");
		}
		serve_all();
		if (now_us() - last > 50000) {
			last = now_us();
			listen_to_complaints();
		}
	}
	if (sleeping)
		resume(&peers[sleeper]);
	ck_assert_uint_eq(nb_idle, CHURN_IDS);
	compare_tables();

	printf("%s, %u NFs, %s: %lu flows", c->carrier == NFMETA_CARRIER_RING ? "ring" : "in-band",
	       nfs,
	       c->size == SMALL	    ? "small"
	       : c->size == BACKLOG ? "backlog"
				    : "large",
	       (unsigned long)ended);
	for (j = 0; j < nfs; j++) {
		const struct notes *n = &notes[j];

		s = feed(&peers[j]);
		printf("; %lu packets, %lu gaps, %lu snapshots, backlog %u",
		       (unsigned long)n->packets, (unsigned long)n->stats.gaps,
		       (unsigned long)n->snapshots, peers[j].backlog);
		ck_assert_uint_eq(n->packets, peers[j].accepted);
		ck_assert_uint_eq(n->stats.state, NFMETA_SYNC_SYNCED);
		ck_assert_uint_eq(n->stats.stale + n->stats.refused + s.stale + s.refused, 0);
		if (c->size == SMALL) {
			ck_assert_uint_gt(s.lost, 0);
			ck_assert_uint_gt(s.gaps, 0);
			/* None that the upfront NF does not know of. */
			ck_assert_uint_eq(n->stats.gaps, s.gaps);
			ck_assert_uint_gt(n->snapshots, 1);
			ck_assert_uint_eq(peers[j].requests, 1 + s.gaps);
			continue;
		}
		/* Nothing was lost: everything is exact. */
		ck_assert(c->size == LARGE ? refused == 0 : peers[j].backlog > 0);
		ck_assert_uint_eq(s.lost + s.gaps + n->stats.gaps, 0);
		ck_assert_uint_eq(peers[j].requests, 1);
		ck_assert_uint_eq(n->snapshots, 1);
		ck_assert_uint_eq(n->unknown + n->forgotten, 0);
		news = n->news;
		deletes = n->deletes;
		if (peers[j].backlog == 0) {
			ck_assert_uint_eq(n->late + n->implied + n->first, 0);
			ck_assert_uint_eq(news, ended);
			ck_assert_uint_eq(deletes, ended);
		} else {
			/* What a packet overtook came all the same. */
			ck_assert_uint_eq(news + deletes + n->late, 2 * ended);
		}
		for (id = 0; id < CHURN_IDS; id++)
			ck_assert_uint_eq(notes[j].table[id].gen, flows[id].gen);
	}
	printf("\n");
	fflush(stdout);
	end_chain();
}
END_TEST

/* ---- A flow ring that is full ----------------------------------------------------------- */

/* 127 messages fit, the 128th does not. */
START_TEST(full_ring)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.carrier = NFMETA_CARRIER_RING, .flow_ring = 127 * 6,
				 .flow_backlog = NFMETA_NO_BACKLOG);
	const unsigned int avail = rte_mempool_avail_count(pool);
	struct nfmeta_flow_stats s;
	struct notes *n = &notes[0];
	uint32_t id;

	start_chain(1, &o);
	settle();
	begin_many(1, 140);
	ck_assert_uint_eq(feed(&peers[0]).lost, 0);
	n->last_id = 0;
	halt(&peers[0]);
	for (id = 1; id <= 127; id++)
		ck_assert_int_eq(end(&id, 1), 0);
	s = feed(&peers[0]);
	ck_assert_uint_eq(s.lost, 0);
	ck_assert_uint_eq(s.state, NFMETA_FEED_STREAM);
	ck_assert_int_eq(end(&id, 1), -EAGAIN);
	s = feed(&peers[0]);
	ck_assert_uint_eq(s.lost, 1);
	ck_assert_uint_eq(s.gaps, 1);
	ck_assert_uint_eq(s.backlog, 0);
	ck_assert_uint_eq(s.state, NFMETA_FEED_GAP);
	ck_assert_uint_eq(rte_mempool_avail_count(pool), avail);

	/* It does not know of the gap yet. */
	resume(&peers[0]);
	be_patient();
	while (__atomic_load_n(&n->deletes, __ATOMIC_ACQUIRE) < 127)
		wait_a_little("127 deletes");
	command(0, PAUSE);
	ck_assert_uint_eq(n->deletes, 127);
	ck_assert_uint_eq(n->disorder, 0);
	ck_assert_uint_eq(n->stats.gaps, 0);
	ck_assert_uint_eq(n->table[128].open, 1);
	/* There is room again, but what it holds is of no use before a snapshot. */
	id = 129;
	ck_assert_int_eq(end(&id, 1), -EAGAIN);
	ck_assert_uint_eq(feed(&peers[0]).lost, 2);
	__atomic_store_n(&n->command, RUN, __ATOMIC_RELEASE);

	compare_tables();
	ck_assert_uint_eq(n->stats.gaps, 1);
	ck_assert_uint_eq(n->snapshots, 2);
	ck_assert_uint_eq(n->forgotten, 2);
	ck_assert_uint_eq(n->deletes, 127);
	ck_assert_uint_eq(peers[0].requests, 2);
	ck_assert_uint_eq(feed(&peers[0]).lost, 2);
	ck_assert_uint_eq(feed(&peers[0]).gaps, 1);
	end_chain();
	ck_assert_uint_eq(rte_mempool_avail_count(pool), avail);
}
END_TEST

static const struct {
	uint8_t carrier;
	uint32_t backlog;
} sleeps[] = {
	{NFMETA_CARRIER_RING, 4096},
	{NFMETA_CARRIER_INBAND, 4096},
	{NFMETA_CARRIER_RING, NFMETA_NO_BACKLOG},
	{NFMETA_CARRIER_INBAND, NFMETA_NO_BACKLOG},
	{NFMETA_CARRIER_RING, 0}, /* all wait there */
	{NFMETA_CARRIER_INBAND, 0},
};

/* 10 000 deletes while the NF sleeps; one of the ids is used again. */
START_TEST(sleeping_nf)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.carrier = sleeps[_i].carrier, .flow_ring = 1024, .blanks = 16,
				 .pool = pool, .flow_backlog = sleeps[_i].backlog);
	struct nfmeta_flow_delete first = {.flow_id = 5, .flow_gen = 1};
	struct notes *n = &notes[0];
	const uint32_t again = 5;
	uint64_t failed = 0, late;
	uint32_t id;

	start_chain(1, &o);
	settle();
	begin_many(1, 10000);
	n->last_id = 0;
	halt(&peers[0]);
	for (id = 1; id <= 10000; id++)
		failed += end(&id, 1) == -EAGAIN;
	failed += begin(&again, 1) == -EAGAIN;
	failed += nfmeta_flow_send(peers[0].link, 0, NFMETA_MSG_DELETE, &first, 1) == -EAGAIN;
	ck_assert_uint_eq(flows[5].gen, 2);
	ck_assert_uint_eq(feed(&peers[0]).lost, failed);
	resume(&peers[0]);
	compare_tables();
	ck_assert_uint_eq(n->table[5].open, 1);
	ck_assert_uint_eq(n->table[5].gen, 2);
	if (sleeps[_i].backlog == 0) {
		ck_assert_uint_eq(failed, 0);
		ck_assert_uint_eq(n->stats.gaps, 0);
		ck_assert_uint_eq(n->snapshots, 1);
		ck_assert_uint_eq(n->deletes, 10000);
		ck_assert_uint_eq(n->late, 1);
		ck_assert_uint_eq(n->disorder, 1);
	} else {
		ck_assert_uint_gt(failed, 0);
		ck_assert_uint_eq(n->stats.gaps, 1);
		ck_assert_uint_eq(n->snapshots, 2);
		ck_assert_uint_gt(n->forgotten, 0);
		ck_assert_uint_eq(n->deletes + n->forgotten + n->implied, 10000);
	}

	/* It comes late once more, to an NF that hears it. */
	late = n->late;
	ck_assert_int_eq(nfmeta_flow_send(peers[0].link, 0, NFMETA_MSG_DELETE, &first, 1), 0);
	compare_tables();
	ck_assert_uint_eq(n->late, late + 1);
	ck_assert_uint_eq(n->table[5].open, 1);
	end_chain();
}
END_TEST

/* One that sleeps holds up nobody else. */
START_TEST(slow_nf)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.ring_size = 64,
				 .carrier = _i == 0 ? NFMETA_CARRIER_RING : NFMETA_CARRIER_INBAND,
				 .flow_ring = 512, .flow_backlog = 1024, .blanks = 16,
				 .pool = pool);
	uint32_t id, round, worst = 0, given_up = 0;
	int rc;

	start_chain(2, &o);
	settle();
	begin_many(1, 2000);
	notes[1].last_id = 0;
	halt(&peers[0]);
	for (id = 1; id <= 2000; id++) {
		flows[id].packets = 1;
		wanting_ids[0] = id;
		nb_wanting = 1;
		nb_done = 0;
		serve_all(); /* in-band, what is not collected fills the link */
		send_some(1);
		rc = end(&id, 1);
		ck_assert(rc == 0 || rc == -EAGAIN);
		given_up += rc == -EAGAIN;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		round = __atomic_load_n(&notes[1].round, __ATOMIC_SEQ_CST);
		be_patient();
		while (__atomic_load_n(&notes[1].deletes, __ATOMIC_ACQUIRE) < id) {
			serve_all();
			wait_a_little("the NF that is awake");
		}
		if ((int32_t)(notes[1].seen_in - round) > 0)
			worst = RTE_MAX(worst, notes[1].seen_in - round);
	}
	ck_assert_uint_gt(given_up, 1000);
	ck_assert_uint_eq(feed(&peers[0]).lost, given_up);
	ck_assert_uint_eq(feed(&peers[1]).lost, 0);
	ck_assert_uint_eq(peers[1].backlog, 0);
	ck_assert_uint_eq(notes[1].deletes, 2000);
	ck_assert_uint_eq(notes[1].disorder, 0);
	ck_assert_uint_eq(notes[1].snapshots, 1);
	ck_assert_uint_le(worst, 3); /* rounds of its loop */
	resume(&peers[0]);
	compare_tables();
	ck_assert_uint_eq(notes[0].stats.gaps, 1);
	ck_assert_uint_eq(notes[0].snapshots, 2);
	ck_assert_uint_eq(notes[1].snapshots, 1);
	end_chain();
}
END_TEST

/* ---- No packets at all ---------------------------------------------------------------- */

START_TEST(idle_chain)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.carrier = _i == 0 ? NFMETA_CARRIER_RING : NFMETA_CARRIER_INBAND,
				 .blanks = 16, .pool = pool);
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	uint32_t id;

	start_chain(1, &o);
	settle();
	begin_many(1, 1000);
	notes[0].last_id = 0;
	for (id = 1; id <= 1000; id++) {
		ck_assert_int_eq(end(&id, 1), 0);
		be_patient();
		/* Nothing but the NF's own loop brings it. */
		while (__atomic_load_n(&notes[0].deletes, __ATOMIC_ACQUIRE) < id)
			wait_a_little("a delete");
		serve_all();
	}
	ck_assert_int_eq(nfmeta_flow_send(peers[0].link, 0, NFMETA_MSG_HEARTBEAT, NULL, 0), 0);
	be_patient();
	while (feed(&peers[0]).acked != feed(&peers[0]).sent) {
		serve_all();
		wait_a_little("an answer to the heartbeat");
	}
	compare_tables();
	ck_assert_uint_eq(notes[0].disorder, 0);
	begin_many(1001, 100);
	ck_assert_int_eq(nfmeta_flow_send(peers[0].link, 0, NFMETA_MSG_RESET, NULL, 0), 0);
	for (id = 1001; id <= 1100; id++)
		flows[id].open = 0;
	compare_tables();
	ck_assert_uint_eq(notes[0].forgotten, 100);
	ck_assert_uint_eq(notes[0].snapshots, 1);
	ck_assert_uint_eq(notes[0].packets, 0);
	be_patient();
	do {
		serve_all();
		wait_a_little("meta packets to come back");
		ck_ok(nfmeta_link_stats(peers[0].link, 0, &s));
	} while (s.metas != 0);
	ck_assert_uint_eq(s.sent + s.received + s.returned + s.collected, 0);
	end_chain();
}
END_TEST

/* ---- NFs that die and come again --------------------------------------------------------- */

/* A dead NF's queue is refused until the link is made anew; nothing is left of it. */
START_TEST(killed_and_made_anew)
{
	struct nfmeta_link_opts o = NFMETA_LINK_OPTS(.blanks = 16, .pool = pool);
	unsigned int round, zones = memzones(), i, n;
	struct nfmeta_link *other;
	uint64_t lost;
	uint32_t id;

	for (round = 0; round < 50; round++) {
		o.carrier = round % 2 == 0 ? NFMETA_CARRIER_RING : NFMETA_CARRIER_INBAND;
		o.flow_ring = round % 4 < 2 ? 512 : 8192;
		memset(flows, 0, sizeof(flows));
		memset(peers, 0, sizeof(peers));
		memset(notes, 0, sizeof(*notes));
		start_chain(1, &o);
		n = rnd(&seed, 4);
		if (n > 0)
			settle();
		/* Killed anywhere: while it waits, loads, reads. */
		for (id = 1; id <= 500 * n; id++) {
			begin(&id, 1);
			flows[id].packets = 1;
			wanting_ids[0] = id;
			nb_wanting = 1;
			nb_done = 0;
			send_some(1);
			if (id % 3 == 0)
				end(&id, 1);
			if (id % 7 == 0)
				serve_all();
		}
		listen_to_complaints();
		kill(peers[0].nf.pid, SIGKILL);
		for (i = 0; i < 10; i++)
			serve_all();
		murder(&peers[0].nf);
		ck_assert_int_eq(nfmeta_link_peer(peers[0].link, 0), NFMETA_PEER_DEAD);
		ck_assert_int_eq(nfmeta_link_attach("t0", 0, 0, &other), -NFMETA_EDEADNF);
		serve_all();
		ck_assert_int_eq(nfmeta_link_attach("t0", 0, 0, &other), -NFMETA_EDEADNF);
		ck_ok(nfmeta_link_destroy(peers[0].link, &lost));
		ck_assert_uint_le(lost, BURST + 1);
		ck_assert_uint_eq(rte_mempool_avail_count(pool), POOL_SIZE);
		ck_assert_uint_eq(memzones(), zones);
	}
	remove_dead_lcores();
}
END_TEST

/* Take back all that a dead NF had; returns how many packets. */
static uint64_t
reclaim(struct peer *p)
{
	struct rte_mbuf *m[BURST];
	uint8_t how[BURST];
	uint64_t total = 0;
	int n;

	while ((n = nfmeta_link_reclaim(p->link, 0, m, how, BURST)) > 0) {
		rte_pktmbuf_free_bulk(m, (unsigned int)n);
		total += (unsigned int)n;
	}
	ck_assert_msg(n == 0, "%s", nfmeta_error());
	return total;
}

/* Killed at full load and started again on the same link: nothing is lost but what it knew. */
START_TEST(killed_and_back)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.carrier = _i == 0 ? NFMETA_CARRIER_RING : NFMETA_CARRIER_INBAND,
				 .when_full = _i == 0 ? NFMETA_FULL_DROP : NFMETA_FULL_WAIT,
				 .wait_us = 50, .flow_ring = 512, .blanks = 16, .pool = pool);
	struct nfmeta_link_stats s = {.sz = sizeof(s)};
	unsigned int round, zones, i;
	uint32_t id;

	start_chain(1, &o);
	zones = memzones();
	for (round = 1; round <= 50; round++) {
		if (rnd(&seed, 3) > 0)
			settle();
		for (id = 1; id < 400 + rnd(&seed, 400); id++) {
			if (flows[id].open && (id + round) % 3 == 0)
				end(&id, 1);
			else if (!flows[id].open)
				begin(&id, 1);
			flows[id].packets = 1;
			wanting_ids[0] = id;
			nb_wanting = flows[id].open;
			nb_done = 0;
			send_some(1);
			if (id % 7 == 0)
				serve_all();
		}
		listen_to_complaints();
		if (round % 3 == 0) { /* stands still, is cut off, and ends later */
			halt(&peers[0]);
			ck_ok(nfmeta_link_fence(peers[0].link, 0, NULL));
			peers[0].stopped = false;
			murder(&peers[0].nf);
		} else {
			kill(peers[0].nf.pid, SIGKILL);
			for (i = 0; i < rnd(&seed, 10); i++)
				serve_all();
			murder(&peers[0].nf);
			ck_assert_int_eq(nfmeta_link_peer(peers[0].link, 0), NFMETA_PEER_DEAD);
			reclaim(&peers[0]);
		}
		ck_assert_int_eq(nfmeta_link_peer(peers[0].link, 0), NFMETA_PEER_NONE);
		ck_assert_uint_eq(nfmeta_link_in_flight(peers[0].link, 0), 0);
		ck_ok(nfmeta_link_stats(peers[0].link, 0, &s));
		ck_assert_uint_eq(s.epoch, round);
		ck_assert_uint_eq(s.sent, s.collected);
		ck_assert_uint_eq(s.down + s.held + s.up + s.metas, 0);
		ck_assert_uint_le(s.orphans, round * BURST);
		ck_assert_uint_eq(s.foreign, 0);
		memset(notes, 0, sizeof(*notes));
		start_nf(0);
		ck_assert_uint_eq(memzones(), zones);
		if (round % 5 == 0)
			compare_tables();
	}
	compare_tables();
	ck_ok(nfmeta_link_stats(peers[0].link, 0, &s));
	ck_assert_uint_eq(s.epoch, 51);
	end_chain();
	remove_dead_lcores();
}
END_TEST

/* One leaves, another comes: old messages are for nobody. */
START_TEST(next_epoch)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.carrier = _i == 0 ? NFMETA_CARRIER_RING : NFMETA_CARRIER_INBAND,
				 .blanks = 16, .pool = pool);
	struct nfmeta_link_stats ls = {.sz = sizeof(ls)};
	struct notes *n = &notes[0];
	const uint64_t half[2] = {1, 2};
	struct nfmeta_link *nf;
	const struct nfmeta_flow_batch *b;
	uint64_t before;
	uint32_t id, i;
	int rc;

	start_chain(1, &o);
	settle();
	ck_ok(nfmeta_link_stats(peers[0].link, 0, &ls));
	ck_assert_uint_eq(ls.epoch, 1);
	begin_many(1, 100);
	command(0, PAUSE);
	for (id = 1; id <= 10; id++)
		ck_assert_int_eq(end(&id, 1), 0);
	command(0, LEAVE);
	ck_assert_int_eq(finish(&peers[0].nf), 0);
	ck_assert_uint_eq(n->deletes, 0);

	memset(n, 0, sizeof(*n));
	start_nf(0);
	ck_ok(nfmeta_link_stats(peers[0].link, 0, &ls));
	ck_assert_uint_eq(ls.epoch, 2);
	compare_tables();
	ck_assert_uint_eq(n->stats.stale, 10);
	ck_assert_uint_eq(n->stats.gaps, 0);
	ck_assert_uint_eq(n->snapshots, 1);
	ck_assert_uint_eq(n->deletes + n->unknown + n->news, 0);
	id = 11;
	ck_assert_int_eq(end(&id, 1), 0);
	compare_tables();
	ck_assert_uint_eq(n->deletes, 1);
	command(0, LEAVE);
	ck_assert_int_eq(finish(&peers[0].nf), 0);

	/* The same upwards: what the next one says counts, not what is left of this one. */
	before = feed(&peers[0]).stale;
	ck_ok(nfmeta_link_attach("t0", 0, 0, &nf));
	for (i = 0; i < 5; i++)
		ck_ok(nfmeta_flow_reply(nf, NFMETA_MSG_OWN, half, 2));
	ck_ok(nfmeta_link_detach(nf));
	memset(n, 0, sizeof(*n));
	start_nf(0);
	be_patient();
	while ((rc = nfmeta_flow_collect(peers[0].link, 0, &b)) == 0) {
		struct rte_mbuf *m[BURST];
		uint8_t how[BURST];

		ck_assert_uint_eq(nfmeta_collect_burst(peers[0].link, 0, m, how, BURST), 0);
		wait_a_little("the question of the new NF");
	}
	ck_assert_int_eq(rc, 1);
	ck_assert_uint_eq(b->type, NFMETA_MSG_RESYNC);
	ck_assert_uint_eq(b->epoch, 4);
	ck_assert_uint_eq(feed(&peers[0]).stale, before + 5);
	peers[0].telling = true;
	peers[0].from = 0;
	compare_tables();
	command(0, LEAVE);
	ck_assert_int_eq(finish(&peers[0].nf), 0);

	/* One is answered, and leaves without reading; the next one asks by the same number. */
	memset(n, 0, sizeof(*n));
	n->command = PAUSE;
	start_nf(0);
	be_patient();
	do {
		serve_all();
		wait_a_little("the question of the last NF but one");
	} while (feed(&peers[0]).state != NFMETA_FEED_STREAM);
	command(0, LEAVE);
	ck_assert_int_eq(finish(&peers[0].nf), 0);
	for (id = 20; id < 30; id++)
		ck_assert_int_eq(end(&id, 1), 0);
	memset(n, 0, sizeof(*n));
	start_nf(0);
	compare_tables();
	ck_assert_uint_eq(n->snapshots, 1);
	ck_assert_uint_eq(n->forgotten + n->unknown + n->deletes, 0);
	ck_assert_uint_gt(n->stats.stale, 0);
	end_chain();
}
END_TEST

/* ---- Verdicts -------------------------------------------------------------------------------- */

/* Two NFs judge the same flows: each verdict arrives once, in its NF's order. */
START_TEST(verdicts)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.ring_size = 256,
				 .carrier = _i == 0 ? NFMETA_CARRIER_RING : NFMETA_CARRIER_INBAND,
				 .flow_ring = 512, .blanks = 16, .pool = pool);
	const uint32_t many = MANY / 10;
	uint32_t next[2] = {0}, i, j, got;
	const struct nfmeta_flow_verdict *v;
	const struct nfmeta_flow_batch *b;
	struct nfmeta_flow_stats s;
	struct rte_mbuf *m[BURST];
	char number[16], name[16], count[16];
	uint8_t how[BURST];
	uint16_t n, k;
	int rc;

	nfs = 2;
	snprintf(count, sizeof(count), "%u", many);
	for (j = 0; j < nfs; j++) {
		snprintf(number, sizeof(number), "%u", j);
		snprintf(name, sizeof(name), "t%u", j);
		ck_ok(nfmeta_link_create(name, &o, &peers[j].link));
		/* In-band, the blanks that they need. */
		nfmeta_collect_burst(peers[j].link, 0, m, how, BURST);
		peers[j].nf = START("verdicts", prefix_of(""), name, number, count);
		ck_said(&peers[j].nf, 0);
	}
	/* Each has found the way full before anything is read. */
	be_patient();
	for (j = 0; j < nfs; j++)
		while (__atomic_load_n(&notes[j].blocked, __ATOMIC_RELAXED) == 0)
			wait_a_little("a full way up");
	be_patient();
	while (next[0] < many || next[1] < many) {
		for (j = 0, got = 0; j < nfs; j++) {
			n = rte_pktmbuf_alloc_bulk(pool, m, 4) == 0 ? 4 : 0;
			k = nfmeta_send_burst(peers[j].link, 0, m, n);
			rte_pktmbuf_free_bulk(&m[k], (unsigned int)(n - k));
			n = nfmeta_collect_burst(peers[j].link, 0, m, how, BURST);
			rte_pktmbuf_free_bulk(m, n);
			while ((rc = nfmeta_flow_collect(peers[j].link, 0, &b)) > 0) {
				ck_assert_uint_eq(b->type, NFMETA_MSG_VERDICT);
				ck_assert_uint_eq(b->epoch, 1);
				for (i = 0; i < b->count; i++) {
					v = nfmeta_flow_entry(b, (uint16_t)i);
					ck_assert_uint_eq(v->who, j);
					ck_assert_uint_eq(v->after, next[j]);
					ck_assert_uint_eq(v->flow_id, next[j] % 1000);
					ck_assert_uint_eq(v->verdict, NFMETA_ACTION_SHUNT);
					next[j]++;
				}
				got++;
			}
			ck_assert_msg(rc == 0, "%d %s", rc, nfmeta_error());
		}
		if (got == 0)
			wait_a_little("verdicts");
		else if (rnd(&seed, 64) == 0)
			usleep(rnd(&seed, 500));
	}
	for (j = 0; j < nfs; j++) {
		ck_assert_uint_eq(next[j], many);
		s = feed(&peers[j]);
		ck_assert_uint_eq(s.replies, s.collected);
		ck_assert_uint_eq(s.stale + s.refused + s.lost, 0);
		ck_assert_uint_eq(s.state, NFMETA_FEED_IDLE);
	}
	end_chain();
}
END_TEST

/* ---- The shared table ------------------------------------------------------------------------- */

/* Two NFs read while the upfront NF writes; only messages up. */
START_TEST(table_only)
{
	struct nfmeta_link_opts o =
		NFMETA_LINK_OPTS(.ring_size = 64, .carrier = NFMETA_CARRIER_TABLE);
	struct nfmeta_flow_state update = {.action = NFMETA_ACTION_INSPECT};
	struct nfmeta_flow_delete gone = {.reason = NFMETA_END_TIMEOUT};
	const struct nfmeta_flow_verdict *v;
	const struct nfmeta_flow_batch *b;
	struct nfmeta_table_flow *table;
	struct nfmeta_table *t;
	struct nfmeta_flow_key key;
	uint64_t rounds, sent = 0;
	uint32_t id = 0, j, i;
	uint16_t gen = 0;
	char name[16], number[16];
	struct rte_mbuf *m[BURST];
	uint8_t how[BURST];
	unsigned int n;

	memset(peers, 0, sizeof(peers));
	ck_ok(nfmeta_table_create("flows", IDS, &t));
	table = nfmeta_table_flows(t, NULL);
	o.table = t;
	nfs = 2;
	for (j = 0; j < nfs; j++) {
		snprintf(number, sizeof(number), "%u", j);
		snprintf(name, sizeof(name), "t%u", j);
		ck_ok(nfmeta_link_create(name, &o, &peers[j].link));
		to[j].link = peers[j].link;
		peers[j].nf = START("reader", prefix_of(""), name, number);
		ck_said(&peers[j].nf, 0);
	}
	be_patient();
	/* So few that generations do not wrap: a reader may sleep through many. */
	for (rounds = 0; rounds < 5 * SOME; rounds++) {
		id = (uint32_t)(rounds % TABLE_IDS);
		gen = (uint16_t)(rounds / TABLE_IDS + 1);
		key_of(&key, id, gen);
		nfmeta_table_open(&table[id], gen, &key, 0);
		nfmeta_table_count(&table[id], 0, 1, 100);
		nfmeta_table_count(&table[id], 1, 1, 1000);
		if (rounds % 256 < TABLE_IDS) { /* each of the ids */
			be_patient();
			flows[id].gen = gen;
			flows[id].packets = 1;
			wanting_ids[0] = id;
			nb_wanting = 1;
			nb_done = 0;
			send_some(1);
			sent++;
			j = id % 2;
			for (i = 0, n = 0; i + n < 2;
			     n += nfmeta_collect_burst(peers[j].link, 0, &m[n], how, 1)) {
				if (i == 0 && nfmeta_flow_collect(peers[j].link, 0, &b) == 1) {
					ck_assert_uint_eq(b->type, NFMETA_MSG_VERDICT);
					ck_assert_uint_eq(b->count, 1);
					v = nfmeta_flow_entry(b, 0);
					ck_assert_uint_eq(v->flow_id, id);
					ck_assert_uint_eq(v->flow_gen, gen);
					i = 1;
				}
				if (i + n == 0)
					wait_a_little("a packet");
			}
			rte_pktmbuf_free(m[0]);
		}
		update.flow_id = gone.flow_id = id;
		update.flow_gen = gone.flow_gen = gen;
		update.app_id = gen * 7u;
		ck_assert_int_eq(nfmeta_flow_broadcast(to, 2, NFMETA_MSG_UPDATE, &update, 1), 0);
		nfmeta_table_count(&table[id], 0, 3, 300);
		if (rounds + TABLE_IDS >= 5 * SOME)
			continue; /* the last ones stay */
		ck_assert_int_eq(nfmeta_flow_broadcast(to, 2, NFMETA_MSG_DELETE, &gone, 1), 0);
		if (rounds % 4096 == 0)
			listen_to_complaints();
	}
	be_patient();
	for (j = 0; j < nfs; j++) {
		while (__atomic_load_n(&notes[j].news, __ATOMIC_RELAXED) < SOME)
			wait_a_little("a reader");
		ck_assert_uint_eq(notes[j].packets, peers[j].accepted);
		ck_assert_uint_eq(feed(&peers[j]).sent, 0);
	}
	ck_assert_uint_eq(notes[0].packets + notes[1].packets, sent);
	printf("table: %lu flows; readers found %lu and %lu, gave up %lu and %lu times\n",
	       (unsigned long)rounds, (unsigned long)notes[0].news, (unsigned long)notes[1].news,
	       (unsigned long)notes[0].late, (unsigned long)notes[1].late);
	fflush(stdout);
	end_chain();
	nfmeta_table_destroy(t);
}
END_TEST

/* ---- main ---------------------------------------------------------------------------------------- */

/* A test case for each, so that CK_RUN_CASE can choose. */
static void
add(Suite *s, const char *name, const TTest *test, int loops)
{
	TCase *t = tcase_create(name);

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup_notes, teardown_notes);
	tcase_set_timeout(t, 240);
	tcase_add_loop_test(t, test, 0, loops);
}

int
main(int argc, char **argv)
{
	int status = play_role(argc, argv, roles, RTE_DIM(roles));
	Suite *s;

	if (status >= 0)
		return status;
	s = suite_create("flow state, two processes");
	add(s, "full ring", full_ring, 1);
	add(s, "sleeping", sleeping_nf, RTE_DIM(sleeps));
	add(s, "slow", slow_nf, 2);
	add(s, "idle", idle_chain, 2);
	add(s, "epoch", next_epoch, 2);
	add(s, "verdicts", verdicts, 2);
	add(s, "table", table_only, 1);
	add(s, "killed", killed_and_made_anew, 1);
	add(s, "back", killed_and_back, 2);
	add(s, "churn", churn, RTE_DIM(churns));
	return run_suite(s, "flow");
}
