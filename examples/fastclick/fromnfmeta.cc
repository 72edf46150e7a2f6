// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
#include <click/config.h>
#include "fromnfmeta.hh"
#include "tonfmeta.hh"
#include <click/args.hh>
#include <click/error.hh>
#include <click/standard/scheduleinfo.hh>
#include <click/straccum.hh>
CLICK_DECLS

int
FromNfmeta::configure(Vector<String> &conf, ErrorHandler *errh)
{
    String link, queues;

    if (Args(conf, this, errh)
            .read_mp("LINK", WordArg(), link)
            .read("QUEUES", WordArg(), queues)
            .read("ANNOTATE", _annotate)
            .read("BURST", BoundedIntArg(1, FC_BURST), _burst)
            .complete() < 0)
        return -1;
    if (queues) {
        int dash = queues.find_left('-');
        if (!IntArg().parse(dash < 0 ? queues : queues.substring(0, dash), _first) ||
            !IntArg().parse(dash < 0 ? queues : queues.substring(dash + 1), _last) || _first < 0 ||
            _last < _first)
            return errh->error("QUEUES %s: must be N or FIRST-LAST", queues.c_str());
    }
    _shared = NfmetaShared::of(this, link);
    _shared->froms.push_back(this);
    return 0;
}

// Asked before queues are given to threads: the same arithmetic as NfmetaShared::add_threads().
bool
FromNfmeta::get_spawning_threads(Bitvector &b, bool, int)
{
    if (!_shared || !_shared->to)
        return true;
    Bitvector pushing = _shared->to->get_pushing_threads();
    int weight = pushing.weight(), n = _shared->to->queues() ? _shared->to->queues() : weight;
    for (int i = 0, number = 0; i < pushing.size() && i < b.size(); i++) {
        if (!pushing[i])
            continue;
        int first = number * n / weight, last = (number + 1) * n / weight - 1;
        if (last >= _first && (_last < 0 || first <= _last))
            b[i] = true;
        number++;
    }
    return true;
}

// ToNfmeta asks, when it knows how many queues there are.
int
FromNfmeta::claim(ErrorHandler *errh)
{
    int last = _last < 0 ? _shared->queues.size() - 1 : _last;

    if (last >= _shared->queues.size())
        return errh->error("link %s: %s: there is no queue %d: they are 0 to %d", _shared->name.c_str(),
                           declaration().c_str(), last, _shared->queues.size() - 1);
    for (int q = _first; q <= last; q++) {
        NfmetaShared::Queue &queue = _shared->queues[q];
        if (queue.from)
            return errh->error("link %s: queue %d is served by %s and by %s: give both QUEUES",
                               _shared->name.c_str(), q, queue.from->declaration().c_str(),
                               declaration().c_str());
        queue.from = this;
    }
    return 0;
}

int
FromNfmeta::initialize(ErrorHandler *errh)
{
    if (!_shared->link)
        return errh->error("link %s: there is no ToNfmeta(%s)", _shared->name.c_str(),
                           _shared->name.c_str());
    for (int q = 0; q < _shared->queues.size(); q++) {
        if (_shared->queues[q].from != this)
            continue;
        Poll *p = new Poll{this, nullptr, uint16_t(q)};
        p->task = new Task(run, p);
        _polls.push_back(p);
        ScheduleInfo::initialize_task(this, p->task, true, errh);
        p->task->move_thread(_shared->queues[q].thread);
    }
    return 0;
}

void
FromNfmeta::cleanup(CleanupStage)
{
    for (Poll *p : _polls) {
        delete p->task;
        delete p;
    }
    _polls.clear();
    if (_shared)
        _shared->drop();
    _shared = nullptr;
}

struct FromNfmeta::Out {
    PacketBatch *head = nullptr;
    Packet *last = nullptr;
    unsigned n = 0;

    void add(Packet *p)
    {
        if (head)
            last->set_next(p);
        else
            head = PacketBatch::start_head(p);
        last = p;
        n++;
    }
    PacketBatch *batch() { return head->make_tail(last, n); }
};

/*
 * A Click packet has one segment: what comes in several is copied into one buffer, if it fits.
 * (FastClick's ToDPDKDevice copies a packet without a DPDK buffer into one, however large it is.)
 */
