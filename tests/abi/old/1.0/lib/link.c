/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN
#endif
#elif defined(__SANITIZE_THREAD__)
#define TSAN
#pragma GCC diagnostic ignored "-Wtsan"
#endif
#ifdef TSAN
/* DPDK's other ring code orders plain accesses by barriers, which it cannot see. */
#define RTE_USE_C11_MEM_MODEL
#endif

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

#include "internal.h"

#define FEATURES_KNOWN UINT64_C(0)

#define DEFAULT_RING_SIZE 1024
#define DEFAULT_WAIT_US 1000
#define BLANKS_MAX 1024
#define STOCK_BULK 32	/* blanks put on the ring at a time */
#define RETURN_CHUNK 64 /* packets tagged at a time */
#define ATTACH_POLL_US 2000
#define SPIN_POLLS 256 /* of a waiting sender, before it lets others run */

/* Bytes of a lease file; who holds the lock on one is there. */
#define LEASE_NF 0
#define LEASE_PRIMARY 1

/* The primary's side of a queue.  Counters are what the shared ones mirror. */
struct upfront {
	struct rte_ring *down;
	struct rte_ring *up;
	struct rte_ring *blank;
	struct nfmeta_shared_queue *shared;
	uint64_t sent;
	uint64_t back;	     /* of the sent: out of the up ring; collected or in the stash */
	uint32_t limit;	     /* packets admitted; 0 when closed */
	uint32_t restock_at; /* missing blanks that are worth an allocation */
	uint64_t collected;
	uint64_t stocked;
	uint64_t unstocked;
	uint64_t refused;
	struct rte_mbuf **stash; /* NFMETA_FULL_WAIT: taken from the up ring while waiting */
	uint32_t stash_head;
	uint32_t stash_tail;
	int lease;
} __rte_cache_aligned;

/* The NF's side of its queue. */
struct nf {
	struct rte_ring *down;
	struct rte_ring *up;
	struct rte_ring *blank;
	struct nfmeta_shared_queue *shared;
	uint64_t received;
	uint64_t returned;
	uint64_t blanks;
	uint64_t injected;
} __rte_cache_aligned;

struct nfmeta_link {
	struct nf nf; /* all 0 in the primary's handle */
	struct nfmeta_field field;
	struct nfmeta_shared_link *shared;
	uint64_t wait_cycles;
	struct rte_mempool *pool;
	uint32_t blanks;
	uint32_t stash_size;
	uint16_t served; /* queues in q[]: those of the link, or 0 in an NF's handle */
	uint16_t queues; /* of the link */
	uint8_t gone;	 /* NF: the primary was seen dead */
	int lease;	 /* NF */
	uint32_t instance;
	const struct rte_memzone *zone;
	struct upfront q[];
};

static inline void
put(uint64_t *counter, uint64_t value)
{
	__atomic_store_n(counter, value, __ATOMIC_RELEASE);
}

static inline uint64_t
get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

static struct nfmeta_shared_queue *
shared_queue(const struct nfmeta_link *link, uint32_t queue)
{
	const struct nfmeta_shared_link *s = link->shared;

	return (void *)((uint8_t *)link->shared + s->queue_offset + queue * s->queue_size);
}

/* ---- Names --------------------------------------------------------------- */

static int
check_name(const char *name)
{
	size_t i;

	if (name == NULL || name[0] == '\0')
		return nfmeta__fail(EINVAL, "a link needs a name: 1 to %d characters",
				    NFMETA_LINK_NAME_MAX);
	for (i = 0; name[i] != '\0'; i++) {
		char c = name[i];

		if (i == NFMETA_LINK_NAME_MAX)
			return nfmeta__fail(EINVAL, "no link can be called '%.40s': longer than %d",
					    name, NFMETA_LINK_NAME_MAX);
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-' || c == '.'))
			return nfmeta__fail(
				EINVAL,
				"no link can be called '%.40s': character %zu is 0x%02x; "
				"letters, digits, '_', '-' and '.' are allowed",
				name, i + 1, (unsigned char)c);
	}
	return 0;
}

static void
zone_name(char out[NFMETA_NAME_SIZE], const char *name)
{
	snprintf(out, NFMETA_NAME_SIZE, "nfmeta.%s", name);
}

