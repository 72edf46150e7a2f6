/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "nfmeta-suricata.h"

#include "../common/idle.h"

#define TICK_MS 100

static bool primary_gone;
static uint16_t ended; /* workers */

/* ---- back to the upfront NF --------------------------------------------------- */

static void
flush(struct worker *w)
{
	nfmeta_return_burst(w->link, w->back, w->how, w->backs);
	w->backs = 0;
}

void
capture_give_back(struct worker *w, struct rte_mbuf *m, uint8_t how)
{
	if (unlikely(w->backs == BURST * 2))
		flush(w);
	w->back[w->backs] = m;
	w->how[w->backs++] = how;
	if ((how & NFMETA_INJECTED) == 0) {
		w->c.dropped += how == NFMETA_DROP;
		w->c.forwarded += how != NFMETA_DROP;
	}
}

/* Suricata is done with a packet; it holds no lock, and p->flow is gone. */
static void
release(Packet *p)
{
	struct in_hand *h = in_hand(p);
	struct worker *w = h->w;
	bool drop = w->ips && PacketCheckAction(p, ACTION_DROP);

	if (unlikely(PacketCheckAction(p, ACTION_REJECT_ANY)))
		reject_packet(w, p, h->m);
	if (likely((h->flags & NFMETA_FLOW_KNOWN) != 0))
		flows_packet(w, p, h);
	capture_give_back(w, h->m, drop ? NFMETA_DROP : NFMETA_FORWARD);
	PacketFreeOrRelease(p);
}

/* ---- the loop -------------------------------------------------------------------- */

static bool
burst(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	const struct seen *seen[BURST];
	Packet *p;
	uint16_t i;

	w->now = TimeGet();
	for (i = 0; i < n; i++)
		nfmeta_record_prefetch(&w->field, pkts[i]);
	flows_fetch_seen(w, pkts, seen, n);
	for (i = 0; i < n; i++) {
		if (i + 1 < n) {
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + 1], const void *));
			flows_fetch(seen[i + 1]);
		}
		p = packet_make(w, pkts[i]);
		if (unlikely(p == NULL)) {
			capture_give_back(w, pkts[i], NFMETA_FORWARD);
			continue;
		}
		p->ReleasePacket = release;
		/* What fails has been released by Suricata all the same. */
		if (unlikely(TmThreadsSlotProcessPkt(w->tv, w->slot, p) != TM_ECODE_OK)) {
			while (++i < n)
				capture_give_back(w, pkts[i], NFMETA_FORWARD);
			flush(w);
			return false;
		}
		if (unlikely(opts.compare != 0) && --w->chunks.left == 0)
			stats_chunk(w);
	}
	/* Before the packets go back: who has them knows what was decided. */
	bypass_send(w);
	flush(w);
	return true;
}

/* 0, or as nfmeta_link_check() says. */
static int
look_at_link(struct worker *w)
{
	int rc = nfmeta_link_check(w->link);

	if (rc != 0 && rc != -NFMETA_ECLOSING) {
		if (!__atomic_exchange_n(&primary_gone, true, __ATOMIC_SEQ_CST))
			SCLogError("%s", nfmeta_error());
		EngineStop();
	}
	return rc;
}

/* Returns what ended it: 0 Suricata does, -NFMETA_ECLOSING, -NFMETA_EPRIMARYGONE; 1 a failure. */
static int
work(struct worker *w)
{
	struct rte_mbuf *pkts[BURST];
	uint64_t second = 0, tick = 0, ms;
	struct idle idle = {.rounds = 1, .sleep_us = opts.idle_us};
	bool came;
	uint16_t n;
	int rc = 0;

	while (suricata_ctl_flags == 0) {
		n = nfmeta_recv_burst(w->link, pkts, NULL, BURST);
		if (n > 0) {
			if (!w->chunks.busy)
				stats_busy(w);
			if (!burst(w, pkts, n))
				return 1;
		}
		came = n + told_messages(w) > 0;
		if (w->chunks.busy != came)
			came ? stats_busy(w) : stats_idle(w);
		if (came) {
			idle_over(&idle);
		} else {
			if (rc == -NFMETA_ECLOSING)
				return rc;
			idle_wait(&idle);
			w->now = TimeGet();
		}
		ms = SCTIME_MSECS(w->now);
		if (ms - tick >= TICK_MS) {
			tick = ms;
			if (idle.rounds > 0) /* Suricata's housekeeping: packets do it otherwise */
				TmThreadsCaptureHandleTimeout(w->tv, NULL);
			bypass_send(w);
			told_sweep(w);
		}
		/* Once a second; every tick, when there is the time. */
		if (w->now.secs != second || (idle.rounds > 0 && tick == ms)) {
			rc = look_at_link(w);
			if (rc != 0 && rc != -NFMETA_ECLOSING)
				return rc;
		}
		if (w->now.secs != second) {
			second = w->now.secs;
			stats_update(w);
		}
		StatsSyncCountersIfSignalled(w->tv);
	}
	return 0;
}