static struct rte_mbuf *
in_one(struct rte_mbuf *m, NfmetaCounts &c)
{
    struct rte_mbuf *one = DPDKDevice::get_pkt(rte_socket_id());

    if (one && m->pkt_len <= rte_pktmbuf_tailroom(one)) {
        char *to = rte_pktmbuf_append(one, uint16_t(m->pkt_len));
        const void *at = rte_pktmbuf_read(m, 0, m->pkt_len, to);
        if (at != to)
            memcpy(to, at, m->pkt_len);
        c.linearised++;
    } else {
        rte_pktmbuf_free(one);
        one = nullptr;
        c.too_big++;
    }
    rte_pktmbuf_free(m);
    return one;
}

// What the record knows for the elements behind.
static void
annotate(WritablePacket *p, const nfmeta_record *r, const NfmetaShared::Thread &t)
{
    p->set_mac_header(p->data());
    if (!r)
        return;
    if (r->l3_off != NFMETA_OFF_NONE && r->l3_off < p->length()) {
        uint32_t l3 = r->l4_off != NFMETA_OFF_NONE ? r->l4_off - r->l3_off : 20;
        p->set_network_header(p->data() + r->l3_off, l3);
    }
    if ((r->flags & NFMETA_FLOW_KNOWN) && t.has_flows) {
        const fc_flow *flow = fc_by_id(&t.flows, r->flow_id, r->flow_gen);
        if (flow) {
            SET_AGGREGATE_ANNO(p, flow->aggregate);
            SET_PAINT_ANNO(p, (r->flags & NFMETA_FLOW_REVERSE) != 0);
        }
    }
    if (r->timestamp)
        p->timestamp_anno() = Timestamp::make_nsec(r->timestamp / 1000000000, r->timestamp % 1000000000);
}

template <bool annotating>
void
FromNfmeta::take(NfmetaShared::Thread &t, struct rte_mbuf **m, const uint8_t *how, int n)
{
    const nfmeta_field field = _shared->field;
    NfmetaShared::Spares spares = t.spares;
    unsigned injected = 0;
    Out forward, backward;

    for (int i = 0; i < n; i++) {
        bool back = false;
        if (i + 4 < n)
            rte_prefetch0(m[i + 4]);
        if (unlikely(how[i] != NFMETA_FORWARD)) {
            const uint8_t to = how[i] & NFMETA_META; // the two bits that say where to
            injected += (how[i] & NFMETA_INJECTED) != 0;
            if ((how[i] & NFMETA_INJECTED) && to != NFMETA_DROP)
                t.c.injected++;
            back = to == NFMETA_BACKWARD;
            if (to == NFMETA_DROP || (back && noutputs() < 2)) {
                if (back)
                    t.c.no_way_back++;
                else if (!(how[i] & NFMETA_INJECTED))
                    t.c.dropped++;
                rte_pktmbuf_free(m[i]);
                continue;
            }
        }
        const nfmeta_record *r = nullptr;
        nfmeta_record copy;
        if (annotating && (r = nfmeta_record_peek(&field, m[i]))) {
            // what it lies in may be another mbuf's soon
            memcpy(&copy, r, NFMETA_RECORD_CORE);
            if (r->size < NFMETA_RECORD_CORE)
                r = nullptr;
            else {
                copy.timestamp = r->size >= NFMETA_RECORD_FULL ? r->timestamp : 0;
                r = &copy;
            }
        }
        nfmeta_record_clear(&field, m[i]);
        struct rte_mbuf *one = likely(m[i]->nb_segs == 1) ? m[i] : in_one(m[i], t.c);
        if (unlikely(!one))
            continue;
        WritablePacket *p = spares.make(one);
        if (annotating)
            annotate(p, r, t);
        if (unlikely(back))
            backward.add(p);
        else
            forward.add(p);
    }
    t.spares = spares;
    t.c.received += n - injected;
    t.c.forwarded += forward.n;
    t.c.backward += backward.n;
    if (forward.head)
        output_push_batch(0, forward.batch());
    if (backward.head)
        output_push_batch(1, backward.batch());
}

void
FromNfmeta::take(NfmetaShared::Thread &t, struct rte_mbuf **m, const uint8_t *how, int n)
{
    if (_annotate)
        take<true>(t, m, how, n);
    else
        take<false>(t, m, how, n);
}

