/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "link.h" /* first: it chooses the memory model of rte_ring */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mempool.h>
#include <rte_memzone.h>
#include <rte_pause.h>
#include <rte_prefetch.h>
#include <rte_random.h>
#include <rte_ring.h>
#include <rte_version.h>

#define FEATURES_KNOWN NFMETA_FEATURE_INBAND

#define DEFAULT_RING_SIZE 1024
#define DEFAULT_WAIT_US 1000
#define BLANKS_MAX 1024
#define STOCK_BULK 32	/* blanks put on the ring at a time */
#define RETURN_CHUNK 64 /* packets tagged at a time */
#define ATTACH_POLL_US 2000
#define FLOW_RING_MIN 512 /* the longest message has 261 words */
#define FLOW_RING_MAX 1048576
#define DEFAULT_FLOW_RING 8191 /* 64 KiB; one more would take 128 */
#define FLOW_BACKLOG_MAX 16777216
#define DEFAULT_FLOW_BACKLOG 65536
#define QUEUE_SIZE 256	    /* of a struct nfmeta_shared_queue in ABI 1.0 */
#define QUEUE_SIZE_FLOW 512 /* of a struct nfmeta_shared_queue with flow state */
#define SPIN_POLLS 256	    /* of a waiting sender, before it lets others run */

/* Bytes of a lease file; who holds the lock on one is there. */
#define LEASE_NF 0
#define LEASE_PRIMARY 1

struct nfmeta_shared_queue *
nfmeta__place(const struct nfmeta_link *link, uint32_t place)
{
	const struct nfmeta_shared_link *s = link->shared;

	return (void *)((uint8_t *)link->shared + s->queue_offset + place * s->queue_size);
}

/* ---- Names --------------------------------------------------------------- */

static void
zone_name(char out[NFMETA_NAME_SIZE], const char *name)
{
	snprintf(out, NFMETA_NAME_SIZE, "nfmeta.%s", name);
}

static void
ring_name(char out[NFMETA_NAME_SIZE], const char *name, char kind, uint32_t number)
{
	snprintf(out, NFMETA_NAME_SIZE, "nfm.%.15s.%c%u", name, kind,
		 number); /* names have no more */
}

static int
eal_is_up(void)
{
	return rte_lcore_count() != 0;
}

/* ---- Leases: locks that the kernel drops with their process --------------- */

/*
 * A primary that shares no files (--no-shconf, --in-memory) has no other
 * process at its links, and must not touch lease files: the directory may be
 * another primary's.  DPDK's way to ask is whether multi-process messages work.
 */
static int
no_action(const struct rte_mp_msg *msg __rte_unused, const void *peer __rte_unused)
{
	return 0;
}

static bool
leases_in_use(void)
{
	static const char probe[] = "nfmeta_probe";

	if (rte_mp_action_register(probe, no_action) == 0)
		rte_mp_action_unregister(probe);
	else if (rte_errno == ENOTSUP)
		return false;
	return true;
}

static void
lease_path(char out[PATH_MAX], const char *name, uint32_t queue)
{
	snprintf(out, PATH_MAX, "%s/nfmeta.%s.q%u", rte_eal_get_runtime_dir(), name, queue);
}

static int
lease_lock(int fd, int byte, short type)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &l);
}

static bool
lease_held(int fd, int byte)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* What a dead primary left under this name does not count: the file is made anew. */
int
nfmeta__lease_create(const char *name, uint32_t queue, bool hold)
{
	char path[PATH_MAX], fresh[PATH_MAX];
	int fd, rc;

	/* The old one stays until the new one is whole. */
	lease_path(path, name, queue);
	snprintf(fresh, sizeof(fresh), "%s/nfmeta.%s.n%u", rte_eal_get_runtime_dir(), name, queue);
	unlink(fresh);
	fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && lease_lock(fd, LEASE_PRIMARY, F_WRLCK) == 0 &&
	    (!hold || lease_lock(fd, LEASE_NF, F_WRLCK) == 0) && rename(fresh, path) == 0)
		return fd;
	rc = nfmeta__fail(errno, "cannot make lease file %s: %s", path, strerror(errno));
	if (fd >= 0) {
		unlink(fresh);
		close(fd);
	}
	return rc;
}

static bool
lease_is_current(int fd, const char *name, uint32_t queue)
{
	char path[PATH_MAX];
	struct stat have, now;

	lease_path(path, name, queue);
	return fstat(fd, &have) == 0 && stat(path, &now) == 0 && have.st_ino == now.st_ino &&
	       have.st_dev == now.st_dev;
}

/*
 * Open the lease and try to take it; a file that was replaced meanwhile is as good as
 * none.  -1: errno says why.
 */
static int
lease_open(const char *name, uint32_t queue, bool *mine)
{
	char path[PATH_MAX];
	int fd;

	*mine = false;
	lease_path(path, name, queue);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	*mine = lease_lock(fd, LEASE_NF, F_WRLCK) == 0;
	if (lease_is_current(fd, name, queue))
		return fd;
	close(fd);
	*mine = false;
	errno = ENOENT;
	return -1;
}

bool
nfmeta__lease_held(int lease)
{
	return lease_held(lease, LEASE_NF);
}

int
nfmeta__lease_seize(struct upfront *q)
{
	return lease_lock(q->lease, LEASE_NF, F_WRLCK);
}

void
nfmeta__lease_leave(struct upfront *q)
{
	lease_lock(q->lease, LEASE_NF, F_UNLCK);
}

/* ---- The handshake -------------------------------------------------------- */

/* clang-format off */
#define MBUF_POINT(f) {#f, offsetof(struct rte_mbuf, f)}
/* clang-format on */
static const struct {
	const char *name;
	uint16_t value;
} mbuf_points[NFMETA_MBUF_POINTS] = {
	{"size", sizeof(struct rte_mbuf)},
	MBUF_POINT(buf_addr),
	MBUF_POINT(data_off),
	MBUF_POINT(refcnt),
	MBUF_POINT(nb_segs),
	MBUF_POINT(port),
	MBUF_POINT(ol_flags),
	MBUF_POINT(packet_type),
	MBUF_POINT(pkt_len),
	MBUF_POINT(data_len),
	MBUF_POINT(vlan_tci),
	MBUF_POINT(vlan_tci_outer),
	MBUF_POINT(buf_len),
	MBUF_POINT(pool),
	MBUF_POINT(next),
	MBUF_POINT(tx_offload),
};

void
nfmeta__handshake_local(struct nfmeta_shared_link *s)
{
	size_t i;

	s->abi_major = NFMETA_ABI_MAJOR;
	s->abi_minor = NFMETA_ABI_MINOR;
	snprintf(s->library_version, sizeof(s->library_version), "%s", NFMETA_VERSION_STRING);
	snprintf(s->dpdk_version, sizeof(s->dpdk_version), "%s", rte_version());
	for (i = 0; i < NFMETA_MBUF_POINTS; i++)
		s->mbuf_layout[i] = mbuf_points[i].value;
}

static int
other_mbuf(const struct nfmeta_shared_link *s)
{
	char theirs[128] = "", ours[128] = "";
	size_t i, used_t = 0, used_o = 0, first = NFMETA_MBUF_POINTS;

	for (i = 0; i < NFMETA_MBUF_POINTS; i++) {
		if (s->mbuf_layout[i] != mbuf_points[i].value && first == NFMETA_MBUF_POINTS)
			first = i;
		used_t += (size_t)snprintf(theirs + used_t, sizeof(theirs) - used_t, "%s%u",
					   i ? "/" : "", s->mbuf_layout[i]);
		used_o += (size_t)snprintf(ours + used_o, sizeof(ours) - used_o, "%s%u",
					   i ? "/" : "", mbuf_points[i].value);
	}
	return nfmeta__fail(
		NFMETA_EMBUF,
		"other rte_mbuf layout: the primary has %s %u, this side %u (whole layout "
		"%s there, %s here); build both sides against the same DPDK",
		mbuf_points[first].name, s->mbuf_layout[first], mbuf_points[first].value, theirs,
		ours);
}

static bool
is_name(const char field[NFMETA_NAME_SIZE])
{
	return memchr(field, '\0', NFMETA_NAME_SIZE) != NULL;
}

/* NULL, or what is wrong with it. */
static const char *
check_field(const struct nfmeta_field *f)
{
	bool headroom = f->placement == NFMETA_PLACE_HEADROOM;
	uint32_t room = headroom ? NFMETA_HEADROOM_ROOM : sizeof(struct rte_mbuf);

	if (f->placement < NFMETA_PLACE_DYNFIELD || f->placement > NFMETA_PLACE_HEADROOM)
		return "the placement of records is not known";
	if (f->size != NFMETA_RECORD_WORD && f->size != NFMETA_RECORD_CORE &&
	    f->size != NFMETA_RECORD_WIDE && f->size != NFMETA_RECORD_FULL)
		return "the size of records is none of 8, 16, 32, 64";
	if ((uint32_t)f->offset + f->size > room)
		return "the record does not lie inside its room";
	if (f->seal_offset + (headroom ? 4u : 2u) > room)
		return "the seal does not lie inside its room";
	if (f->offset % 8 != 0)
		return "the record is not aligned";
	if (f->flag == 0 || (f->flag & (f->flag - 1)) != 0)
		return "the presence flag is not one bit";
	return NULL;
}

