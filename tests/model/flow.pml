/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The protocol of flow state on one queue of a link: include/nfmeta/flow.h,
 * docs/flow-state.md.  For SPIN; tests/model/check says with which numbers.
 *
 * Two processes that only share the ways and a few words: upfront (the primary's
 * one thread of the queue) and nf.  Every call of the library is one atomic step,
 * unless the order of its looks at shared memory matters: then each look is one.
 * How long a side rests between two steps is open, so "the NF is stopped for a
 * while" needs no step of its own.  A step is only possible if it changes
 * something, and what the world does to the two (flows, packets, restarts) is
 * limited by numbers.  So every run ends; where it ends, judge() looks.
 */

/* ---- Numbers: how big the world is ---------------------------------------- */

#ifndef IDS
#define IDS 1 /* flow ids */
#endif
#ifndef GENS
#define GENS 2 /* generations of each id */
#endif
#ifndef PACKETS
#define PACKETS 2 /* sent in a run */
#endif
#ifndef NOISE
#define NOISE 1 /* messages that change no table, COUNTERS, in a run */
#endif
#ifndef BEATS
#define BEATS 0 /* HEARTBEATs that the upfront NF sends by itself */
#endif
#ifndef RESETS
#define RESETS 0
#endif
#ifndef VERDICTS
#define VERDICTS 0 /* messages that take room on the way up */
#endif
#ifndef RESTARTS
#define RESTARTS 0 /* of the NF: it leaves, the next one attaches at the next epoch */
#endif
#ifndef RESUBS
#define RESUBS 0 /* subscribes again, or subscribes to nothing */
#endif
#ifndef REASKS
#define REASKS 0 /* asks again with the same ask: it has waited for long */
#endif
#ifndef REMAKES
#define REMAKES 0 /* of the link: another instance, all ways empty */
#endif
#ifndef PACKET_RING
#define PACKET_RING 2
#endif
#ifndef DOWN_RING
#define DOWN_RING 1 /* messages; the carrier INBAND has no such ring */
#endif
#ifndef BACKLOG
#define BACKLOG 1
#endif
#ifndef UP_RING
#define UP_RING 1 /* INBAND: blanks */
#endif

/* ---- What travels ------------------------------------------------------------ */

#define NEW 1
#define DELETE 3
#define COUNTERS 4
#define SNAPSHOT 5
#define SNAPSHOT_FIRST 6
#define SNAPSHOT_LAST 7
#define RESET 8
#define HEARTBEAT 9
#define PACKET 10
#define VERDICT 16
#define RESYNC 18
#define ACK 19

/*
 * A message or a packet.  late: it was in the backlog; not sent, only for asserts.
 * The instance is not here: a new link has new ways.
 */
typedef item {
	byte type;
	byte id;
	byte gen; /* 0: the SNAPSHOT tells nothing */
	byte ask;
	byte epoch;
	byte seq;
	byte barrier;
	bool late
};

#define FIELDS byte, byte, byte, byte, byte, byte, byte, bool
#define OF(m) m.type, m.id, m.gen, m.ask, m.epoch, m.seq, m.barrier, m.late

chan packets = [PACKET_RING] of { FIELDS };
#ifdef INBAND
#define down packets
#else
chan down = [DOWN_RING] of { FIELDS };
#endif
#define ROOM(way) (len(way) < ROOM_##way)
#define ROOM_packets PACKET_RING
#ifdef INBAND
#define ROOM_down PACKET_RING
#else
#define ROOM_down DOWN_RING
#endif
#define ROOM_up UP_RING

chan backlog = [BACKLOG + 1] of { FIELDS }; /* the one more is never used */
chan up = [UP_RING] of { byte, byte, byte }; /* type, ask, epoch */

/* shared memory, struct nfmeta_shared_queue */
bool flow_types; /* not 0 */
byte epoch;
byte received;

/* ---- The upfront NF's side ---------------------------------------------------- */

#define FEED_IDLE 0
#define FEED_SNAPSHOT 1
#define FEED_STREAM 2
#define FEED_GAP 3