// Once a second: is the NF alive, does it move?
void
FromNfmeta::look(uint16_t q, uint64_t now)
{
    NfmetaShared::Queue &queue = _shared->queues[q];
    NfmetaShared::Thread &t = _shared->here();
    struct rte_mbuf *m[FC_BURST];
    uint8_t how[FC_BURST];
    uint64_t packets = 0;
    int n;

    queue.next_look = now + rte_get_tsc_hz();
    queue.peer = nfmeta_link_peer(_shared->link, q);
    if (queue.peer == NFMETA_PEER_DEAD) {
        t.c.deaths++;
        click_chatter("nfmeta: link %s: the NF of queue %u died", _shared->name.c_str(), unsigned(q));
        while ((n = nfmeta_link_reclaim(_shared->link, q, m, how, FC_BURST)) > 0) {
            for (int i = 0; i < n; i++) {
                t.c.reclaimed += (how[i] & NFMETA_RECLAIMED) != 0;
                t.c.orphans += (how[i] & NFMETA_ORPHAN) != 0;
            }
            take(t, m, how, n);
        }
    } else if (queue.peer == NFMETA_PEER_ALIVE && _shared->fence) {
        struct nfmeta_link_stats st = {};
        st.sz = sizeof(st);
        nfmeta_link_stats(_shared->link, q, &st);
        if (st.heartbeat != queue.heartbeat || queue.moved == 0) {
            queue.heartbeat = st.heartbeat;
            queue.moved = now;
        } else if (now - queue.moved > _shared->fence &&
                   nfmeta_link_fence(_shared->link, q, &packets) == 0) {
            t.c.fenced++;
            t.c.fenced_packets += packets;
            queue.moved = 0;
            click_chatter("nfmeta: link %s: the NF of queue %u stood still and was cut off",
                          _shared->name.c_str(), unsigned(q));
        }
    }
}

bool
FromNfmeta::poll(uint16_t q)
{
    NfmetaShared::Thread &t = _shared->here();
    struct rte_mbuf *m[FC_BURST];
    uint8_t how[FC_BURST];
    uint64_t now = rte_get_tsc_cycles();
    unsigned told = 0;

    if (unlikely(!_shared->link))
        return false;
    uint16_t n = nfmeta_collect_burst(_shared->link, q, m, how, uint16_t(_burst));
    if (t.has_flows)
        told = fc_collect(&t.flows, q, now, rte_get_tsc_hz());
    if (n)
        take(t, m, how, n);
    if (unlikely(now >= _shared->queues[q].next_look))
        look(q, now);
    return n + told > 0;
}

bool
FromNfmeta::run(Task *task, void *thunk)
{
    Poll *p = static_cast<Poll *>(thunk);
    bool worked = p->self->poll(p->queue);

    task->fast_reschedule();
    return worked;
}

static const struct {
    const char *name;
    uint64_t NfmetaCounts::*counter;
} counters[] = {
    {"count", &NfmetaCounts::received},
    {"forwarded", &NfmetaCounts::forwarded},
    {"backward", &NfmetaCounts::backward},
    {"dropped", &NfmetaCounts::dropped},
    {"injected", &NfmetaCounts::injected},
    {"no_way_back", &NfmetaCounts::no_way_back},
    {"linearised", &NfmetaCounts::linearised},
    {"too_big", &NfmetaCounts::too_big},
    {"nfs_died", &NfmetaCounts::deaths},
    {"reclaimed", &NfmetaCounts::reclaimed},
    {"orphans", &NfmetaCounts::orphans},
    {"nfs_cut_off", &NfmetaCounts::fenced},
    {"cut_off_packets", &NfmetaCounts::fenced_packets},
};
static const int ncounters = sizeof(counters) / sizeof(counters[0]);

String
FromNfmeta::read_handler(Element *e, void *thunk)
{
    NfmetaShared *s = static_cast<FromNfmeta *>(e)->_shared;
    intptr_t what = reinterpret_cast<intptr_t>(thunk);
    StringAccum sa;

    if (!s)
        return String();
    if (what >= 0)
        return String(s->sum(counters[what].counter));
    for (int i = 0; i < ncounters; i++)
        sa << counters[i].name << ' ' << s->sum(counters[i].counter) << '\n';
    return sa.take_string();
}

int
FromNfmeta::write_handler(const String &, Element *e, void *, ErrorHandler *)
{
    static_cast<FromNfmeta *>(e)->_shared->reset();
    return 0;
}

void
FromNfmeta::add_handlers()
{
    add_read_handler("counts", read_handler, -1);
    for (int i = 0; i < ncounters; i++)
        add_read_handler(counters[i].name, read_handler, i);
    add_write_handler("reset_counts", write_handler, 0, Handler::BUTTON);
}

CLICK_ENDDECLS