/* NULL, or what is wrong with what is said about flow state. */
static const char *
check_flow(const struct nfmeta_shared_link *s)
{
	bool ring =
		s->flow_carrier == NFMETA_CARRIER_RING || s->flow_carrier == NFMETA_CARRIER_TABLE;

	if (s->flow_carrier > NFMETA_CARRIER_TABLE)
		return "the carrier of flow state is not known";
	if (s->flow_carrier != 0 && s->queue_size < QUEUE_SIZE_FLOW)
		return "its queues have no room for flow state";
	if (ring != (s->flow_ring != 0))
		return "carrier and rings of flow state do not fit together";
	if (ring && (s->flow_ring < FLOW_RING_MIN || s->flow_ring > FLOW_RING_MAX))
		return "the size of a flow ring is not possible";
	if (s->flow_carrier == NFMETA_CARRIER_INBAND && s->blanks == 0)
		return "in-band messages without blanks are not possible";
	if (!is_name(s->flow_table))
		return "the name of the flow table has no end";
	if (s->flow_carrier == NFMETA_CARRIER_TABLE && s->flow_table[0] == '\0')
		return "the flow table has no name";
	return NULL;
}

static int
no_handshake(const char *what)
{
	return nfmeta__fail(NFMETA_EFORMAT,
			    "this is not a handshake: %s; another program uses the name, or memory "
			    "was overwritten",
			    what);
}

int
nfmeta__handshake_check(const void *bytes, size_t len, const char *name, uint32_t queue)
{
	const struct nfmeta_shared_link *s = bytes;
	const char *wrong;
	uint32_t i;

	if (len < sizeof(*s))
		return no_handshake("too short");
	if (s->magic != NFMETA_LINK_MAGIC)
		return no_handshake("wrong magic number");
	if (s->abi_major != NFMETA_ABI_MAJOR)
		return nfmeta__fail(NFMETA_EABI,
				    "the primary speaks ABI %u, this side ABI %u: install the same "
				    "major version of libnfmeta on both sides",
				    s->abi_major, NFMETA_ABI_MAJOR);
	if (s->size < sizeof(*s) || s->size > len)
		return no_handshake("its size does not fit the memory it is in");
	if ((s->features_required & ~FEATURES_KNOWN) != 0)
		return nfmeta__fail(NFMETA_EFEATURE,
				    "the link requires features 0x%" PRIx64
				    ", this side knows 0x%" PRIx64
				    ": install a newer libnfmeta here",
				    s->features_required, FEATURES_KNOWN);
	if (!is_name(s->name) || !is_name(s->library_version) || !is_name(s->dpdk_version) ||
	    !is_name(s->pool_name) || !is_name(s->pool_ops))
		return no_handshake("a name has no end");
	if (strcmp(s->dpdk_version, rte_version()) != 0)
		return nfmeta__fail(
			NFMETA_EDPDKVERSION,
			"the primary runs %s, this side %s: install the same DPDK on both "
			"sides",
			s->dpdk_version, rte_version());
	for (i = 0; i < NFMETA_MBUF_POINTS; i++)
		if (s->mbuf_layout[i] != mbuf_points[i].value)
			return other_mbuf(s);

	if (strcmp(s->name, name) != 0)
		return no_handshake("it has another link's name");
	if (s->queue_count < 1 || s->queue_count > NFMETA_QUEUES_MAX)
		return no_handshake("the number of queues is not possible");
	if (s->queue_offset < sizeof(*s) || s->queue_offset % 64 != 0 ||
	    s->queue_size < QUEUE_SIZE || s->queue_size % 64 != 0 ||
	    (uint32_t)s->queue_offset + (uint32_t)s->queue_count * s->queue_size > s->size)
		return no_handshake("its queues do not lie inside it");
	if (s->ring_size < 64 || s->ring_size > 65536 || (s->ring_size & (s->ring_size - 1)) != 0 ||
	    s->blanks > BLANKS_MAX)
		return no_handshake("a ring size is not possible");
	if (s->when_full < NFMETA_FULL_DROP || s->when_full > NFMETA_FULL_BYPASS)
		return no_handshake("the policy for full rings is not known");
	if (s->instance == 0)
		return no_handshake("it has no instance number");
	wrong = check_field(&s->field);
	if (wrong == NULL)
		wrong = check_flow(s);
	if (wrong != NULL)
		return no_handshake(wrong);
	for (i = 0; i < s->queue_count; i++) {
		const struct nfmeta_shared_queue *q =
			(const void *)((const uint8_t *)bytes + s->queue_offset +
				       i * s->queue_size);

		if (!is_name(q->down) || !is_name(q->up) || !is_name(q->blank))
			return no_handshake("a ring name has no end");
		if (q->down[0] == '\0' || q->up[0] == '\0' ||
		    (q->blank[0] == '\0') != (s->blanks == 0))
			return no_handshake("a ring name is missing");
		if (s->flow_carrier == 0)
			continue;
		if (!is_name(q->flow_down) || !is_name(q->flow_up))
			return no_handshake("a ring name has no end");
		if ((q->flow_up[0] == '\0') != (s->flow_ring == 0) ||
		    (q->flow_down[0] == '\0') != (s->flow_carrier != NFMETA_CARRIER_RING))
			return no_handshake("the name of a flow ring is missing");
	}
	if (queue >= s->queue_count)
		return nfmeta__fail(EINVAL, "link '%s' has queues 0 to %u, there is no queue %u",
				    name, s->queue_count - 1u, queue);
	return 0;
}

/* ---- Create ----------------------------------------------------------------- */

static size_t
ring_bytes(uint32_t capacity)
{
	ssize_t n = rte_ring_get_memsize(rte_align32pow2(capacity + 1));

	return n < 0 ? 0 : (size_t)n;
}

