// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
#ifndef NFMETA_FASTCLICK_FROMNFMETA_HH
#define NFMETA_FASTCLICK_FROMNFMETA_HH
#include <click/batchelement.hh>
#include <click/task.hh>
#include "shared.hh"
CLICK_DECLS

/*
=c

FromNfmeta(LINK [, I<keywords>])

=s netdevices

takes packets back from the NF of a link

=d

Output 0: packets to be forwarded, those that the NF made among them. Output 1, if connected:
packets to be sent back where they came from; else they are dropped and counted. What the NF drops
is freed. The network header annotation is set, and the aggregate and paint annotations of flows
that are still there; the record is taken off. Others (timestamp: with PLACEMENT HEADROOM only)
do not come back. A packet of several segments is copied into one buffer; what does not fit
is dropped (too_big; DPDKInfo(MBUF_SIZE) makes buffers larger).

A queue is polled by the thread that pushes into ToNfmeta for it. Every queue of the link needs one
FromNfmeta.

Once a second it is looked whether the NF lives. What one had that died comes out as the NF
wanted it; what it had not given back is dropped, or with WHEN_FULL BYPASS forwarded uninspected.

=over 8

=item QUEUES

The queues this element serves: N, or FIRST-LAST. Default: all.

=item ANNOTATE

false: no annotations, which is faster where nothing behind needs them. Default true.

=item BURST

Packets at a time, up to 32, which is the default.

=back

=h counts read-only

All counters, one a line; each is a handler of its own, too.

=a ToNfmeta */

class FromNfmeta : public BatchElement { public:

    FromNfmeta() CLICK_COLD { in_batch_mode = BATCH_MODE_YES; }

    const char *class_name() const override { return "FromNfmeta"; }
    const char *port_count() const override { return "0/1-2"; }
    const char *processing() const override { return PUSH; }
    int configure_phase() const override { return CONFIGURE_PHASE_PRIVILEGED + 3; }
    bool can_live_reconfigure() const { return false; }
    bool is_mt_safe() override { return true; }
    bool get_spawning_threads(Bitvector &, bool, int) override;

    int configure(Vector<String> &, ErrorHandler *) override CLICK_COLD;
    int initialize(ErrorHandler *) override CLICK_COLD;
    void cleanup(CleanupStage) override CLICK_COLD;
    void add_handlers() override CLICK_COLD;

    int claim(ErrorHandler *) CLICK_COLD;

  private:

    struct Poll {
        FromNfmeta *self;
        Task *task;
        uint16_t queue;
    };
    struct Out; // packets on their way out

    bool poll(uint16_t queue);
    void look(uint16_t queue, uint64_t now);
    void take(NfmetaShared::Thread &, struct rte_mbuf **, const uint8_t *, int n);
    template <bool annotating>
    void take(NfmetaShared::Thread &, struct rte_mbuf **, const uint8_t *, int n);

    NfmetaShared *_shared = nullptr;
    int _first = 0, _last = -1; // queues; -1: to the last
    unsigned _burst = FC_BURST;
    bool _annotate = true;
    Vector<Poll *> _polls;

    static bool run(Task *, void *);
    static String read_handler(Element *, void *);
    static int write_handler(const String &, Element *, void *, ErrorHandler *);
};

CLICK_ENDDECLS
#endif