byte feed = FEED_IDLE;
byte feed_epoch; /* of the request that was answered last */
byte sent, seq;
bool marker;	 /* due */
bool request;	 /* open; of whom and which: */
byte request_epoch, request_ask;
bool telling;	 /* the program is inside a snapshot */
byte part;	 /* the next one of it, 0 to IDS */
bool shifted;	 /* part p tells id p - 1 instead of p */
byte flow[IDS];	 /* generation that lives; 0: none */
byte used[IDS];	 /* generations so far */

/* ---- The NF's side -------------------------------------------------------------- */

#define SYNC_OFF 0
#define SYNC_LOST 1
#define SYNC_LOADING 2
#define SYNC_SYNCED 3

bool attached;
bool silent; /* a program that wants no flow state */
byte sync = SYNC_OFF;
byte my_epoch;
byte ask, expected;
bool resync_due, ack_due;
byte known[IDS]; /* generation; 0: none */
bool told[IDS];	 /* mark and sweep */
bool loading;	 /* the program's view */
bool looked;	 /* inside nfmeta_recv_burst() */

/* ---- What is left of the world ----------------------------------------------- */

byte n_packets = PACKETS, n_noise = NOISE, n_beats = BEATS, n_resets = RESETS;
byte n_verdicts = VERDICTS, n_restarts = RESTARTS, n_resubs = RESUBS, n_remakes = REMAKES;
byte n_reasks = REASKS;

bool quiet; /* nothing new from now on */
#define WORLD !quiet

/* ---- Ghosts: for asserts only ---------------------------------------------------- */

byte deleted[IDS]; /* newest generation whose DELETE was delivered */
byte given_up;	   /* seq of the newest message that was given up */
byte based_on;	   /* seq of the FIRST that the NF's state rests on */

item d, n; /* one message in the hands of either side; 0 between steps */
byte j, u_type, u_ask, u_epoch;

/*
 * NO_NEW: the NF subscribed to DELETE, but not to NEW: it knows the flows of
 * snapshots and of packets, and need not know the others.
 */
#ifdef NO_NEW
byte met[IDS]; /* generation of the last packet */
#define SEND_NEW(x)
#define SAME(x) (known[x] == flow[x] || (known[x] == 0 && met[x] != flow[x]))
#else
#define SEND_NEW(x) send(NEW, x, flow[x])
#define SAME(x) (known[x] == flow[x])
#endif
#if IDS == 1
#define EQUAL SAME(0)
#else
#define EQUAL (SAME(0) && SAME(1))
#endif

/* "Synced" means it: nothing on its way, nothing due, so the tables are equal. */
#define HONEST                                                                                     \
	(!(sync == SYNC_SYNCED && !marker && len(down) == 0 && len(packets) == 0 &&                \
	   len(backlog) == 0) ||                                                                   \
	 EQUAL)

#define FORGET_N                                                                                   \
	n.type = 0; n.id = 0; n.gen = 0; n.ask = 0; n.epoch = 0; n.seq = 0; n.barrier = 0;          \
	n.late = 0
#define FORGET_D                                                                                   \
	d.type = 0; d.id = 0; d.gen = 0; d.ask = 0; d.epoch = 0; d.seq = 0; d.barrier = 0;          \
	d.late = 0

/* ---- What both a restart and a new link do to the NF's side -------------------- */

inline forget_all()
{
	for (j : 0 .. IDS - 1) {
		known[j] = 0;
		told[j] = false
	}
	j = 0
}

inline start_empty()
{
	forget_all();
#ifdef NO_NEW
	for (j : 0 .. IDS - 1) {
		met[j] = 0
	}
	j = 0
#endif
}

/* what a handle knows */
inline leave()
{
	attached = false;
	sync = SYNC_OFF;
	my_epoch = 0; ask = 0; expected = 0; based_on = 0;
	resync_due = false; ack_due = false;
	loading = false; looked = false;
	for (j : 0 .. IDS - 1) {
		told[j] = false
	}
	j = 0
}

/* ---- Upfront NF: lib/flow.c ------------------------------------------------------- */

#define BACKLOG_FULL (len(backlog) >= BACKLOG)
#define CAN_FLUSH                                                                                  \
	(ROOM(down) && (len(backlog) > 0 || (marker && feed == FEED_GAP)))