static int
make_ring(struct rte_ring **ring, const char *name, char kind, uint32_t number, uint32_t capacity)
{
	char out[NFMETA_NAME_SIZE];

	ring_name(out, name, kind, number);
	*ring = rte_ring_create(out, capacity, SOCKET_ID_ANY,
				RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	if (*ring != NULL)
		return 0;
	if (rte_errno == EEXIST)
		return nfmeta__fail(EEXIST, "a ring '%s' exists already: choose another link name",
				    out);
	return -ENOMEM;
}

static size_t
rings_bytes(const struct nfmeta_link *link)
{
	uint32_t flow = link->shared->flow_ring;

	return ring_bytes(link->ring_size) + ring_bytes(link->ring_size + link->blanks) +
	       (link->blanks != 0 ? ring_bytes(link->blanks) : 0) +
	       (flow != 0 ? ring_bytes(flow) : 0) +
	       (link->carrier == NFMETA_CARRIER_RING ? ring_bytes(flow) : 0);
}

int
nfmeta__rings_make(const struct nfmeta_link *link, uint32_t number, struct rings *r)
{
	uint32_t size = link->ring_size, blanks = link->blanks, flow = link->shared->flow_ring;
	const char *name = link->shared->name;
	int rc;

	memset(r, 0, sizeof(*r));
	rc = make_ring(&r->down, name, 'd', number, size);
	if (rc == 0)
		rc = make_ring(&r->up, name, 'u', number, size + blanks);
	if (rc == 0 && blanks != 0)
		rc = make_ring(&r->blank, name, 'b', number, blanks);
	if (rc == 0 && link->carrier == NFMETA_CARRIER_RING)
		rc = make_ring(&r->flow_down, name, 'f', number, flow);
	if (rc == 0 && flow != 0)
		rc = make_ring(&r->flow_up, name, 'v', number, flow);
	if (rc == 0)
		return 0;
	nfmeta__rings_free(r);
	if (rc == -ENOMEM)
		nfmeta__fail(
			ENOMEM,
			"no memory for the rings of link '%s': %zu bytes a queue, %u queues, %u "
			"spare ones: give the primary more hugepage memory",
			name, rings_bytes(link), link->queues, link->spares);
	return rc;
}

void
nfmeta__rings_free(struct rings *r)
{
	rte_ring_free(r->down);
	rte_ring_free(r->up);
	rte_ring_free(r->blank);
	rte_ring_free(r->flow_down);
	rte_ring_free(r->flow_up);
	memset(r, 0, sizeof(*r));
}

static void
put_name(char out[NFMETA_NAME_SIZE], const struct rte_ring *ring)
{
	if (ring != NULL)
		snprintf(out, NFMETA_NAME_SIZE, "%s", ring->name);
}

void
nfmeta__rings_use(struct upfront *q, const struct rings *r)
{
	put_name(q->shared->down, r->down);
	put_name(q->shared->up, r->up);
	put_name(q->shared->blank, r->blank);
	put_name(q->shared->flow_down, r->flow_down);
	put_name(q->shared->flow_up, r->flow_up);
	q->down = r->down;
	q->up = r->up;
	q->blank = r->blank;
	if (q->feed == NULL)
		return;
	q->feed->down = r->flow_down;
	q->feed->in = (struct reader){.ring = r->flow_up};
}

/*
 * These go to the NF; returns how many could be noted: all.  (The map is copied, because a
 * byte that is written may be anything to the compiler.)
 */
static __rte_always_inline uint32_t
mark(struct upfront *q, struct rte_mbuf *const *pkts, uint32_t n, uint8_t what)
{
	struct map map = q->map;
	uint64_t place;
	uint32_t i;

	for (i = 0; i < n; i++) {
		place = place_of(&map, pkts[i]);
		if (unlikely(place >= map.places)) { /* of a pool that was made after the map */
			if (!nfmeta__map_make(q))
				return i;
			map = q->map;
			place = place_of(&map, pkts[i]);
			if (place >= map.places)
				return i;
		}
		map.at[place] = what;
	}
	return n;
}

static void
unmark(struct upfront *q, struct rte_mbuf *const *pkts, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		q->map.at[place_of(&q->map, pkts[i])] = AT_NONE;
}

/* Put blanks on the ring, a bulk at a time; as many as the pool has, if it has too few. */
static __rte_noinline bool
restock(struct nfmeta_link *link, struct upfront *q)
{
	uint32_t missing = link->blanks - (uint32_t)(q->stocked - q->unstocked);
	struct rte_mbuf *fresh[STOCK_BULK];

	if (missing > STOCK_BULK)
		missing = STOCK_BULK;
	if (missing == 0 || rte_pktmbuf_alloc_bulk(link->pool, fresh, missing) != 0)
		return false;
	if (unlikely(mark(q, fresh, missing, AT_BLANK) != missing)) {
		rte_pktmbuf_free_bulk(fresh, missing);
		return false;
	}
	q->stocked += missing;
	put(&q->shared->stocked, q->stocked);
	if (unlikely(rte_ring_sp_enqueue_bulk(q->blank, (void **)fresh, missing, NULL) == 0)) {
		q->stocked -= missing;
		put(&q->shared->stocked, q->stocked);
		unmark(q, fresh, missing);
		rte_pktmbuf_free_bulk(fresh, missing);
		return false;
	}
	return true;
}

static int
make_queue(struct nfmeta_link *link, uint32_t queue, const struct nfmeta_link_opts *o, bool leases)
{
	struct upfront *q = &link->q[queue];
	struct rings rings;
	int rc;

	q->shared = nfmeta__place(link, queue);
	q->place = queue;
	q->limit = o->ring_size;
	q->restock_at = UINT32_MAX;
	if (o->carrier != 0) {
		rc = nfmeta__feed_make(link, q, o->flow_backlog);
		if (rc != 0)
			return rc;
	}
	rc = nfmeta__rings_make(link, queue, &rings);
	if (rc != 0)
		return rc;
	nfmeta__rings_use(q, &rings);
	if (o->when_full == NFMETA_FULL_WAIT) {
		q->stash = calloc(link->stash_size, sizeof(*q->stash));
		if (q->stash == NULL)
			return nfmeta__fail(ENOMEM, "no memory: %zu bytes wanted",
					    link->stash_size * sizeof(*q->stash));
	}
	if (!nfmeta__map_make(q))
		return nfmeta__fail(ENOMEM, "no memory to note which packets are at the NF");
	if (leases) {
		q->lease = nfmeta__lease_create(link->shared->name, queue, false);
		if (q->lease < 0)
			return q->lease;
	}
	if (o->blanks != 0) {
		/* So few that an NF which keeps some blanks does not starve; in-band it needs them. */
		q->restock_at = RTE_MIN(RTE_MAX(o->blanks / 8, 1u), (uint32_t)STOCK_BULK);
		if (o->carrier == NFMETA_CARRIER_INBAND)
			q->restock_at = 1;
		while (restock(link, q))
			;
	}
	return 0;
}

/* Their structs are behind those of the queues: each queue can leave its first for good. */
static int
make_spares(struct nfmeta_link *link, uint32_t n)
{
	uint32_t i;
	int rc;

	link->spare = calloc(n, sizeof(*link->spare));
	link->free_place = calloc(link->queues + n, sizeof(*link->free_place));
	if (link->spare == NULL || link->free_place == NULL)
		return nfmeta__fail(ENOMEM, "no memory for %u spare queues", n);
	for (i = 0; i < n; i++) {
		rc = nfmeta__rings_make(link, NFMETA_QUEUES_MAX + i, &link->spare[i]);
		if (rc != 0)
			return rc;
		link->spares++;
	}
	for (i = link->queues + n; i > 0; i--)
		link->free_place[link->free_places++] = link->queues + i - 1;
	return 0;
}

/* Only what went to the NF is freed: on the up ring may be anything. */
static void
free_element(struct upfront *q, const void *e)
{
	struct rte_mbuf *m = (struct rte_mbuf *)((uintptr_t)e & ~(uintptr_t)NFMETA_HOW_MASK);
	uint64_t place = place_of(&q->map, m);

	if (place >= q->map.places || q->map.at[place] == AT_NONE)
		return;
	q->map.at[place] = AT_NONE;
	rte_pktmbuf_free(m);
}

static void
free_ring(struct upfront *q, struct rte_ring *ring)
{
	void *e;

	if (ring == NULL)
		return;
	while (rte_ring_sc_dequeue(ring, &e) == 0)
		free_element(q, e);
	rte_ring_free(ring);
}

/* Everything that a link is, as far as it was made; returns what dead NFs had in their hands. */
static uint64_t
unmake(struct nfmeta_link *link)
{
	uint64_t orphans = 0;
	char path[PATH_MAX];
	uint32_t i;

	for (i = 0; i < link->served; i++) {
		struct upfront *q = &link->q[i];

		free_ring(q, q->down);
		free_ring(q, q->up);
		free_ring(q, q->blank);
		for (; q->stash_head < q->stash_tail; q->stash_head++)
			free_element(q, q->stash[q->stash_head]);
		free(q->stash);
		for (; q->dead != NULL && q->dead_at < q->dead_all; q->dead_at++) {
			orphans += q->dead_at < q->dead_hands;
			rte_pktmbuf_free(q->dead[q->dead_at]);
		}
		free(q->dead);
		nfmeta__feed_free(q);
		orphans += nfmeta__map_free(&q->map,
					    q->sent != q->collected || q->stocked != q->unstocked);
		if (q->lease >= 0) {
			lease_path(path, link->shared->name, i);
			unlink(path);
			close(q->lease);
		}
	}
	while (link->spares > 0)
		nfmeta__rings_free(&link->spare[--link->spares]);
	free(link->spare);
	free(link->free_place);
	if (link->zone != NULL) {
		__atomic_store_n(&link->shared->magic, 0, __ATOMIC_RELEASE);
		rte_memzone_free(link->zone);
	}
	free(link);
	return orphans;
}

static int
read_flow_opts(struct nfmeta_link_opts *o)
{
	if (o->carrier > NFMETA_CARRIER_TABLE)
		return nfmeta__fail(EINVAL,
				    "carrier is %u: 0 or NFMETA_CARRIER_RING, _INBAND or _TABLE",
				    o->carrier);
	if (o->carrier == NFMETA_CARRIER_TABLE && o->table == NULL)
		return nfmeta__fail(EINVAL,
				    "carrier is NFMETA_CARRIER_TABLE, but there is no table");
	if (o->flow_ring == 0)
		o->flow_ring = DEFAULT_FLOW_RING;
	if (o->flow_backlog == 0)
		o->flow_backlog = DEFAULT_FLOW_BACKLOG;
	if (o->flow_ring < FLOW_RING_MIN || o->flow_ring > FLOW_RING_MAX)
		return nfmeta__fail(EINVAL, "flow_ring is %u: %d to %d words are allowed",
				    o->flow_ring, FLOW_RING_MIN, FLOW_RING_MAX);
	if (o->flow_backlog != NFMETA_NO_BACKLOG && o->flow_backlog > FLOW_BACKLOG_MAX)
		return nfmeta__fail(EINVAL,
				    "flow_backlog is %u: at most %d words, or NFMETA_NO_BACKLOG",
				    o->flow_backlog, FLOW_BACKLOG_MAX);
	if (o->carrier != NFMETA_CARRIER_INBAND)
		return 0;
	if (o->blanks == 0)
		return nfmeta__fail(EINVAL, "blanks is 0: in-band, an NF sends its messages in "
					    "blanks: 16 are a good number");
	if (rte_pktmbuf_data_room_size(o->pool) < NFMETA_FLOW_MESSAGE_BYTES)
		return nfmeta__fail(EINVAL,
				    "in-band messages take mbufs of %d bytes, those of pool '%s' "
				    "have %u: make the pool with RTE_MBUF_DEFAULT_BUF_SIZE",
				    NFMETA_FLOW_MESSAGE_BYTES, o->pool->name,
				    rte_pktmbuf_data_room_size(o->pool));
	return 0;
}

static int
read_opts(struct nfmeta_link_opts *o, const struct nfmeta_link_opts *given)
{
	static const struct nfmeta_link_opts defaults = NFMETA_LINK_OPTS();

	if (given == NULL)
		given = &defaults;
	if (nfmeta__opts(o, sizeof(*o), given, given->sz) != 0)
		return nfmeta__fail(
			EINVAL,
			"nfmeta_link_opts.sz is %u, %zu is known here, and the rest must be "
			"0: set it with NFMETA_LINK_OPTS()",
			given->sz, sizeof(*o));
	if (o->ring_size == 0)
		o->ring_size = DEFAULT_RING_SIZE;
	if (o->queues == 0)
		o->queues = 1;
	if (o->when_full == 0)
		o->when_full = NFMETA_FULL_DROP;
	if (o->wait_us == 0)
		o->wait_us = DEFAULT_WAIT_US;

	if (o->ring_size < 64 || o->ring_size > 65536 || (o->ring_size & (o->ring_size - 1)) != 0)
		return nfmeta__fail(EINVAL,
				    "ring_size is %u: a power of 2 from 64 to 65536 is allowed",
				    o->ring_size);
	if (o->queues > NFMETA_QUEUES_MAX)
		return nfmeta__fail(EINVAL, "queues is %u: 1 to %d are allowed", o->queues,
				    NFMETA_QUEUES_MAX);
	if (o->when_full > NFMETA_FULL_BYPASS)
		return nfmeta__fail(EINVAL, "when_full is %u: NFMETA_FULL_DROP, _WAIT or _BYPASS",
				    o->when_full);
	if (o->spares == 0)
		o->spares = 1;
	if (o->spares > NFMETA_QUEUES_MAX)
		return nfmeta__fail(EINVAL, "spares is %u: at most %d are allowed", o->spares,
				    NFMETA_QUEUES_MAX);
	if (o->blanks > BLANKS_MAX)
		return nfmeta__fail(EINVAL, "blanks is %u: at most %d are allowed", o->blanks,
				    BLANKS_MAX);
	if (o->blanks != 0 && o->pool == NULL)
		return nfmeta__fail(EINVAL, "blanks is %u but there is no pool to take them from",
				    o->blanks);
	return read_flow_opts(o);
}

int
nfmeta_link_create(const char *name, const struct nfmeta_link_opts *opts, struct nfmeta_link **out)
{
	char zone[NFMETA_NAME_SIZE];
	struct nfmeta_shared_link *s;
	struct nfmeta_link_opts o;
	struct nfmeta_field field;
	struct nfmeta_link *link;
	const char *wrong;
	size_t len, bytes;
	uint32_t i;
	bool leases;
	int rc;

	if (out == NULL)
		return nfmeta__fail(EINVAL, "there is no place to put the link");
	rc = nfmeta__check_name("link", name);
	if (rc == 0)
		rc = read_opts(&o, opts);
	if (rc != 0)
		return rc;
	if (!eal_is_up())
		return nfmeta__fail(
			NFMETA_EROLE,
			"DPDK is not initialised: call rte_eal_init() before you create "
			"link '%s'",
			name);
	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return nfmeta__fail(
			NFMETA_EROLE,
			"link '%s' can be created by the DPDK primary only, this process is "
			"a secondary: use nfmeta_link_attach()",
			name);
	if (o.field != NULL) {
		field = *o.field;
		wrong = check_field(&field);
		if (wrong != NULL)
			return nfmeta__fail(EINVAL, "not a field of nfmeta_field_register(): %s",
					    wrong);
	} else {
		rc = nfmeta_field_register(NULL, &field);
		if (rc != 0)
			return rc;
	}

	len = sizeof(*s) + (2 * o.queues + o.spares) * sizeof(struct nfmeta_shared_queue);
	bytes = RTE_ALIGN(sizeof(*link) + o.queues * sizeof(link->q[0]), RTE_CACHE_LINE_SIZE);
	link = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);
	if (link == NULL)
		return nfmeta__fail(ENOMEM, "no memory: %zu bytes wanted", bytes);
	memset(link, 0, bytes);
	link->lease = -1;
	link->queues = o.queues;
	link->field = field;
	link->pool = o.pool;
	link->blanks = o.blanks;
	link->ring_size = o.ring_size;
	link->carrier = o.carrier;
	link->table = o.table;
	link->stash_size = o.ring_size + o.blanks;
	link->wait_cycles = rte_get_tsc_hz() / 1000000 * o.wait_us;
	for (i = 0; i < o.queues; i++)
		link->q[i].lease = -1;

	zone_name(zone, name);
	link->zone = rte_memzone_reserve_aligned(zone, len, SOCKET_ID_ANY, 0, RTE_CACHE_LINE_SIZE);
	if (link->zone == NULL) {
		rc = rte_errno == EEXIST
			     ? nfmeta__fail(EEXIST, "link '%s' exists already: choose another name",
					    name)
			     : nfmeta__fail(ENOMEM,
					    "no memory for link '%s': %zu bytes wanted: give the "
					    "primary more hugepage memory",
					    name, len);
		unmake(link);
		return rc;
	}
	s = link->shared = link->zone->addr;
	/* An attacher may look at the magic number already; state 0: BUILDING. */
	__atomic_store_n(&s->magic, 0, __ATOMIC_RELAXED);
	memset((uint8_t *)s + sizeof(s->magic), 0, len - sizeof(s->magic));
	nfmeta__handshake_local(s);
	s->size = (uint32_t)len;
	do {
		link->instance = s->instance = (uint32_t)rte_rand();
	} while (s->instance == 0);
	s->queue_count = o.queues;
	s->queue_size = sizeof(struct nfmeta_shared_queue);
	s->queue_offset = sizeof(*s);
	s->when_full = o.when_full;
	s->ring_size = o.ring_size;
	s->blanks = o.blanks;
	s->field = field;
	s->flow_carrier = o.carrier;
	if (o.carrier == NFMETA_CARRIER_RING || o.carrier == NFMETA_CARRIER_TABLE)
		s->flow_ring = o.flow_ring;
	if (o.carrier == NFMETA_CARRIER_INBAND)
		s->features_required |= NFMETA_FEATURE_INBAND;
	if (o.table != NULL)
		snprintf(s->flow_table, sizeof(s->flow_table), "%s", nfmeta__table_zone(o.table));
	snprintf(s->name, sizeof(s->name), "%s", name);
	if (o.pool != NULL) {
		snprintf(s->pool_name, sizeof(s->pool_name), "%s", o.pool->name);
		snprintf(s->pool_ops, sizeof(s->pool_ops), "%s",
			 rte_mempool_get_ops(o.pool->ops_index)->name);
	}

	leases = leases_in_use();
	for (i = 0; i < o.queues; i++) {
		link->served = (uint16_t)(i + 1);
		rc = make_queue(link, i, &o, leases);
		if (rc != 0) {
			unmake(link);
			return rc;
		}
	}
	if (leases) {
		rc = make_spares(link, o.spares);
		if (rc != 0) {
			unmake(link);
			return rc;
		}
	}
	/* Last: an attacher reads nothing before it sees the magic number. */
	__atomic_store_n(&s->state, NFMETA_LINK_READY, __ATOMIC_RELEASE);
	__atomic_store_n(&s->magic, NFMETA_LINK_MAGIC, __ATOMIC_RELEASE);
	*out = link;
	return 0;
}