static TmEcode
loop(ThreadVars *tv, void *data, void *slot)
{
	struct worker *w = data;
	int rc;

	w->slot = ((TmSlot *)slot)->slot_next;
	w->at_work = true;
	w->now = TimeGet();
	PacketPoolWait();
	TmThreadsSetFlag(tv, THV_RUNNING);
	rc = work(w);
	if (rc == -NFMETA_ECLOSING)
		told_close(w);
	bypass_send(w);
	stats_update(w);
	if (nfmeta_link_detach(w->link) != 0)
		SCLogWarning("queue %u: %s", w->queue, nfmeta_error());
	w->link = NULL;
	w->at_work = false;
	if (rc == -NFMETA_ECLOSING)
		SCLogNotice("queue %u: the upfront NF closed the link", w->queue);
	/* The last one ends Suricata: nothing more comes. */
	if (__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST) == workers_n) {
		flows_stop();
		EngineStop();
	}
	return rc == 1 ? TM_ECODE_FAILED : rc < 0 ? TM_ECODE_DONE : TM_ECODE_OK;
}

/* ---- Suricata's modules -------------------------------------------------------------- */

static TmEcode
receive_init(ThreadVars *tv, const void *initdata, void **data)
{
	struct worker *w = (struct worker *)(uintptr_t)initdata;

	w->tv = tv;
	stats_register(w);
	if (flows_start(w) != 0)
		return TM_ECODE_FAILED;
	*data = w;
	return TM_ECODE_OK;
}

/* The last one, when all are through. */
static TmEcode
receive_deinit(ThreadVars *tv, void *data)
{
	static uint16_t gone;

	(void)tv;
	(void)data;
	if (__atomic_add_fetch(&gone, 1, __ATOMIC_SEQ_CST) == workers_n) {
		flows_unregister();
		stats_write();
	}
	return TM_ECODE_OK;
}

static TmEcode
decode_init(ThreadVars *tv, const void *initdata, void **data)
{
	DecodeThreadVars *d = DecodeThreadVarsAlloc(tv);

	(void)initdata;
	if (d == NULL)
		return TM_ECODE_FAILED;
	DecodeRegisterPerfCounters(d, tv);
	*data = d;
	return TM_ECODE_OK;
}

static TmEcode
decode(ThreadVars *tv, Packet *p, void *data)
{
	DecodeThreadVars *d = data;

	DecodeUpdatePacketCounters(tv, d, p);
	if (p->vlan_idx != 0)
		StatsIncr(tv, d->counter_vlan);
	DecodeLinkLayer(tv, d, p->datalink, p, GET_PKT_DATA(p), GET_PKT_LEN(p));
	PacketDecodeFinalize(tv, d, p);
	return TM_ECODE_OK;
}

static TmEcode
decode_deinit(ThreadVars *tv, void *data)
{
	if (data != NULL)
		DecodeThreadVarsFree(tv, data);
	return TM_ECODE_OK;
}

/* Suricata's own exit status is 0 whatever happened; a supervisor has to know. */
static void
at_exit(void)
{
	detach_all();
	if (primary_gone) {
		fflush(NULL);
		_exit(EXIT_PEER);
	}
}

void
capture_register(int receive_slot, int decode_slot)
{
	TmModule *m = &tmm_modules[receive_slot];

	m->name = "ReceiveNfmeta";
	m->ThreadInit = receive_init;
	m->PktAcqLoop = loop;
	m->ThreadDeinit = receive_deinit;
	m->flags = TM_FLAG_RECEIVE_TM;
	m = &tmm_modules[decode_slot];
	m->name = "DecodeNfmeta";
	m->ThreadInit = decode_init;
	m->Func = decode;
	m->ThreadDeinit = decode_deinit;
	m->flags = TM_FLAG_DECODE_TM;
	atexit(at_exit);
}
