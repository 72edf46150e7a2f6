// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
#include <click/config.h>
#include "nfmetaaction.hh"
#include <click/args.hh>
#include <click/error.hh>
CLICK_DECLS

NfmetaAction::NfmetaAction()
    : _flow_anno(AGGREGATE_ANNO_OFFSET), _direction_anno(PAINT_ANNO_OFFSET)
{
}

int
NfmetaAction::configure(Vector<String> &conf, ErrorHandler *errh)
{
    int flow_anno = -1, direction_anno = -1;
    String link;

    if (Args(conf, this, errh)
            .read_mp("LINK", WordArg(), link)
            .read("FLOW_ANNO", AnnoArg(4), flow_anno)
            .read("DIRECTION_ANNO", AnnoArg(1), direction_anno)
            .complete() < 0)
        return -1;
    if (flow_anno >= 0)
        _flow_anno = ANNOTATIONINFO_OFFSET(flow_anno);
    if (direction_anno >= 0)
        _direction_anno = ANNOTATIONINFO_OFFSET(direction_anno);
    _shared = NfmetaShared::of(this, link);
    return 0;
}

void
NfmetaAction::cleanup(CleanupStage)
{
    if (_shared)
        _shared->drop();
    _shared = nullptr;
}

int
NfmetaAction::decide(NfmetaShared::Thread &t, const Packet *p, uint64_t now)
{
    uint32_t number = p->anno_u32(_flow_anno);
    fc_flow *flow = t.has_flows && number ? fc_find(&t.flows, number) : nullptr;

    switch (flow ? nfmeta_flow_act(&flow->decision, now) : NFMETA_ACTION_INSPECT) {
    case NFMETA_ACTION_SHUNT:
        t.c.shunted++;
        t.c.shunted_bytes += p->length();
        fc_pass(flow, p->anno_u8(_direction_anno) & 1, p->length());
        return 1;
    case NFMETA_ACTION_DROP:
        t.c.verdict_dropped++;
        fc_pass(flow, p->anno_u8(_direction_anno) & 1, p->length());
        return 2;
    default:
        t.c.inspected++;
        return 0;
    }
}

void
NfmetaAction::push_batch(int, PacketBatch *batch)
{
    NfmetaShared::Thread &t = _shared->here();
    const uint64_t now = rte_get_tsc_cycles();

    auto to = [&](Packet *p) { return decide(t, p, now); };
    CLASSIFY_EACH_PACKET(3, to, batch, checked_output_push_batch);
}

void
NfmetaAction::push(int, Packet *p)
{
    checked_output_push(decide(_shared->here(), p, rte_get_tsc_cycles()), p);
}

static uint64_t NfmetaCounts::*const counters[] = {&NfmetaCounts::inspected, &NfmetaCounts::shunted,
                                                   &NfmetaCounts::shunted_bytes,
                                                   &NfmetaCounts::verdict_dropped};
static const char *const names[] = {"inspected", "shunted", "shunted_bytes", "dropped"};

String
NfmetaAction::read_handler(Element *e, void *thunk)
{
    NfmetaShared *s = static_cast<NfmetaAction *>(e)->_shared;

    return s ? String(s->sum(counters[reinterpret_cast<intptr_t>(thunk)])) : String();
}

int
NfmetaAction::write_handler(const String &, Element *e, void *, ErrorHandler *)
{
    static_cast<NfmetaAction *>(e)->_shared->reset();
    return 0;
}

void
NfmetaAction::add_handlers()
{
    for (int i = 0; i < 4; i++)
        add_read_handler(names[i], read_handler, i);
    add_write_handler("reset_counts", write_handler, 0, Handler::BUTTON);
}

CLICK_ENDDECLS