inline flush()
{
	do
	:: len(backlog) > 0 && ROOM(down) ->
		backlog?OF(d);
		down!OF(d);
	:: else -> break
	od;
	if
	:: feed == FEED_GAP && marker && len(backlog) == 0 && ROOM(down) ->
		seq++;
		down!HEARTBEAT, 0, 0, 0, feed_epoch, seq, sent, 0;
		marker = false
	:: else
	fi;
	FORGET_D
}

inline give_up()
{
	given_up = seq;
	feed = FEED_GAP;
#ifndef NO_MARKER
	marker = true
#endif
}

/* nfmeta_flow_send() */
inline send(t, x, g)
{
	flush();
	if
	:: feed == FEED_IDLE
	:: feed == FEED_GAP ->
		if
		:: t != HEARTBEAT -> seq++; given_up = seq
		:: else
		fi
	:: else ->
		seq++;
		if
		:: len(backlog) == 0 && ROOM(down) ->
			down!t, x, g, 0, feed_epoch, seq, sent, 0
#ifdef RESET_WAITS
		:: !(len(backlog) == 0 && ROOM(down)) && !BACKLOG_FULL ->
#else
		:: !(len(backlog) == 0 && ROOM(down)) && !BACKLOG_FULL && t != RESET ->
#endif
			backlog!t, x, g, 0, feed_epoch, seq, sent, 1
		:: else ->
#ifdef SILENT_LOSS
			seq--
#else
			give_up()
#endif
		fi
	fi
}

#ifdef SNAPSHOT_WAITS
#define MAY_TELL (len(backlog) == 0 && ROOM(down) || !BACKLOG_FULL)
#else
#define MAY_TELL (len(backlog) == 0 && ROOM(down))
#endif

/* what a snapshot's part tells */
inline tell(t, a)
{
	seq++;
	d.type = t; d.ask = a; d.epoch = feed_epoch; d.seq = seq; d.barrier = sent;
	if
	:: part >= shifted && part - shifted < IDS ->
		d.id = part - shifted;
		d.gen = flow[d.id]
	:: else
	fi;
#ifdef SNAPSHOT_WAITS
	if
	:: len(backlog) == 0 && ROOM(down) -> down!OF(d)
	:: else -> d.late = true; backlog!OF(d)
	fi;
#else
	down!OF(d);
#endif
	FORGET_D
}

inline idle()
{
	feed = FEED_IDLE;
	request = false; request_epoch = 0; request_ask = 0;
	marker = false;
	do
	:: len(backlog) > 0 -> backlog?OF(d)
	:: else -> break
	od;
	FORGET_D
}

inline stop_telling()
{
	telling = false; part = 0; shifted = false
}

#ifdef NO_ASK
#define MAY_BEGIN (request || feed == FEED_GAP)
#else
#define MAY_BEGIN request
#endif

#ifdef EPOCH_FIRST
byte epoch_seen;
#endif
#ifdef TYPES_FIRST
bool types_seen;
#endif

/* a RESYNC asks nothing of whom it does not reach; other types change nothing here */
#define COLLECTED                                                                                  \
	if                                                                                         \
	:: u_type == RESYNC && FRESH ->                                                            \
		if                                                                                 \
		:: u_epoch != feed_epoch && feed != FEED_IDLE -> idle()                            \
		:: else                                                                            \
		fi;                                                                                \
		request = true; request_epoch = u_epoch; request_ask = u_ask                       \
	:: else                                                                                    \
	fi;                                                                                        \
	u_type = 0; u_ask = 0; u_epoch = 0
#ifdef EPOCH_FIRST
#define FRESH (u_epoch == epoch_seen)
#else
#define FRESH (u_epoch == epoch)
#endif