/* ---- The primary's side -------------------------------------------------------- */

/*
 * The next packets on a ring, which the caller will ask for in its next burst:
 * start fetching them now.  left is what the last dequeue said is there, so
 * that the producer's index is not read once more.
 */
static __rte_always_inline void
ahead(const struct rte_ring *ring, uint32_t left, uint32_t n, uint32_t second, bool to_write)
{
	void *const *slots = (void *const *)&ring[1];
	uint32_t at = ring->cons.head, end = at + RTE_MIN(n, left);

	for (; at != end; at++) {
		const uint8_t *m = (const uint8_t *)((uintptr_t)slots[at & ring->mask] &
						     ~(uintptr_t)NFMETA_HOW_MASK);

		if (to_write) {
			nfmeta__prefetch_write(m);
			nfmeta__prefetch_write(m + second);
		} else {
			rte_prefetch0(m);
			if (second != 0)
				rte_prefetch0(m + second);
		}
	}
}

/* As many as there is room for.  The counter goes first: nobody sees more received than sent. */
static __rte_always_inline uint16_t
admit(struct upfront *q, struct rte_mbuf *const *pkts, uint16_t n)
{
	uint32_t used = (uint32_t)(q->sent - q->back);
	uint32_t room = used < q->limit ? q->limit - used : 0;
	uint16_t k = n < room ? n : (uint16_t)room;

	k = (uint16_t)mark(q, pkts, k, AT_PACKET);
	q->sent += k;
	put(&q->shared->sent, q->sent);
	if (unlikely(rte_ring_sp_enqueue_bulk(q->down, (void *const *)pkts, k, NULL) != k)) {
		q->sent -= k; /* somebody wrote on the ring who must not */
		put(&q->shared->sent, q->sent);
		unmark(q, pkts, k);
		return 0;
	}
	return k;
}

