// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
#include <click/config.h>
#include "nfmetaflow.hh"
#include "tonfmeta.hh"
#include <click/args.hh>
#include <click/error.hh>
#include <click/straccum.hh>
CLICK_DECLS

NfmetaFlow::NfmetaFlow() : _task(this), _timer(this)
{
}

int
NfmetaFlow::configure(Vector<String> &conf, ErrorHandler *errh)
{
    String link;

    if (Args(conf, this, errh)
            .read_mp("LINK", WordArg(), link)
            .read_mp("AGGREGATOR", _element)
            .read("MAX_FLOWS", BoundedIntArg(64, 1 << 24), _max_flows)
            .read("FLUSH", BoundedIntArg(0, 60000), _flush)
            .complete() < 0)
        return -1;
    _notifier = static_cast<AggregateNotifier *>(_element->cast("AggregateNotifier"));
    if (!_notifier)
        return errh->error("AGGREGATOR %s does not tell of flows: it must be an AggregateIPFlows",
                           _element->declaration().c_str());
    _shared = NfmetaShared::of(this, link);
    return 0;
}

// Before ToNfmeta's.
int
NfmetaFlow::initialize(ErrorHandler *errh)
{
    Bitvector at, sends;
    int thread = 0;

    if (!_shared->to)
        return errh->error("link %s: there is no ToNfmeta(%s)", _shared->name.c_str(),
                           _shared->name.c_str());
    at = _element->get_pushing_threads();
    sends = _shared->to->get_pushing_threads();
    if (at.weight() != 1)
        return errh->error("%s: %d threads push packets into it: it is for one. Give each its own, and an "
                           "NfmetaFlow for it",
                           _element->declaration().c_str(), at.weight());
    while (!at[thread])
        thread++;
    if (!sends[thread])
        return errh->error("link %s: thread %d makes the flows of %s, but it is not thread %d that pushes "
                           "them into ToNfmeta: put no Queue between",
                           _shared->name.c_str(), thread, _element->declaration().c_str(), thread);
    NfmetaShared::Thread &t = _shared->thread(thread);
    if (t.has_flows)
        return errh->error("link %s: thread %d has an NfmetaFlow already, and flow numbers of two "
                           "AggregateIPFlows would be mixed up",
                           _shared->name.c_str(), thread);
    // ToNfmeta says which of how many it is.
    if (fc_flows_init(&t.flows, _max_flows) != 0)
        return errh->error("out of memory for MAX_FLOWS %u", _max_flows);
    t.has_flows = true;
    _flows = &t.flows;
    _notifier->add_listener(this);
    _task.initialize(this, false);
    _task.move_thread(thread);
    _timer.initialize(this);
    _timer.move_thread(thread);
    return 0;
}

void
NfmetaFlow::cleanup(CleanupStage)
{
    if (_flows)
        _notifier->remove_listener(this);
    _flows = nullptr;
    if (_shared)
        _shared->drop();
    _shared = nullptr;
}

/*
 * Ends come in the middle of a burst: packets of the flow may be in it, and others behind, in
 * parts that the elements between have split off. All have been sent when a task or a timer
 * of this thread runs next.
 */
void
NfmetaFlow::aggregate_notify(uint32_t aggregate, AggregateEvent event, const Packet *)
{
    if (event == NEW_AGG) {
        fc_begin(_flows, aggregate);
        return;
    }
    fc_end(_flows, aggregate, NFMETA_END_NONE);
    if (_flows->nending >= FC_DELETES || _flush == 0)
        _task.reschedule();
    else if (_flows->nending == 1)
        _timer.schedule_after_msec(_flush);
}

bool
NfmetaFlow::run_task(Task *)
{
    if (_shared->closed)
        return false;
    fc_flush(_flows);
    return true;
}

void
NfmetaFlow::run_timer(Timer *)
{
    if (!_shared->closed)
        fc_flush(_flows);
}

static const struct {
    const char *name;
    uint64_t fc_counts::*counter;
} counters[] = {
    {"begun", &fc_counts::begun},
    {"ended", &fc_counts::ended},
    {"no_room", &fc_counts::no_room},
    {"told_new", &fc_counts::told_new},
    {"told_deletes", &fc_counts::told_deletes},
    {"delete_messages", &fc_counts::delete_messages},
    {"told_counters", &fc_counts::told_counters},
    {"told_updates", &fc_counts::told_updates},
    {"given_up", &fc_counts::given_up},
    {"verdicts", &fc_counts::verdicts},
    {"verdicts_applied", &fc_counts::verdicts_applied},
    {"verdicts_late", &fc_counts::verdicts_late},
    {"verdicts_kept", &fc_counts::verdicts_kept},
    {"resyncs", &fc_counts::resyncs},
    {"resyncs_answered", &fc_counts::resyncs_answered},
    {"refused", &fc_counts::refused},
};
static const int ncounters = sizeof(counters) / sizeof(counters[0]);

enum { H_COUNTS = 100, H_ACTIVE, H_DECISIONS, H_FLUSH, H_RESET };

String
NfmetaFlow::read_handler(Element *e, void *thunk)
{
    static const char *const actions[] = {"none", "forward", "drop", "inspect", "shunt"};
    const fc_flows *f = static_cast<NfmetaFlow *>(e)->_flows;
    intptr_t what = reinterpret_cast<intptr_t>(thunk);
    StringAccum sa;

    if (!f)
        return String();
    switch (what) {
    case H_COUNTS:
        for (int i = 0; i < ncounters; i++)
            sa << counters[i].name << ' ' << f->c.*counters[i].counter << '\n';
        return sa.take_string();
    case H_ACTIVE:
        return String(f->c.begun - f->c.ended);
    case H_DECISIONS:
        for (uint32_t i = 0; i < f->used; i++) {
            const fc_flow *flow = &f->slots[i];
            if (flow->state && flow->decision.action)
                sa << flow->aggregate << ' ' << fc_id(f, flow) << ' ' << flow->generation << ' '
                   << actions[flow->decision.action] << ' ' << flow->decision.who << '\n';
        }
        return sa.take_string();
    default:
        return String(f->c.*counters[what].counter);
    }
}

int
NfmetaFlow::write_handler(const String &, Element *e, void *thunk, ErrorHandler *)
{
    NfmetaFlow *self = static_cast<NfmetaFlow *>(e);

    if (reinterpret_cast<intptr_t>(thunk) == H_FLUSH)
        self->_task.reschedule(); // in the thread that owns the flows
    else if (self->_flows) { // begun - ended is how many there are
        uint64_t begun = self->_flows->c.begun - self->_flows->c.ended;
        self->_flows->c = fc_counts();
        self->_flows->c.begun = begun;
    }
    return 0;
}

void
NfmetaFlow::add_handlers()
{
    add_read_handler("counts", read_handler, H_COUNTS);
    add_read_handler("active", read_handler, H_ACTIVE);
    add_read_handler("decisions", read_handler, H_DECISIONS);
    for (int i = 0; i < ncounters; i++)
        add_read_handler(counters[i].name, read_handler, i);
    add_write_handler("flush", write_handler, H_FLUSH, Handler::BUTTON);
    add_write_handler("reset_counts", write_handler, H_RESET, Handler::BUTTON);
}

CLICK_ENDDECLS