active proctype upfront()
{
	byte was;
end:
	do
	/* the world: flows and packets */
	:: atomic { WORLD && used[0] < GENS && flow[0] == 0 ->
		used[0]++; flow[0] = used[0]; SEND_NEW(0); assert(HONEST) }
	:: atomic { WORLD && flow[0] != 0 ->
		was = flow[0]; flow[0] = 0; send(DELETE, 0, was); was = 0; assert(HONEST) }
	:: atomic { WORLD && flow[0] != 0 && n_packets > 0 && ROOM(packets) ->
		n_packets--;
#ifdef INBAND
		flush();
#endif
		if
		:: ROOM(packets) ->
			sent++; packets!PACKET, 0, flow[0], 0, 0, 0, 0, 0
		:: else
		fi }
#if IDS > 1
	:: atomic { WORLD && used[1] < GENS && flow[1] == 0 ->
		used[1]++; flow[1] = used[1]; SEND_NEW(1); assert(HONEST) }
	:: atomic { WORLD && flow[1] != 0 ->
		was = flow[1]; flow[1] = 0; send(DELETE, 1, was); was = 0; assert(HONEST) }
	:: atomic { WORLD && flow[1] != 0 && n_packets > 0 && ROOM(packets) ->
		n_packets--;
#ifdef INBAND
		flush();
#endif
		if
		:: ROOM(packets) ->
			sent++; packets!PACKET, 1, flow[1], 0, 0, 0, 0, 0
		:: else
		fi }
#endif
#if NOISE > 0
	:: atomic { WORLD && n_noise > 0 && feed != FEED_IDLE -> n_noise--; send(COUNTERS, 0, 0) }
#endif
#if BEATS > 0
	:: atomic { WORLD && n_beats > 0 && (feed == FEED_STREAM || feed == FEED_SNAPSHOT) ->
		n_beats--; send(HEARTBEAT, 0, 0) }
#endif
#if RESETS > 0
	:: atomic { WORLD && n_resets > 0 ->
		n_resets--;
		flow[0] = 0;
#if IDS > 1
		flow[1] = 0;
#endif
		send(RESET, 0, 0); assert(HONEST) }
#endif

#if REMAKES > 0
	/* another link: nfmeta_link_destroy(), _create(); the flows stay, or the program began anew */
	:: atomic { WORLD && n_remakes > 0 ->
		n_remakes--;
		leave(); start_empty();
		idle(); stop_telling();
		do
		:: len(down) > 0 -> down?OF(d)
		:: len(packets) > 0 -> packets?OF(d)
		:: len(up) > 0 -> up?u_type, u_ask, u_epoch
		:: len(down) == 0 && len(packets) == 0 && len(up) == 0 -> break
		od;
		FORGET_D; u_type = 0; u_ask = 0; u_epoch = 0;
		flow_types = false; epoch = 0; received = 0; sent = 0; seq = 0; feed_epoch = 0;
		given_up = 0;
		if
		:: flow[0] = 0;
#if IDS > 1
			flow[1] = 0
#endif
		:: true
		fi }
#endif
	:: atomic { WORLD -> quiet = true }

	/* nfmeta_flow_collect() */
	:: atomic { CAN_FLUSH -> flush() }
#ifdef TYPES_FIRST
	/* the mutant looks whether anybody subscribed, takes a message, then acts on the look */
	:: atomic { !flow_types && (feed != FEED_IDLE || request) -> types_seen = true };
		atomic {
			if
			:: len(up) > 0 -> up?u_type, u_ask, u_epoch; COLLECTED
			:: else
			fi;
			idle(); types_seen = false
		}
#else
	:: atomic { !flow_types && (feed != FEED_IDLE || request || len(backlog) > 0) -> idle() }
#endif
#ifdef EPOCH_FIRST
	/* the mutant reads the epoch, then takes a message */
	:: atomic { len(up) > 0 || n_restarts > 0 -> epoch_seen = epoch };
		atomic {
			if
			:: len(up) > 0 -> up?u_type, u_ask, u_epoch; COLLECTED
			:: else
			fi;
			epoch_seen = 0
		}
#else
	:: atomic { len(up) > 0 -> up?u_type, u_ask, u_epoch; COLLECTED }
#endif

	/* nfmeta_flow_snapshot(), and a program that calls it until it is done */
	:: atomic { MAY_BEGIN && MAY_TELL ->
		feed = FEED_SNAPSHOT;
		feed_epoch = request_epoch;
		marker = false;
		part = 0;
		telling = true;
		if
		:: shifted = false
		:: shifted = true
		fi;
		tell(SNAPSHOT_FIRST, request_ask);
		request = false; request_epoch = 0; request_ask = 0;
		part = 1 }
	:: atomic { telling && feed == FEED_SNAPSHOT && MAY_TELL ->
		if
		:: part < IDS -> tell(SNAPSHOT, 0); part++
		:: else -> tell(SNAPSHOT_LAST, 0); feed = FEED_STREAM; stop_telling()
		fi }
	:: atomic { telling && feed != FEED_SNAPSHOT -> stop_telling() } /* -NFMETA_EGAP */
	od
}