bool
nfmeta__meta_send(struct nfmeta_link *link, struct upfront *q, struct rte_mbuf *m)
{
	void *tagged = (void *)((uintptr_t)m | NFMETA_META);

	if (q->sent - q->back >= link->ring_size || mark(q, &m, 1, AT_META) != 1)
		return false;
	put(&q->shared->meta_sent, ++q->meta_sent);
	put(&q->shared->sent, ++q->sent);
	if (likely(rte_ring_sp_enqueue(q->down, tagged) == 0))
		return true;
	put(&q->shared->meta_sent, --q->meta_sent); /* somebody wrote on the ring who must not */
	put(&q->shared->sent, --q->sent);
	unmark(q, &m, 1);
	return false;
}

/* Move what the NF returned out of the way, so that it makes room. */
static bool
stash(struct nfmeta_link *link, struct upfront *q)
{
	uint32_t i, n, packets = 0;

	if (q->stash_head == q->stash_tail)
		q->stash_head = q->stash_tail = 0;
	n = rte_ring_sc_dequeue_burst(q->up, (void **)&q->stash[q->stash_tail],
				      link->stash_size - q->stash_tail, NULL);
	for (i = 0; i < n; i++)
		packets += ((uintptr_t)q->stash[q->stash_tail + i] & NFMETA_INJECTED) == 0;
	q->stash_tail += n;
	q->back += packets;
	return packets != 0;
}

/* NFMETA_FULL_WAIT: the rest of a burst that did not fit. */
static __rte_noinline uint16_t
send_wait(struct nfmeta_link *link, struct upfront *q, struct rte_mbuf *const *pkts, uint16_t n)
{
	uint64_t start = rte_get_tsc_cycles();
	uint32_t polls = 0;
	uint16_t k = 0;
	bool late;

	if (q->limit == 0)
		return 0;
	do {
		/* Looked at first: one more try when the time is over, we may have slept. */
		late = rte_get_tsc_cycles() - start >= link->wait_cycles;
		if (stash(link, q)) {
			if (unlikely(q->behind))
				nfmeta__flow_flush(link, q);
			k += admit(q, pkts + k, n - k);
		} else if (__atomic_load_n(&q->shared->state, __ATOMIC_RELAXED) !=
			   NFMETA_QUEUE_TAKEN) {
			break; /* nobody is there to make room */
		} else if (polls++ < SPIN_POLLS) {
			rte_pause();
		} else {
			sched_yield(); /* the NF may want this CPU */
		}
	} while (k < n && !late);
	return k;
}

__rte_hot uint16_t
nfmeta_send_burst(struct nfmeta_link *link, uint16_t queue, struct rte_mbuf *const *pkts,
		  uint16_t n)
{
	struct upfront *q = &link->q[queue];
	uint16_t k;

	if (unlikely(queue >= link->served))
		return 0;
	if (unlikely(q->behind))
		nfmeta__flow_flush(link, q);
	k = admit(q, pkts, n);
	if (likely(k == n))
		return k;
	if (q->stash != NULL)
		k += send_wait(link, q, pkts + k, n - k);
	q->refused += n - k;
	put(&q->shared->refused, q->refused);
	return k;
}

/* Take the meta packets out of a burst that came back; returns what is left of it. */
static __rte_noinline uint32_t
keep_metas(struct nfmeta_link *link, struct upfront *q, struct rte_mbuf **pkts, uint8_t *how,
	   uint32_t n)
{
	struct feed *f = q->feed;
	uint32_t i, k = 0, messages = 0;

	for (i = 0; i < n; i++) {
		if ((how[i] & NFMETA_META) != NFMETA_META) {
			pkts[k] = pkts[i];
			how[k++] = how[i];
		} else if (link->carrier != NFMETA_CARRIER_INBAND) {
			/* What an NF may not say, is taken for a drop. */
			pkts[k] = pkts[i];
			how[k++] = NFMETA_DROP | (how[i] & NFMETA_INJECTED);
		} else if (how[i] & NFMETA_INJECTED) {
			/* There are never more than the NF has blanks. */
			f->meta[f->meta_tail++ & f->meta_mask] = pkts[i];
			messages++;
		} else {
			q->meta_collected++;
			if (f->nspare < SPARE_METAS)
				f->spare[f->nspare++] = pkts[i];
			else
				rte_pktmbuf_free(pkts[i]);
		}
	}
	put(&q->shared->meta_collected, q->meta_collected);
	if (messages != 0) { /* still the NF's blanks until they are read */
		q->unstocked -= messages;
		put(&q->shared->unstocked, q->unstocked);
	}
	return k;
}

void
nfmeta__meta_done(struct upfront *q, struct rte_mbuf *m)
{
	rte_pktmbuf_free(m);
	put(&q->shared->unstocked, ++q->unstocked);
}

#define HOW_RARE 0xf8 /* bits of a set of dispositions: of a meta packet, of what was injected */

__rte_hot uint16_t
nfmeta_collect_burst(struct nfmeta_link *link, uint16_t queue, struct rte_mbuf **pkts, uint8_t *how,
		     uint16_t n)
{
	struct upfront *q = &link->q[queue];
	static const uint8_t at_of_how[NFMETA_HOW_MASK + 1] = {
		AT_PACKET, AT_PACKET, AT_PACKET, AT_META, AT_BLANK, AT_BLANK, AT_BLANK, AT_BLANK,
	};
	uint32_t stashed, injected, old, metas, came, seen, i, k;
	unsigned int left = 0;
	struct map map;

	if (unlikely(queue >= link->served))
		return 0;
	map = q->map;
again:
	stashed = injected = old = metas = seen = 0;
	if (unlikely(q->stash_head < q->stash_tail)) {
		stashed = RTE_MIN(q->stash_tail - q->stash_head, (uint32_t)n);
		memcpy(pkts, &q->stash[q->stash_head], stashed * sizeof(*pkts));
		q->stash_head += stashed;
		for (i = 0; i < stashed; i++) /* it counts as a packet that is back */
			old += ((uintptr_t)pkts[i] & NFMETA_INJECTED) == 0;
	}
	came = stashed +
	       rte_ring_sc_dequeue_burst(q->up, (void **)(pkts + stashed), n - stashed, &left);
	/* Both lines of the mbuf: receiving, classifying and freeing write to them. */
	ahead(q->up, left, n, RTE_CACHE_LINE_SIZE, true);
	for (i = k = 0; i < came; i++) {
		uintptr_t e = (uintptr_t)pkts[i];
		uint64_t place = place_of(&map, (void *)e);
		uint8_t h = e & NFMETA_HOW_MASK;
		uint8_t what = likely(place < map.places) ? map.at[place] : AT_NONE;

		if (unlikely(what != at_of_how[h])) {
			if (what == AT_NONE) {
				q->foreign++;
				continue;
			}
			h = how_mended(what);
		}
		map.at[place] = AT_NONE;
		how[k] = h;
		pkts[k++] = (struct rte_mbuf *)(e & ~(uintptr_t)NFMETA_HOW_MASK);
		seen |= 1U << h;
	}
	if (unlikely((seen & HOW_RARE) != 0))
		for (i = 0; i < k; i++) {
			injected += (how[i] & NFMETA_INJECTED) != 0;
			metas += (how[i] & NFMETA_META) == NFMETA_META;
		}
	q->back += k - injected;
	q->back -= old;
	if (unlikely(k == 0 && came != 0)) /* all foreign; 0 means that there was nothing */
		goto again;
	if (k != 0) {
		q->collected += k - injected;
		put(&q->shared->collected, q->collected);
	}
	if (injected != 0) {
		q->unstocked += injected;
		put(&q->shared->unstocked, q->unstocked);
	}
	if (unlikely(metas != 0)) {
		k = keep_metas(link, q, pkts, how, k);
		if (k == 0)
			goto again;
	}
	if (unlikely(link->blanks - (uint32_t)(q->stocked - q->unstocked) >= q->restock_at))
		restock(link, q);
	return (uint16_t)k;
}

uint32_t
nfmeta_link_in_flight(const struct nfmeta_link *link, uint16_t queue)
{
	const struct upfront *q = &link->q[queue];

	if (unlikely(queue >= link->served))
		return 0;
	return (uint32_t)(q->sent - q->collected - (q->meta_sent - q->meta_collected));
}

