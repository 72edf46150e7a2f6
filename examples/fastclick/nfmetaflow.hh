// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
#ifndef NFMETA_FASTCLICK_NFMETAFLOW_HH
#define NFMETA_FASTCLICK_NFMETAFLOW_HH
#include <click/element.hh>
#include <click/task.hh>
#include <click/timer.hh>
#include "elements/analysis/aggregatenotifier.hh"
#include "shared.hh"
CLICK_DECLS

/*
=c

NfmetaFlow(LINK, AGGREGATOR [, I<keywords>])

=s netdevices

tells the NF of a link which flows there are, and takes its verdicts

=d

Listens to an AggregateIPFlows. A flow that it makes gets a flow id of the link (small numbers, used
again with another generation); one that it ends is told to the NF, behind all its packets.

AggregateIPFlows is for one thread: with several, each has its own, and an NfmetaFlow for it. The
low bits of the flow ids, as many as it takes, say which of the threads it is that push into ToNfmeta.
Verdicts are carried out by NfmetaAction(LINK), an element before ToNfmeta.

AggregateIPFlows ends flows when packets come, every REAP seconds (default 20 minutes): give it a
REAP that suits. Why a flow ended it does not say.

=over 8

=item MAX_FLOWS

Flows at a time, 64 to 16777216; default 262144. More have no flow id.

=item FLUSH

Milliseconds that an end may wait for others, to be told in one message (up to 256 in one); default 1.

=back

=h counts read-only

All counters, one a line; each is a handler of its own, too.

=h active read-only

Flows there are.

=h decisions read-only

Flows with a verdict: aggregate, flow id, generation, action, who said so.

=h flush write-only

Tell ends now.

=a ToNfmeta, NfmetaAction, AggregateIPFlows */

class NfmetaFlow : public Element, public AggregateListener { public:

    NfmetaFlow() CLICK_COLD;

    const char *class_name() const override { return "NfmetaFlow"; }
    const char *port_count() const override { return PORTS_0_0; }
    int configure_phase() const override { return CONFIGURE_PHASE_PRIVILEGED + 1; } // before ToNfmeta
    bool can_live_reconfigure() const { return false; }
    bool is_mt_safe() override { return true; }
    bool get_spawning_threads(Bitvector &, bool, int) override { return true; }

    int configure(Vector<String> &, ErrorHandler *) override CLICK_COLD;
    int initialize(ErrorHandler *) override CLICK_COLD;
    void cleanup(CleanupStage) override CLICK_COLD;
    void add_handlers() override CLICK_COLD;

    void aggregate_notify(uint32_t, AggregateEvent, const Packet *) override;
    bool run_task(Task *) override;
    void run_timer(Timer *) override;

  private:

    NfmetaShared *_shared = nullptr;
    Element *_element = nullptr;
    AggregateNotifier *_notifier = nullptr;
    fc_flows *_flows = nullptr;
    unsigned _max_flows = 262144, _flush = 1;
    Task _task;
    Timer _timer;

    static String read_handler(Element *, void *);
    static int write_handler(const String &, Element *, void *, ErrorHandler *);
};

CLICK_ENDDECLS
#endif