/* ---- NF: lib/flow.c -------------------------------------------------------------------- */

inline lost()
{
	sync = SYNC_LOST;
	ask++;
	resync_due = true;
	ack_due = false
}

/* The program: its table from what it is told; IDS <= 2. */
inline sweep()
{
	for (j : 0 .. IDS - 1) {
		if
		:: !told[j] -> known[j] = 0
		:: else
		fi;
		told[j] = false
	}
	j = 0;
	loading = false
}

inline begin()
{
	for (j : 0 .. IDS - 1) {
		told[j] = false
	}
	j = 0;
	loading = true
}

inline note()
{
	known[n.id] = n.gen;
	told[n.id] = loading
}

inline deliver()
{
	assert(received >= n.barrier); /* no message overtakes a packet */
	assert(n.late || received == n.barrier); /* one order, but for the backlog */
	assert(n.type == SNAPSHOT_FIRST || !(based_on < given_up && given_up < n.seq));
	if
	:: n.type == NEW ->
		if
		:: known[n.id] == 0 || n.gen >= known[n.id] || (loading && !told[n.id]) ->
			note()
		:: else
		fi
	:: n.type == DELETE ->
		if
		:: n.gen > deleted[n.id] -> deleted[n.id] = n.gen
		:: else
		fi;
		if
#ifdef NO_GENERATION
		:: known[n.id] != 0 ->
#else
		:: known[n.id] == n.gen ->
#endif
			assert(known[n.id] <= n.gen); /* no delete hits a newer generation */
			known[n.id] = 0;
			told[n.id] = false
		:: else
		fi
	:: n.type == SNAPSHOT_FIRST || n.type == SNAPSHOT || n.type == SNAPSHOT_LAST ->
		if
		:: n.type == SNAPSHOT_FIRST -> begin()
		:: else
		fi;
		if
		:: n.gen != 0 -> note()
		:: else
		fi;
		if
		:: n.type == SNAPSHOT_LAST && loading ->
#ifdef NO_SWEEP
			loading = false
#else
			sweep()
#endif
		:: else
		fi
	:: n.type == RESET ->
		/* nor does a RESET hit what began behind it */
		for (j : 0 .. IDS - 1) {
			assert(known[j] == 0 || !n.late || known[j] != flow[j])
		}
		forget_all()
	:: else
	fi
}

#ifdef NO_BARRIER
#define ITS_TURN true
#else
#define ITS_TURN (received >= n.barrier)
#endif
#ifdef OLD_EPOCH
#define MINE true
#else
#define MINE (n.epoch == my_epoch)
#endif
#ifdef ANY_ASK
#define MY_ASK true
#else
#define MY_ASK (n.ask == ask)
#endif

#ifdef NO_SEQUENCE
#define ANY_SEQUENCE true
#else
#define ANY_SEQUENCE false
#endif

inline in_order()
{
	expected = n.seq + 1;
	if
	:: n.type == SNAPSHOT_FIRST -> sync = SYNC_LOADING; based_on = n.seq
	:: n.type == SNAPSHOT_LAST || n.type == RESET -> sync = SYNC_SYNCED
	:: else
	fi;
	if
	:: n.type == HEARTBEAT && sync == SYNC_SYNCED -> ack_due = true
	:: n.type == HEARTBEAT && sync != SYNC_SYNCED
	:: n.type != HEARTBEAT -> deliver()
	fi
}

/* a message that was taken off; what nfmeta_flow_next() does with it */
inline take()
{
	if
	:: !MINE || sync == SYNC_OFF
	:: MINE && sync == SYNC_LOST ->
		if
		:: n.type == SNAPSHOT_FIRST && MY_ASK -> in_order()
		:: else
		fi
	:: MINE && sync != SYNC_OFF && sync != SYNC_LOST ->
		if
		:: n.seq == expected || ANY_SEQUENCE -> in_order()
		:: else -> lost()
		fi
	fi;
	FORGET_N;
	assert(HONEST)
}

inline got_packet()
{
	received++;
#ifdef NO_NEW
	met[n.id] = n.gen;
#endif
	assert(n.gen > deleted[n.id]); /* no packet behind its flow's delete */
	note();
	FORGET_N;
	assert(HONEST)
}