static int
not_primary(const struct nfmeta_link *link)
{
	if (link != NULL && link->served != 0)
		return 0;
	return nfmeta__fail(EINVAL, "this is for the handle that nfmeta_link_create() gave");
}

static int
no_queue(const struct nfmeta_link *link, uint32_t queue)
{
	if (queue < link->queues)
		return 0;
	return nfmeta__fail(EINVAL, "link '%s' has queues 0 to %u, there is no queue %u",
			    link->shared->name, link->queues - 1u, queue);
}

int
nfmeta__not_primary(const struct nfmeta_link *link, uint32_t queue)
{
	int rc = not_primary(link);

	return rc != 0 ? rc : no_queue(link, queue);
}

int
nfmeta__not_nf(const struct nfmeta_link *link)
{
	if (link != NULL && link->served == 0)
		return 0;
	return nfmeta__fail(EINVAL, "this is for the handle that nfmeta_link_attach() gave");
}

static int
look_at_peer(const struct upfront *q)
{
	const struct nfmeta_shared_queue *s = q->shared;
	uint32_t state, epoch;
	bool held;

	for (;;) {
		state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
		if (state == NFMETA_QUEUE_FREE)
			return NFMETA_PEER_NONE;
		if (q->lease < 0)
			return NFMETA_PEER_ALIVE; /* a thread of this process */
		epoch = __atomic_load_n(&s->epoch, __ATOMIC_ACQUIRE);
		held = lease_held(q->lease, LEASE_NF);
		/* An NF that left and one that came in between look like one that died. */
		if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == state &&
		    __atomic_load_n(&s->epoch, __ATOMIC_ACQUIRE) == epoch)
			return held ? NFMETA_PEER_ALIVE : NFMETA_PEER_DEAD;
	}
}

int
nfmeta_link_peer(struct nfmeta_link *link, uint16_t queue)
{
	int rc;

	rc = not_primary(link);
	if (rc == 0)
		rc = no_queue(link, queue);
	if (rc != 0)
		return rc;
	__atomic_fetch_add(&link->shared->heartbeat, 1, __ATOMIC_RELAXED);
	rte_spinlock_lock(&link->slow);
	nfmeta__fenced_sweep(link, queue);
	rc = look_at_peer(&link->q[queue]);
	rte_spinlock_unlock(&link->slow);
	return rc;
}

void
nfmeta_link_close(struct nfmeta_link *link)
{
	uint32_t i;

	if (not_primary(link) != 0)
		return;
	for (i = 0; i < link->served; i++)
		link->q[i].limit = 0;
	__atomic_store_n(&link->shared->state, NFMETA_LINK_CLOSING, __ATOMIC_RELEASE);
}

int
nfmeta_link_destroy(struct nfmeta_link *link, uint64_t *orphans)
{
	uint64_t held;
	uint32_t i;
	int rc;

	rc = not_primary(link);
	if (rc != 0)
		return rc;
	/* Holding all leases, nobody can come in while the link goes away. */
	for (i = 0; i < link->served; i++) {
		struct upfront *q = &link->q[i];

		if (!nfmeta__fenced_sweep(link, i))
			break;
		if (q->lease >= 0 ? lease_lock(q->lease, LEASE_NF, F_WRLCK) != 0
				  : __atomic_load_n(&q->shared->state, __ATOMIC_ACQUIRE) !=
					    NFMETA_QUEUE_FREE)
			break;
	}
	if (i < link->served) {
		rc = nfmeta__fail(
			EBUSY,
			"an NF is attached to queue %u of link '%s': nfmeta_link_close(), and "
			"wait until it has left",
			i, link->shared->name);
		while (i-- > 0)
			if (link->q[i].lease >= 0)
				lease_lock(link->q[i].lease, LEASE_NF, F_UNLCK);
		return rc;
	}
	nfmeta_link_close(link);
	held = unmake(link);
	if (orphans != NULL)
		*orphans = held;
	return 0;
}

/* ---- Attach ----------------------------------------------------------------------- */

static bool
primary_lives(const struct nfmeta_link *link)
{
	/* In the primary itself, asking would drop DPDK's own lock. */
	if (rte_eal_process_type() == RTE_PROC_PRIMARY)
		return true;
	/* DPDK opens a file to ask, which a process that gave up its rights cannot. */
	if (link != NULL && link->lease >= 0)
		return lease_held(link->lease, LEASE_PRIMARY);
	return rte_eal_primary_proc_alive(NULL) != 0;
}

static int
check_pool(const struct nfmeta_shared_link *s)
{
	struct rte_mempool *pool;
	const char *ops;

	if (s->pool_name[0] == '\0')
		return 0;
	pool = rte_mempool_lookup(s->pool_name);
	if (pool == NULL)
		return nfmeta__fail(NFMETA_EPOOLOPS,
				    "the primary's pool '%s' is not to be found here",
				    s->pool_name);
	ops = (uint32_t)pool->ops_index < rte_mempool_ops_table.num_ops
		      ? rte_mempool_get_ops(pool->ops_index)->name
		      : "nothing";
	if (strcmp(ops, s->pool_ops) == 0)
		return 0;
	return nfmeta__fail(NFMETA_EPOOLOPS,
			    "ops %d of pool '%s' are '%s' in the primary, '%s' here: load the same "
			    "mempool drivers in the same order on both sides",
			    pool->ops_index, s->pool_name, s->pool_ops, ops);
}

static int
find_ring(struct rte_ring **ring, const char *name, uint32_t capacity)
{
	*ring = rte_ring_lookup(name);
	if (*ring == NULL)
		return nfmeta__fail(
			NFMETA_EFORMAT,
			"the link names a ring '%s', but there is none: it was freed, or "
			"memory was overwritten",
			name);
	if (rte_ring_get_capacity(*ring) < capacity)
		return nfmeta__fail(NFMETA_EFORMAT,
				    "ring '%s' has room for %u, the link needs %u: another program "
				    "uses the name",
				    name, rte_ring_get_capacity(*ring), capacity);
	return 0;
}

/* The struct that serves a queue now. */
static struct nfmeta_shared_queue *
current_queue(const struct nfmeta_link *link, uint32_t queue)
{
	const struct nfmeta_shared_link *s = link->shared;
	struct nfmeta_shared_queue *q = nfmeta__place(link, queue);
	uint32_t moved;

	if (link->served != 0)
		return link->q[queue].shared;
	moved = s->queue_size < QUEUE_SIZE_FLOW ? 0 : __atomic_load_n(&q->moved, __ATOMIC_ACQUIRE);
	if (moved == 0 || moved >= (s->size - s->queue_offset) / s->queue_size)
		return q;
	return nfmeta__place(link, moved);
}

/* Everything but taking the queue. */
static int
look_at(const struct rte_memzone *zone, const char *name, uint32_t queue, struct nfmeta_link *link)
{
	const struct nfmeta_shared_link *s = zone->addr;
	const struct nfmeta_shared_queue *q;
	uint32_t state;
	int rc;

	if (zone->len >= sizeof(*s) && get(&s->magic) == 0)
		return -EAGAIN;
	rc = nfmeta__handshake_check(s, zone->len, name, queue);
	if (rc != 0)
		return rc;
	state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
	if (state == NFMETA_LINK_BUILDING)
		return -EAGAIN;
	if (state == NFMETA_LINK_CLOSING)
		return nfmeta__fail(NFMETA_ECLOSING, "the primary is closing link '%s'", name);
	if (state != NFMETA_LINK_READY)
		return no_handshake("its state is not known");
	rc = check_pool(s);
	if (rc != 0)
		return rc;

	link->shared = zone->addr;
	link->zone = zone;
	link->instance = s->instance;
	link->queues = s->queue_count;
	link->queue = (uint16_t)queue;
	link->field = s->field;
	link->nf.shared = current_queue(link, queue);
	q = link->nf.shared;
	rc = find_ring(&link->nf.down, q->down, s->ring_size);
	if (rc == 0)
		rc = find_ring(&link->nf.up, q->up, s->ring_size + s->blanks);
	if (rc == 0 && s->blanks != 0)
		rc = find_ring(&link->nf.blank, q->blank, s->blanks);
	if (rc == 0 && s->flow_table[0] != '\0')
		rc = nfmeta__table_find(s->flow_table, &link->table);
	if (rc != 0 || s->flow_carrier == 0)
		return rc;
	link->carrier = s->flow_carrier;
	rc = nfmeta__sync_make(link);
	if (rc == 0 && q->flow_down[0] != '\0')
		rc = find_ring(&link->nf.sync->in.ring, q->flow_down, s->flow_ring);
	if (rc == 0 && q->flow_up[0] != '\0')
		rc = find_ring(&link->nf.sync->up, q->flow_up, s->flow_ring);
	return rc;
}