static void
ring_name(char out[NFMETA_NAME_SIZE], const char *name, char kind, uint32_t queue)
{
	snprintf(out, NFMETA_NAME_SIZE, "nfm.%s.%c%u", name, kind, queue);
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
static int
lease_create(const char *name, uint32_t queue)
{
	char path[PATH_MAX];
	int fd, rc;

	lease_path(path, name, queue);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && lease_lock(fd, LEASE_PRIMARY, F_WRLCK) == 0)
		return fd;
	rc = nfmeta__fail(errno, "cannot make lease file %s: %s", path, strerror(errno));
	if (fd >= 0) {
		unlink(path);
		close(fd);
	}
	return rc;
}

/* Open the lease and try to take it; a file that was replaced meanwhile is as good as none. */
static int
lease_open(const char *name, uint32_t queue, bool *mine)
{
	char path[PATH_MAX];
	struct stat have, now;
	int fd;

	*mine = false;
	lease_path(path, name, queue);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	*mine = lease_lock(fd, LEASE_NF, F_WRLCK) == 0;
	if (fstat(fd, &have) == 0 && stat(path, &now) == 0 && have.st_ino == now.st_ino &&
	    have.st_dev == now.st_dev)
		return fd;
	close(fd);
	*mine = false;
	return -1;
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
	    s->queue_size < sizeof(struct nfmeta_shared_queue) || s->queue_size % 64 != 0 ||
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
make_ring(struct rte_ring **ring, char out[NFMETA_NAME_SIZE], const char *name, char kind,
	  uint32_t queue, uint32_t capacity, size_t wanted)
{
	ring_name(out, name, kind, queue);
	*ring = rte_ring_create(out, capacity, SOCKET_ID_ANY,
				RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	if (*ring != NULL)
		return 0;
	if (rte_errno == EEXIST)
		return nfmeta__fail(EEXIST, "a ring '%s' exists already: choose another link name",
				    out);
	return nfmeta__fail(
		ENOMEM,
		"no memory for ring '%s' (%zu bytes; the whole link takes %zu): give the "
		"primary more hugepage memory",
		out, ring_bytes(capacity), wanted);
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
	q->stocked += missing;
	put(&q->shared->stocked, q->stocked);
	if (unlikely(rte_ring_sp_enqueue_bulk(q->blank, (void **)fresh, missing, NULL) == 0)) {
		q->stocked -= missing;
		put(&q->shared->stocked, q->stocked);
		rte_pktmbuf_free_bulk(fresh, missing);
		return false;
	}
	return true;
}

static int
make_queue(struct nfmeta_link *link, uint32_t queue, const struct nfmeta_link_opts *o,
	   size_t wanted, bool leases)
{
	struct upfront *q = &link->q[queue];
	struct nfmeta_shared_queue *s = shared_queue(link, queue);
	const char *name = link->shared->name;
	int rc;

	q->shared = s;
	q->limit = o->ring_size;
	q->restock_at = UINT32_MAX;
	rc = make_ring(&q->down, s->down, name, 'd', queue, o->ring_size, wanted);
	if (rc == 0)
		rc = make_ring(&q->up, s->up, name, 'u', queue, o->ring_size + o->blanks, wanted);
	if (rc == 0 && o->blanks != 0)
		rc = make_ring(&q->blank, s->blank, name, 'b', queue, o->blanks, wanted);
	if (rc != 0)
		return rc;
	if (o->when_full == NFMETA_FULL_WAIT) {
		q->stash = calloc(link->stash_size, sizeof(*q->stash));
		if (q->stash == NULL)
			return nfmeta__fail(ENOMEM, "no memory: %zu bytes wanted",
					    link->stash_size * sizeof(*q->stash));
	}
	if (leases) {
		q->lease = lease_create(name, queue);
		if (q->lease < 0)
			return q->lease;
	}
	if (o->blanks != 0) {
		q->restock_at = RTE_MIN(o->blanks, (uint32_t)STOCK_BULK);
		while (restock(link, q))
			;
	}
	return 0;
}

static void
free_ring(struct rte_ring *ring, uint64_t *packets, uint64_t *injected)
{
	struct rte_mbuf *m[RETURN_CHUNK];
	unsigned int i, n;

	if (ring == NULL)
		return;
	while ((n = rte_ring_sc_dequeue_burst(ring, (void **)m, RTE_DIM(m), NULL)) != 0) {
		for (i = 0; i < n; i++) {
			uintptr_t e = (uintptr_t)m[i];

			*(e & NFMETA_INJECTED ? injected : packets) += 1;
			m[i] = (struct rte_mbuf *)(e & ~(uintptr_t)NFMETA_HOW_MASK);
		}
		rte_pktmbuf_free_bulk(m, n);
	}
	rte_ring_free(ring);
}

/* Everything that a link is, as far as it was made; returns what is missing from it. */
static uint64_t
unmake(struct nfmeta_link *link)
{
	uint64_t lost = 0;
	char path[PATH_MAX];
	uint32_t i;

	for (i = 0; i < link->served; i++) {
		struct upfront *q = &link->q[i];
		uint64_t packets = 0, blanks = 0;

		free_ring(q->down, &packets, &packets);
		free_ring(q->up, &packets, &blanks);
		free_ring(q->blank, &blanks, &blanks);
		for (; q->stash_head < q->stash_tail; q->stash_head++) {
			uintptr_t e = (uintptr_t)q->stash[q->stash_head];

			*(e & NFMETA_INJECTED ? &blanks : &packets) += 1;
			rte_pktmbuf_free((struct rte_mbuf *)(e & ~(uintptr_t)NFMETA_HOW_MASK));
		}
		free(q->stash);
		lost += q->sent - q->collected - packets;
		lost += q->stocked - q->unstocked - blanks;
		if (q->lease >= 0) {
			lease_path(path, link->shared->name, i);
			unlink(path);
			close(q->lease);
		}
	}
	if (link->zone != NULL) {
		__atomic_store_n(&link->shared->magic, 0, __ATOMIC_RELEASE);
		rte_memzone_free(link->zone);
	}
	free(link);
	return lost;
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
	if (o->reserved != 0)
		return nfmeta__fail(EINVAL, "a reserved byte of nfmeta_link_opts is %u, not 0",
				    o->reserved);
	if (o->blanks > BLANKS_MAX)
		return nfmeta__fail(EINVAL, "blanks is %u: at most %d are allowed", o->blanks,
				    BLANKS_MAX);
	if (o->blanks != 0 && o->pool == NULL)
		return nfmeta__fail(EINVAL, "blanks is %u but there is no pool to take them from",
				    o->blanks);
	return 0;
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
	size_t len, wanted, bytes;
	uint32_t i;
	bool leases;
	int rc;

	if (out == NULL)
		return nfmeta__fail(EINVAL, "there is no place to put the link");
	rc = check_name(name);
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

	len = sizeof(*s) + o.queues * sizeof(struct nfmeta_shared_queue);
	wanted = len + o.queues * (ring_bytes(o.ring_size) + ring_bytes(o.ring_size + o.blanks) +
				   (o.blanks ? ring_bytes(o.blanks) : 0));
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
					    name, wanted);
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
	snprintf(s->name, sizeof(s->name), "%s", name);
	if (o.pool != NULL) {
		snprintf(s->pool_name, sizeof(s->pool_name), "%s", o.pool->name);
		snprintf(s->pool_ops, sizeof(s->pool_ops), "%s",
			 rte_mempool_get_ops(o.pool->ops_index)->name);
	}

	leases = leases_in_use();
	for (i = 0; i < o.queues; i++) {
		link->served = (uint16_t)(i + 1);
		rc = make_queue(link, i, &o, wanted, leases);
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
	uint32_t at = ring->cons.head, i;

	for (i = 0; i < n && i < left; i++, at++) {
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

	q->sent += k;
	put(&q->shared->sent, q->sent);
	if (unlikely(rte_ring_sp_enqueue_bulk(q->down, (void *const *)pkts, k, NULL) != k)) {
		q->sent -= k; /* somebody wrote on the ring who must not */
		put(&q->shared->sent, q->sent);
		return 0;
	}
	return k;
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
		if (stash(link, q))
			k += admit(q, pkts + k, n - k);
		else if (__atomic_load_n(&q->shared->state, __ATOMIC_RELAXED) == NFMETA_QUEUE_FREE)
			break; /* nobody is there to make room */
		else if (polls++ < SPIN_POLLS)
			rte_pause();
		else
			sched_yield(); /* the NF may want this CPU */
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
	k = admit(q, pkts, n);
	if (likely(k == n))
		return k;
	if (q->stash != NULL)
		k += send_wait(link, q, pkts + k, n - k);
	q->refused += n - k;
	put(&q->shared->refused, q->refused);
	return k;
}

__rte_hot uint16_t
nfmeta_collect_burst(struct nfmeta_link *link, uint16_t queue, struct rte_mbuf **pkts, uint8_t *how,
		     uint16_t n)
{
	/* What an NF may not say, is taken for a drop. */
	static const uint8_t known[NFMETA_HOW_MASK + 1] = {
		NFMETA_FORWARD,
		NFMETA_DROP,
		NFMETA_BACKWARD,
		NFMETA_DROP,
		NFMETA_INJECTED | NFMETA_FORWARD,
		NFMETA_INJECTED | NFMETA_DROP,
		NFMETA_INJECTED | NFMETA_BACKWARD,
		NFMETA_INJECTED | NFMETA_DROP,
	};
	struct upfront *q = &link->q[queue];
	uint32_t stashed = 0, injected = 0, old = 0, i, k;
	unsigned int left = 0;

	if (unlikely(queue >= link->served))
		return 0;
	if (unlikely(q->stash_head < q->stash_tail)) {
		stashed = RTE_MIN(q->stash_tail - q->stash_head, (uint32_t)n);
		memcpy(pkts, &q->stash[q->stash_head], stashed * sizeof(*pkts));
		q->stash_head += stashed;
	}
	k = stashed +
	    rte_ring_sc_dequeue_burst(q->up, (void **)(pkts + stashed), n - stashed, &left);
	/* Both lines of the mbuf: receiving, classifying and freeing write to them. */
	ahead(q->up, left, n, RTE_CACHE_LINE_SIZE, true);
	for (i = 0; i < k; i++) {
		uintptr_t e = (uintptr_t)pkts[i];

		how[i] = known[e & NFMETA_HOW_MASK];
		pkts[i] = (struct rte_mbuf *)(e & ~(uintptr_t)NFMETA_HOW_MASK);
		injected += how[i] >> 2;
		if (i < stashed)
			old += how[i] >> 2 == 0;
	}
	if (k != 0) {
		q->collected += k - injected;
		q->back += k - injected - old;
		put(&q->shared->collected, q->collected);
	}
	if (injected != 0) {
		q->unstocked += injected;
		put(&q->shared->unstocked, q->unstocked);
	}
	if (unlikely(link->blanks - (uint32_t)(q->stocked - q->unstocked) >= q->restock_at))
		restock(link, q);
	return (uint16_t)k;
}

uint32_t
nfmeta_link_in_flight(const struct nfmeta_link *link, uint16_t queue)
{
	const struct upfront *q = &link->q[queue];

	return unlikely(queue >= link->served) ? 0 : (uint32_t)(q->sent - q->collected);
}

static int
not_primary(const struct nfmeta_link *link)
{
	if (link != NULL && link->served != 0)
		return 0;
	return nfmeta__fail(EINVAL, "this is for the handle that nfmeta_link_create() gave");
}

static int
not_nf(const struct nfmeta_link *link)
{
	if (link != NULL && link->served == 0)
		return 0;
	return nfmeta__fail(EINVAL, "this is for the handle that nfmeta_link_attach() gave");
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
nfmeta_link_peer(struct nfmeta_link *link, uint16_t queue)
{
	struct nfmeta_shared_queue *s;
	uint32_t state, epoch;
	bool held;
	int rc;

	rc = not_primary(link);
	if (rc == 0)
		rc = no_queue(link, queue);
	if (rc != 0)
		return rc;
	__atomic_fetch_add(&link->shared->heartbeat, 1, __ATOMIC_RELAXED);
	s = link->q[queue].shared;
	for (;;) {
		state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
		if (state == NFMETA_QUEUE_FREE)
			return NFMETA_PEER_NONE;
		if (link->q[queue].lease < 0)
			return NFMETA_PEER_ALIVE; /* a thread of this process */
		epoch = __atomic_load_n(&s->epoch, __ATOMIC_ACQUIRE);
		held = lease_held(link->q[queue].lease, LEASE_NF);
		/* An NF that left and one that came in between look like one that died. */
		if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == state &&
		    __atomic_load_n(&s->epoch, __ATOMIC_ACQUIRE) == epoch)
			return held ? NFMETA_PEER_ALIVE : NFMETA_PEER_DEAD;
	}
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
nfmeta_link_destroy(struct nfmeta_link *link, uint64_t *lost)
{
	uint64_t missing;
	uint32_t i;
	int rc;

	rc = not_primary(link);
	if (rc != 0)
		return rc;
	/* Holding all leases, nobody can come in while the link goes away. */
	for (i = 0; i < link->served; i++) {
		struct upfront *q = &link->q[i];

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
	missing = unmake(link);
	if (lost != NULL)
		*lost = missing;
	return 0;
}

/* ---- Attach ----------------------------------------------------------------------- */

static bool
primary_lives(const struct nfmeta_link *link)
{
	/* In the primary itself, asking would drop DPDK's own lock. */
	if (rte_eal_process_type() == RTE_PROC_PRIMARY)
		return true;
	if (link != NULL && link->lease >= 0 && !lease_held(link->lease, LEASE_PRIMARY))
		return false;
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
	link->field = s->field;
	link->nf.shared = shared_queue(link, queue);
	q = link->nf.shared;
	rc = find_ring(&link->nf.down, q->down, s->ring_size);
	if (rc == 0)
		rc = find_ring(&link->nf.up, q->up, s->ring_size + s->blanks);
	if (rc == 0 && s->blanks != 0)
		rc = find_ring(&link->nf.blank, q->blank, s->blanks);
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
	uint32_t state = NFMETA_QUEUE_FREE;
	int rc;

	if (!primary_lives(NULL))
		return nfmeta__fail(
			NFMETA_EPRIMARYDEAD,
			"the primary under %s is dead, only its files are there: end this "
			"process, start the primary, then start again",
			rte_eal_get_runtime_dir());
	/* The lease first: who holds it can trust that the link stays. */
	if (leases)
		link->lease = lease_open(name, queue, &mine);
	zone_name(zone_str, name);
	zone = rte_memzone_lookup(zone_str);
	if (zone == NULL)
		return -EAGAIN;
	rc = look_at(zone, name, queue, link);
	if (rc != 0)
		return rc;
	q = link->nf.shared;
	if (leases && link->lease < 0)
		return nfmeta__fail(NFMETA_ENOLINK,
				    "link '%s' is there, but not its lease file for queue %u in %s",
				    name, queue, rte_eal_get_runtime_dir());
	if ((leases && !mine) ||
	    (!__atomic_compare_exchange_n(&q->state, &state, NFMETA_QUEUE_TAKEN, false,
					  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
	     !leases))
		return nfmeta__fail(NFMETA_EQUEUETAKEN,
				    "another NF serves queue %u of link '%s' (queues 0 to %u)",
				    queue, name, link->queues - 1u);
	if (state != NFMETA_QUEUE_FREE)
		return nfmeta__fail(
			NFMETA_EDEADNF,
			"an NF died on queue %u of link '%s': the primary has to destroy "
			"the link and make it anew",
			queue, name);
	__atomic_fetch_add(&q->epoch, 1, __ATOMIC_ACQ_REL);
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
	rc = check_name(name);
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
		now = nfmeta__now_us();
		/* A link that is just being destroyed has its queues taken, too. */
		if (rc == -NFMETA_EQUEUETAKEN && link->lease >= 0 && taken++ < 3)
			usleep(ATTACH_POLL_US);
		else if ((rc == -EAGAIN || rc == -NFMETA_ENOLINK) && now < end)
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
	k = rte_ring_sc_dequeue_burst(nf->down, (void **)pkts, n, &left);
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

int
nfmeta_link_check(struct nfmeta_link *link)
{
	struct nfmeta_shared_link *s;
	int rc = not_nf(link);

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
	int rc = not_nf(link);
	struct nf *nf;

	if (rc != 0)
		return rc;
	nf = &link->nf;
	if ((nf->received != nf->returned || nf->blanks != nf->injected) && !link->gone &&
	    primary_lives(link))
		return nfmeta__fail(EBUSY,
				    "you still hold %" PRIu64 " packets and %" PRIu64
				    " blanks of link '%s': return them first",
				    nf->received - nf->returned, nf->blanks - nf->injected,
				    link->shared->name);
	__atomic_store_n(&nf->shared->state, NFMETA_QUEUE_FREE, __ATOMIC_RELEASE);
	if (link->lease >= 0) {
		lease_lock(link->lease, LEASE_NF, F_UNLCK); /* children may have copies */
		close(link->lease);
	}
	free(link);
	return 0;
}

/* ---- Both ------------------------------------------------------------------------ */

const struct nfmeta_field *
nfmeta_link_field(const struct nfmeta_link *link)
{
	return &link->field;
}

const struct nfmeta_shared_link *
nfmeta_link_shared(const struct nfmeta_link *link)
{
	return link->shared;
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
	s = shared_queue(link, queue);
	now.epoch = __atomic_load_n(&s->epoch, __ATOMIC_ACQUIRE);
	now.collected = get(&s->collected);
	unstocked = get(&s->unstocked);
	now.returned = get(&s->returned);
	now.injected = get(&s->injected);
	now.received = get(&s->received);
	now.blanks = get(&s->blanks);
	now.sent = get(&s->sent);
	now.refused = get(&s->refused);
	now.down = now.sent - now.received;
	now.held = now.received - now.returned;
	now.up = now.returned - now.collected + now.injected - unstocked;
	now.sz = RTE_MIN(stats->sz, (uint32_t)sizeof(now));
	memcpy(stats, &now, now.sz);
	return 0;
}