#ifdef OFF_STOPS
#define OFF false
#else
#define OFF (sync == SYNC_OFF)
#endif

#ifdef ASKS_ALWAYS
#define ASK_ON (sync == SYNC_LOST)
#else
#define ASK_ON false
#endif

active proctype nf()
{
end:
	do
	:: atomic { !attached ->
		flow_types = false; epoch++; my_epoch = epoch; attached = true;
#if RESTARTS > 0
		if
		:: silent = true
		:: silent = false
		fi
#endif
	}

	/* nfmeta_flow_subscribe() */
	:: atomic { attached && !silent && sync == SYNC_OFF -> flow_types = true; lost() }
#if RESUBS > 0
	:: atomic { WORLD && sync != SYNC_OFF && n_resubs > 0 -> n_resubs--;
		if
		:: lost()
		:: flow_types = false; sync = SYNC_OFF; resync_due = false; ack_due = false
		fi }
#endif

#if REASKS > 0
	:: atomic { WORLD && sync == SYNC_LOST && !resync_due && n_reasks > 0 ->
		n_reasks--; resync_due = true }
#endif

#ifdef INBAND
	/* nfmeta_recv_burst() up to a message, nfmeta_flow_next() */
	:: atomic { attached && len(packets) > 0 ->
		packets?OF(n);
		if
		:: n.type == PACKET -> got_packet()
		:: else -> take()
		fi }
#else
	/* nfmeta_flow_next(), and if it is not the message's turn a packet */
	:: atomic { attached && !looked && sync != SYNC_OFF && len(down) > 0 ->
		down?<OF(n)>;
		if
		:: ITS_TURN -> down?OF(n); take()
		:: else -> packets?OF(n); got_packet()
		fi }
	/* nfmeta_recv_burst() without a subscription does not look at messages */
	:: atomic { attached && !looked && OFF && len(packets) > 0 ->
		packets?OF(n); got_packet() }
	/* nfmeta_recv_burst(): are there packets; then, is there a message; then takes one */
#ifdef MESSAGE_FIRST
	:: atomic { attached && !looked && !OFF && len(down) == 0 -> looked = true }
	:: atomic { looked && len(packets) > 0 ->
		packets?OF(n); looked = false; got_packet() }
	:: atomic { looked && len(packets) == 0 && len(down) > 0 -> looked = false }
#else
	:: atomic { attached && !looked && !OFF && len(down) == 0 && len(packets) > 0 ->
		looked = true }
	:: atomic { looked ->
		looked = false;
		if
		:: len(down) == 0 -> packets?OF(n); got_packet()
		:: len(down) > 0 ->
			down?<OF(n)>;
			if
			:: ITS_TURN -> FORGET_N
			:: else -> packets?OF(n); got_packet()
			fi
		fi }
#endif
#endif

	/* every call of nfmeta_flow_next() and _reply() */
	:: atomic { resync_due && ROOM(up) -> up!RESYNC, ask, my_epoch; resync_due = ASK_ON }
#ifdef TRIED_ONCE
	:: atomic { resync_due && !ROOM(up) -> resync_due = false }
#endif
	:: atomic { ack_due && ROOM(up) -> up!ACK, 0, my_epoch; ack_due = false }
#if VERDICTS > 0
	:: atomic { attached && WORLD && n_verdicts > 0 && ROOM(up) ->
		n_verdicts--; up!VERDICT, 0, my_epoch }
#endif

#if RESTARTS > 0
	:: atomic { attached && WORLD && n_restarts > 0 ->
		n_restarts--;
		leave();
		if
		:: flow_types = false /* it took leave */
		:: true /* or did not come to that */
		fi;
		if
		:: start_empty()
		:: true /* the program goes on, with the table it has */
		fi }
#endif
	od
}

/* Nothing can happen any more. */
active proctype judge()
{
	timeout ->
	assert(attached && received == sent && !resync_due && !ack_due);
	assert((silent || len(down) == 0) && len(packets) == 0 && len(backlog) == 0 && len(up) == 0);
	assert(!request && !telling && !marker);
	assert((silent -> feed == FEED_IDLE : sync == SYNC_SYNCED && feed == FEED_STREAM && EQUAL))
}