/* -EAGAIN: there is no such link yet. */
static int
attach_once(const char *name, uint32_t queue, struct nfmeta_link *link)
{
	bool leases = leases_in_use(), mine = false;
	const struct rte_memzone *zone;
	char zone_str[NFMETA_NAME_SIZE];
	struct nfmeta_shared_queue *q;
	uint32_t state = NFMETA_QUEUE_FREE, epoch;
	int rc, err = 0;

	if (!primary_lives(NULL))
		return nfmeta__fail(
			NFMETA_EPRIMARYDEAD,
			"the primary under %s is dead, only its files are there: end this "
			"process, start the primary, then start again",
			rte_eal_get_runtime_dir());
	/* The lease first: who holds it can trust that the link stays. */
	if (leases) {
		link->lease = lease_open(name, queue, &mine);
		err = errno;
	}
	zone_name(zone_str, name);
	zone = rte_memzone_lookup(zone_str);
	if (zone == NULL)
		return -EAGAIN;
	rc = look_at(zone, name, queue, link);
	if (rc != 0)
		return rc;
	if (mine && !lease_is_current(link->lease, name, queue))
		return -EAGAIN; /* an NF was cut off just now */
	q = link->nf.shared;
	if (leases && link->lease < 0)
		return nfmeta__fail(
			NFMETA_ENOLINK,
			"link '%s' is there, but its lease file for queue %u in %s cannot "
			"be opened: %s",
			name, queue, rte_eal_get_runtime_dir(), strerror(err));
	if (leases && !mine) /* another NF has it, or the primary, which reclaims */
		state = __atomic_load_n(&q->state, __ATOMIC_ACQUIRE);
	else
		__atomic_compare_exchange_n(&q->state, &state, NFMETA_QUEUE_TAKEN, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	if ((leases && !mine && state != NFMETA_QUEUE_DEAD) ||
	    (!leases && state != NFMETA_QUEUE_FREE))
		return nfmeta__fail(NFMETA_EQUEUETAKEN,
				    "another NF serves queue %u of link '%s' (queues 0 to %u)",
				    queue, name, link->queues - 1u);
	if (state != NFMETA_QUEUE_FREE)
		return nfmeta__fail(
			NFMETA_EDEADNF,
			"an NF died on queue %u of link '%s', and the primary has not taken back "
			"what it had: wait longer, or look after the primary",
			queue, name);
	epoch = __atomic_add_fetch(&q->epoch, 1, __ATOMIC_ACQ_REL);
	if (link->nf.sync != NULL) {
		put(&q->flow_types, 0);
		link->nf.sync->epoch = epoch;
		link->nf.sync->seen = get(&q->flow_seen);
		link->nf.sync->replies = get(&q->flow_replies);
		link->nf.meta_received = get(&q->meta_received);
		link->nf.meta_returned = get(&q->meta_returned);
	}
	link->nf.received = get(&q->received);
	link->nf.returned = get(&q->returned);
	link->nf.blanks = get(&q->blanks);
	link->nf.injected = get(&q->injected);
	return 0;
}

int
nfmeta_link_attach(const char *name, uint16_t queue, uint32_t timeout_ms, struct nfmeta_link **out)
{
	uint64_t end = nfmeta__now_us() + (uint64_t)timeout_ms * 1000, now;
	uint32_t taken = 0;
	struct nfmeta_link *link;
	size_t bytes = RTE_ALIGN(sizeof(*link), RTE_CACHE_LINE_SIZE);
	int rc;

	if (out == NULL)
		return nfmeta__fail(EINVAL, "there is no place to put the link");
	rc = nfmeta__check_name("link", name);
	if (rc != 0)
		return rc;
	if (queue >= NFMETA_QUEUES_MAX)
		return nfmeta__fail(EINVAL, "no link has a queue %u: there are at most %d", queue,
				    NFMETA_QUEUES_MAX);
	if (!eal_is_up())
		return nfmeta__fail(NFMETA_EROLE,
				    "DPDK is not initialised: call rte_eal_init() or "
				    "nfmeta_eal_attach() before you attach to link '%s'",
				    name);
	link = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);
	if (link == NULL)
		return nfmeta__fail(ENOMEM, "no memory: %zu bytes wanted", bytes);
	for (;;) {
		memset(link, 0, bytes);
		link->lease = -1;
		rc = attach_once(name, queue, link);
		if (rc == 0) {
			*out = link;
			return 0;
		}
		if (link->lease >= 0)
			close(link->lease);
		nfmeta__sync_free(link);
		nfmeta__table_drop(link->table);
		now = nfmeta__now_us();
		/* A link that is just being destroyed has its queues taken, too. */
		if (rc == -NFMETA_EQUEUETAKEN && link->lease >= 0 && taken++ < 3)
			usleep(ATTACH_POLL_US);
		else if ((rc == -EAGAIN || rc == -NFMETA_ENOLINK || rc == -NFMETA_EDEADNF) &&
			 now < end)
			usleep((useconds_t)RTE_MIN(end - now, (uint64_t)ATTACH_POLL_US));
		else
			break;
	}
	free(link);
	if (rc == -EAGAIN)
		rc = nfmeta__fail(
			NFMETA_ENOLINK,
			"no link '%s' under %s within %u ms: is it created, and is the name "
			"right?",
			name, rte_eal_get_runtime_dir(), timeout_ms);
	return rc;
}

/* ---- The NF's side -------------------------------------------------------------- */

/* The field's shape as constants, so that the compiler lays out one loop for each. */
static __rte_always_inline void
read_records(const struct nfmeta_field *from, uint8_t placement, uint8_t size,
	     struct rte_mbuf *const *pkts, struct nfmeta_record *recs, uint32_t n)
{
	const bool headroom = placement == NFMETA_PLACE_HEADROOM;
	struct nfmeta_field f = *from;
	uint32_t i;

	f.placement = placement;
	f.size = size;
	for (i = 0; i < n; i++) {
		rte_prefetch0(pkts[i]);
		if (!headroom)
			nfmeta_record_prefetch(&f, pkts[i]);
	}
	/* The headroom is found through the mbuf: one stage later. */
	if (headroom)
		for (i = 0; i < n; i++)
			nfmeta_record_prefetch(&f, pkts[i]);
	for (i = 0; i < n; i++)
		nfmeta__get(&f, pkts[i], &recs[i]);
}

__rte_hot uint16_t
nfmeta_recv_burst(struct nfmeta_link *link, struct rte_mbuf **pkts, struct nfmeta_record *recs,
		  uint16_t n)
{
	struct nf *nf = &link->nf;
	const struct nfmeta_field *f = &link->field;
	unsigned int left = 0;
	uint32_t i, k;

	if (unlikely(nf->down == NULL))
		return 0;
	__atomic_store_n(&nf->shared->heartbeat,
			 __atomic_load_n(&nf->shared->heartbeat, __ATOMIC_RELAXED) + 1,
			 __ATOMIC_RELAXED);
	if (likely(nf->sync == NULL)) {
		k = rte_ring_sc_dequeue_burst(nf->down, (void **)pkts, n, &left);
	} else if (link->carrier == NFMETA_CARRIER_INBAND) {
		k = nfmeta__flow_recv(nf, pkts, n, &left);
	} else {
		n = nfmeta__flow_gate(nf, n);
		k = rte_ring_sc_dequeue_burst(nf->down, (void **)pkts, n, &left);
	}
	if (k == 0)
		return 0;
	/* The record's line too: who wants no copies will peek. */
	ahead(nf->down, left, n, f->placement != NFMETA_PLACE_HEADROOM ? f->offset : 0, false);
	nf->received += k;
	put(&nf->shared->received, nf->received);
	if (recs == NULL)
		for (i = 0; i < k; i++)
			rte_prefetch0(pkts[i]);
	else if (f->placement == NFMETA_PLACE_HEADROOM)
		read_records(f, NFMETA_PLACE_HEADROOM, f->size, pkts, recs, k);
	else if (f->size == NFMETA_RECORD_CORE)
		read_records(f, NFMETA_PLACE_DYNFIELD, NFMETA_RECORD_CORE, pkts, recs, k);
	else
		read_records(f, NFMETA_PLACE_DYNFIELD, f->size, pkts, recs, k);
	return (uint16_t)k;
}

/* The first of n that are held: packets or blanks, as their INJECTED bit says. */
static __rte_noinline uint32_t
held_of(const struct nf *nf, void *const *tagged, uint32_t n, uint32_t *injected)
{
	uint64_t packets = nf->received - nf->returned, blanks = nf->blanks - nf->injected;
	uint32_t i, b = 0;

	for (i = 0; i < n; i++) {
		if ((uintptr_t)tagged[i] & NFMETA_INJECTED) {
			if (b == blanks)
				break;
			b++;
		} else if (i - b == packets) {
			break;
		}
	}
	*injected = b;
	return i;
}

static __rte_always_inline uint32_t
give_back(struct nf *nf, void *const *tagged, uint32_t n, uint32_t injected)
{
	if (unlikely(n - injected > nf->received - nf->returned ||
		     injected > nf->blanks - nf->injected))
		n = held_of(nf, tagged, n, &injected);
	/* Before the packets: nobody sees more collected than returned. */
	nf->returned += n - injected;
	put(&nf->shared->returned, nf->returned);
	if (injected != 0) {
		nf->injected += injected;
		put(&nf->shared->injected, nf->injected);
	}
	if (unlikely(rte_ring_sp_enqueue_bulk(nf->up, tagged, n, NULL) != n)) {
		nf->returned -= n - injected; /* somebody wrote on the ring who must not */
		nf->injected -= injected;
		put(&nf->shared->returned, nf->returned);
		put(&nf->shared->injected, nf->injected);
		return 0;
	}
	return n;
}

__rte_hot uint16_t
nfmeta_return_burst(struct nfmeta_link *link, struct rte_mbuf *const *pkts, const uint8_t *how,
		    uint16_t n)
{
	struct nf *nf = &link->nf;
	void *tagged[RETURN_CHUNK];
	uint32_t done = 0, i, k, part, injected;

	if (unlikely(nf->up == NULL))
		return 0;
	if (how == NULL)
		return (uint16_t)give_back(nf, (void *const *)pkts, n, 0);
	while (done < n) {
		part = RTE_MIN(n - done, (uint32_t)RETURN_CHUNK);
		for (i = 0, injected = 0; i < part; i++) {
			uint8_t h = how[done + i] & NFMETA_HOW_MASK;

			if (unlikely((h & NFMETA_META) == NFMETA_META))
				h ^= NFMETA_META ^ NFMETA_DROP; /* not for the caller to say */
			tagged[i] = (void *)((uintptr_t)pkts[done + i] | h);
			injected += h >> 2;
		}
		k = give_back(nf, tagged, part, injected);
		done += k;
		if (unlikely(k != part))
			break;
	}
	return (uint16_t)done;
}

void
nfmeta__meta_return(struct nf *nf, struct rte_mbuf *m)
{
	void *tagged = (void *)((uintptr_t)m | NFMETA_META);

	put(&nf->shared->meta_received, ++nf->meta_received);
	put(&nf->shared->received, ++nf->received);
	put(&nf->shared->meta_returned, ++nf->meta_returned);
	put(&nf->shared->returned, ++nf->returned);
	rte_ring_sp_enqueue(nf->up, tagged); /* has room: what was admitted can come back */
}

void
nfmeta__meta_reply(struct nf *nf, struct rte_mbuf *m)
{
	void *tagged = (void *)((uintptr_t)m | NFMETA_META | NFMETA_INJECTED);

	put(&nf->shared->injected, ++nf->injected);
	rte_ring_sp_enqueue(nf->up, tagged);
}

uint16_t
nfmeta_blank_burst(struct nfmeta_link *link, struct rte_mbuf **pkts, uint16_t n)
{
	struct nf *nf = &link->nf;
	uint32_t k;

	if (nf->blank == NULL)
		return 0;
	k = rte_ring_sc_dequeue_burst(nf->blank, (void **)pkts, n, NULL);
	nf->blanks += k;
	put(&nf->shared->blanks, nf->blanks);
	return (uint16_t)k;
}

/* The NF's own struct is left behind; it is read while the NF lives, and not used again. */
static bool
fenced(const struct nfmeta_link *link)
{
	return link->shared->queue_size >= QUEUE_SIZE_FLOW &&
	       __atomic_load_n(&link->nf.shared->moved, __ATOMIC_ACQUIRE) != 0;
}

int
nfmeta_link_check(struct nfmeta_link *link)
{
	struct nfmeta_shared_link *s;
	int rc = nfmeta__not_nf(link);

	if (rc != 0)
		return rc;
	s = link->shared;
	__atomic_fetch_add(&link->nf.shared->heartbeat, 1, __ATOMIC_RELAXED);
	if (__atomic_load_n(&link->gone, __ATOMIC_RELAXED) || !primary_lives(link)) {
		__atomic_store_n(&link->gone, 1, __ATOMIC_RELAXED);
		return nfmeta__fail(
			NFMETA_EPRIMARYGONE,
			"the primary of link '%s' died: end this process and start it anew "
			"when the primary is back",
			s->name);
	}
	if (fenced(link))
		return nfmeta__fail(
			NFMETA_EFENCED,
			"this NF stood still and was cut off from link '%s': leave its packets "
			"alone, end this process and start it anew",
			s->name);
	if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) != NFMETA_LINK_READY ||
	    s->instance != link->instance)
		return nfmeta__fail(
			NFMETA_ECLOSING,
			"the primary is closing link '%s': return what you hold and detach",
			s->name);
	return 0;
}

int
nfmeta_link_detach(struct nfmeta_link *link)
{
	int rc = nfmeta__not_nf(link);
	uint64_t packets;
	struct nf *nf;

	if (rc != 0)
		return rc;
	nf = &link->nf;
	packets = nf->received - nf->returned;
	if ((packets != 0 || nf->blanks != nf->injected) && !link->gone && primary_lives(link) &&
	    !fenced(link))
		return nfmeta__fail(EBUSY,
				    "you still hold %" PRIu64 " packets and %" PRIu64
				    " blanks of link '%s': return them first",
				    packets, nf->blanks - nf->injected, link->shared->name);
	if (!link->gone)
		nfmeta__sync_leave(link);
	__atomic_store_n(&nf->shared->state, NFMETA_QUEUE_FREE, __ATOMIC_RELEASE);
	if (link->lease >= 0) {
		lease_lock(link->lease, LEASE_NF, F_UNLCK); /* children may have copies */
		close(link->lease);
	}
	nfmeta__sync_free(link);
	nfmeta__table_drop(link->table);
	free(link);
	return 0;
}

/* ---- Both ------------------------------------------------------------------------ */

const struct nfmeta_shared_queue *
nfmeta__current_queue(const struct nfmeta_link *link, uint32_t queue)
{
	if (link->served == 0 && queue == link->queue)
		return link->nf.shared;
	return current_queue(link, queue);
}

const struct nfmeta_field *
nfmeta_link_field(const struct nfmeta_link *link)
{
	return &link->field;
}

const struct nfmeta_table *
nfmeta_link_table(const struct nfmeta_link *link)
{
	return link->table;
}

const struct nfmeta_shared_link *
nfmeta_link_shared(const struct nfmeta_link *link)
{
	return link->shared;
}

/* Meta packets travel and are counted as packets, but are none. */
static void
without_metas(struct nfmeta_link_stats *now, const struct nfmeta_shared_queue *s)
{
	uint64_t collected = get(&s->meta_collected), returned = get(&s->meta_returned),
		 received = get(&s->meta_received), sent = get(&s->meta_sent);

	/* Counted at other moments than the packets: while both sides run, one may be ahead. */
	now->metas = sent - RTE_MIN(collected, sent);
	now->sent -= RTE_MIN(sent, now->sent);
	now->received = RTE_MIN(now->received - RTE_MIN(received, now->received), now->sent);
	now->returned = RTE_MIN(now->returned - RTE_MIN(returned, now->returned), now->received);
	now->collected =
		RTE_MIN(now->collected - RTE_MIN(collected, now->collected), now->returned);
}

int
nfmeta_link_stats(const struct nfmeta_link *link, uint16_t queue, struct nfmeta_link_stats *stats)
{
	const struct nfmeta_shared_queue *s;
	struct nfmeta_link_stats now = {.sz = sizeof(now)};
	uint64_t unstocked;
	int rc;

	if (link == NULL || stats == NULL || stats->sz < 2 * sizeof(uint32_t))
		return nfmeta__fail(EINVAL, "there is no link, or stats.sz is not set");
	rc = no_queue(link, queue);
	if (rc != 0)
		return rc;
	/* Against the way of the packets, so that no difference is negative. */
	s = nfmeta__current_queue(link, queue);
	now.epoch = __atomic_load_n(&s->epoch, __ATOMIC_ACQUIRE);
	now.collected = get(&s->collected);
	unstocked = get(&s->unstocked);
	now.returned = get(&s->returned);
	now.injected = get(&s->injected);
	now.received = get(&s->received);
	now.blanks = get(&s->blanks);
	now.sent = get(&s->sent);
	now.refused = get(&s->refused);
	if (link->served != 0) {
		now.reclaimed = link->q[queue].reclaimed;
		now.orphans = link->q[queue].orphans;
		now.foreign = link->q[queue].foreign;
		now.fenced = link->q[queue].cut_off;
		now.heartbeat = __atomic_load_n(&s->heartbeat, __ATOMIC_RELAXED);
	} else {
		now.heartbeat = __atomic_load_n(&link->shared->heartbeat, __ATOMIC_RELAXED);
	}
	if (link->carrier == NFMETA_CARRIER_INBAND)
		without_metas(&now, s);
	now.down = now.sent - now.received;
	now.held = now.received - now.returned;
	now.up = now.returned - now.collected + now.injected - unstocked;
	now.sz = RTE_MIN(stats->sz, (uint32_t)sizeof(now));
	memcpy(stats, &now, now.sz);
	return 0;
}
