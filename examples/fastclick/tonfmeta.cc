// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
#include <click/config.h>
#include "tonfmeta.hh"
#include "fromnfmeta.hh"
#include "walk.hh"
#include <click/args.hh>
#include <click/error.hh>
#include <click/straccum.hh>
#include <unistd.h>
CLICK_DECLS

struct ToNfmeta::Sums {
    uint64_t bytes = 0;
    uint64_t checksums = 0; // 16 bits each: ip_good, ip_bad, l4_good, l4_bad
    unsigned with_flow = 0;
};

struct ToNfmeta::Burst {
    unsigned n;
    uint32_t copied = 0; // a bit each: the mbuf is a copy
    Packet *p[FC_BURST];
    struct rte_mbuf *m[FC_BURST];
    uint16_t queue[FC_BURST];
    nfmeta_record r[FC_BURST];
    PacketBatch *refused = nullptr; // by the link, or no mbuf was there
    Packet *refused_last = nullptr;
    unsigned refused_n = 0;

    void refuse(Packet *packet)
    {
        if (refused)
            refused_last->set_next(packet);
        else
            refused = PacketBatch::start_head(packet);
        refused_last = packet;
        refused_n++;
    }
};

ToNfmeta::ToNfmeta()
    : _flow_anno(AGGREGATE_ANNO_OFFSET), _direction_anno(PAINT_ANNO_OFFSET)
{
    memset(&_opts, 0, sizeof(_opts));
    memset(&_field_opts, 0, sizeof(_field_opts));
    _opts.sz = sizeof(_opts);
    _field_opts.sz = sizeof(_field_opts);
}

// The number of a word among those allowed; 0 and the line is said: none of them.
static int
one_of(const char *keyword, const String &word, const char *const *words, ErrorHandler *errh)
{
    String all;

    for (int i = 0; words[i]; i++) {
        if (word.upper() == words[i])
            return i + 1;
        all += String(i ? ", " : "") + words[i];
    }
    errh->error("%s %s: must be one of %s", keyword, word.c_str(), all.c_str());
    return 0;
}

int
ToNfmeta::configure(Vector<String> &conf, ErrorHandler *errh)
{
    static const char *const full[] = {"DROP", "WAIT", "BYPASS", nullptr};
    static const char *const place[] = {"AUTO", "DYNFIELD", "UDATA64", "HEADROOM", nullptr};
    static const char *const carriers[] = {"NONE", "RING", "INBAND", nullptr};
    static const char *const flow[] = {"TABLE", "ANNO", "NONE", nullptr};
    static const char *const protocols[] = {"IP", "TCP", "UDP", "ICMP", nullptr};
    String link, when_full = "DROP", placement = "AUTO", carrier, flows, checked;
    uint32_t ring = 1024, wait = 1000, blanks = 0;
    int i, flow_anno = -1, direction_anno = -1;

    if (Args(conf, this, errh)
            .read_mp("LINK", WordArg(), link)
            .read("QUEUES", BoundedIntArg(1, NFMETA_QUEUES_MAX), _queues)
            .read("RING", ring)
            .read("WHEN_FULL", WordArg(), when_full)
            .read("WAIT", wait)
            .read("CLASSIFY", _classify)
            .read("CHECKED", AnyArg(), checked)
            .read("NIC_CSUM", _nic_csum)
            .read("FLOW", WordArg(), flows)
            .read("FLOW_ANNO", AnnoArg(4), flow_anno)
            .read("DIRECTION_ANNO", AnnoArg(1), direction_anno)
            .read("FLOW_ZERO", _flow_zero)
            .read("CARRIER", WordArg(), carrier)
            .read("PLACEMENT", WordArg(), placement)
            .read("BLANKS", blanks)
            .read("FENCE", _fence)
            .read("WAIT_NF", _wait_nf)
            .read("PORT", BoundedIntArg(0, 65535), _port)
            .complete() < 0)
        return -1;
    if (flow_anno >= 0)
        _flow_anno = ANNOTATIONINFO_OFFSET(flow_anno);
    if (direction_anno >= 0)
        _direction_anno = ANNOTATIONINFO_OFFSET(direction_anno);
    if ((i = one_of("WHEN_FULL", when_full, full, errh)) == 0)
        return -1;
    _opts.when_full = uint8_t(i);
    if ((i = one_of("PLACEMENT", placement, place, errh)) == 0)
        return -1;
    _field_opts.placement = uint8_t(i - 1);
    if (carrier) {
        if ((i = one_of("CARRIER", carrier, carriers, errh)) == 0)
            return -1;
        _opts.carrier = uint8_t(i - 1);
        _carrier_given = true;
    }
    if (flows && (_flow = one_of("FLOW", flows, flow, errh)) == 0)
        return -1;
    Vector<String> words;
    cp_spacevec(cp_unquote(checked), words);
    for (const String &word : words) {
        if ((i = one_of("CHECKED", word, protocols, errh)) == 0)
            return -1;
        _checked |= 1U << (i - 1);
    }
    if (_checked && _classify)
        return errh->error("CHECKED %s is for CLASSIFY false: with CLASSIFY true libnfmeta itself verifies",
                           checked.c_str());
    if (_nic_csum && !_classify)
        return errh->error("NIC_CSUM is for CLASSIFY true: with CLASSIFY false name in CHECKED what was checked");
    _opts.ring_size = ring;
    _opts.wait_us = wait;
    _opts.blanks = blanks;
    _shared = NfmetaShared::of(this, link);
    if (_shared->to)
        return errh->error("link %s: %s makes it already", link.c_str(), _shared->to->declaration().c_str());
    _shared->to = this;
    // What an NfmetaFlow that is configured after this asks for is added in initialize().
    return 0;
}

int
ToNfmeta::wait_for_nfs(ErrorHandler *errh)
{
    for (unsigned ms = 0; ms < _wait_nf * 1000; ms += 10) {
        int there = 0;
        for (int q = 0; q < _shared->queues.size(); q++)
            there += nfmeta_link_peer(_shared->link, q) == NFMETA_PEER_ALIVE;
        if (there == _shared->queues.size())
            return 0;
        usleep(10000);
    }
    return errh->error("link %s: within %u s there was not an NF at each of its %d queues",
                       _shared->name.c_str(), _wait_nf, _shared->queues.size());
}

int
ToNfmeta::initialize(ErrorHandler *errh)
{
    bool has_flows = false;

    if (!dpdk_enabled)
        return errh->error("link %s: click runs without DPDK: start it with --dpdk EAL-OPTIONS --",
                           _shared->name.c_str());
    if (nfmeta_walk(this, _checked, errh) < 0 || DPDKDevice::initialize(errh) != 0)
        return -1;
    if (_shared->add_threads(get_pushing_threads(), _queues, errh) < 0)
        return -1;
    for (FromNfmeta *from : _shared->froms)
        if (from->claim(errh) < 0)
            return -1;
    for (int q = 0; q < _shared->queues.size(); q++)
        if (!_shared->queues[q].from)
            return errh->error("link %s: no FromNfmeta(%s) serves queue %d", _shared->name.c_str(),
                               _shared->name.c_str(), q);
    for (int i = 0; i < _shared->nthreads(); i++)
        has_flows |= _shared->thread(i).has_flows;
    if (_flow == FLOW_AUTO)
        _flow = has_flows ? FLOW_TABLE : FLOW_NONE;
    if (_flow == FLOW_TABLE && !has_flows)
        return errh->error("link %s: FLOW TABLE, but there is no NfmetaFlow(%s, ...)",
                           _shared->name.c_str(), _shared->name.c_str());
    if (has_flows && !_carrier_given)
        _opts.carrier = NFMETA_CARRIER_RING;
    if (_opts.carrier != 0 && !has_flows)
        return errh->error("link %s: CARRIER, but there is no NfmetaFlow(%s, ...) that could tell of flows",
                           _shared->name.c_str(), _shared->name.c_str());
    if (_opts.carrier == NFMETA_CARRIER_INBAND && _opts.blanks == 0)
        return errh->error("link %s: CARRIER INBAND wants BLANKS", _shared->name.c_str());
    _pool = DPDKDevice::get_mpool(rte_socket_id());
    if (!_pool)
        return errh->error("link %s: there is no packet pool on socket %u", _shared->name.c_str(),
                           rte_socket_id());
    if (nfmeta_field_register(&_field_opts, &_shared->field) != 0)
        return errh->error("link %s: %s", _shared->name.c_str(), nfmeta_error());
    _wide = _shared->field.size > NFMETA_RECORD_CORE;
    // What a link of one queue needs for packets of known flows fits into two words.
    _lean = !_classify && _shared->field.size == NFMETA_RECORD_CORE &&
            _shared->field.placement == NFMETA_PLACE_DYNFIELD && _shared->queues.size() == int(_shared->pushing) &&
            (_flow == FLOW_NONE || _flow == FLOW_TABLE);
    fc_plain_init(&_plain, _checked);
    _opts.queues = uint16_t(_shared->queues.size());
    _opts.field = &_shared->field;
    _opts.pool = _opts.blanks ? _pool : nullptr;
    _opts.spares = _fence ? _opts.queues : 0;
    _shared->fence = _fence * rte_get_tsc_hz();
    _shared->carrier = _opts.carrier;
    if (nfmeta_link_create(_shared->name.c_str(), &_opts, &_shared->link) != 0) {
        _shared->link = nullptr;
        return errh->error("%s", nfmeta_error());
    }
    for (int i = 0; i < _shared->nthreads(); i++) {
        NfmetaShared::Thread &t = _shared->thread(i);
        if (!t.has_flows)
            continue;
        fc_flows_number(&t.flows, t.number, _shared->pushing);
        t.flows.queue = t.queue;
        t.flows.queues = t.queues;
        t.flows.link = _shared->link;
        if (_opts.carrier != 0 &&
            !(t.flows.told = static_cast<fc_told *>(calloc(t.queues, sizeof(fc_told)))))
            return errh->error("link %s: out of memory", _shared->name.c_str());
    }
    return _wait_nf ? wait_for_nfs(errh) : 0;
}

void
ToNfmeta::cleanup(CleanupStage)
{
    if (_shared)
        _shared->drop();
    _shared = nullptr;
}

// What sums of a burst grow by: the four bits of checksums of a record, each to 16.
static const uint64_t spread[16] = {
#define FC_SPREAD(i) \
    ((i) & 1) | uint64_t((i) & 2) << 15 | uint64_t((i) & 4) << 30 | uint64_t((i) & 8) << 45
    FC_SPREAD(0), FC_SPREAD(1), FC_SPREAD(2), FC_SPREAD(3), FC_SPREAD(4), FC_SPREAD(5), FC_SPREAD(6),
    FC_SPREAD(7), FC_SPREAD(8), FC_SPREAD(9), FC_SPREAD(10), FC_SPREAD(11), FC_SPREAD(12), FC_SPREAD(13),
    FC_SPREAD(14), FC_SPREAD(15),
#undef FC_SPREAD
};
static_assert(NFMETA_L3_CSUM_GOOD == 8 && NFMETA_L3_CSUM_BAD == 16 && NFMETA_L4_CSUM_GOOD == 32 &&
                  NFMETA_L4_CSUM_BAD == 64,
              "four bits side by side");

// The flow of a packet that has its record, and what does not fit into the core.
void
ToNfmeta::finish(NfmetaShared::Thread &t, Burst &b, Sums &sums, unsigned i)
{
    const Packet *p = b.p[i];
    nfmeta_record *r = &b.r[i];

    if (_wide) {
        const Timestamp &ts = p->timestamp_anno();
        r->port = uint16_t(_port);
        if (ts)
            r->timestamp = uint64_t(ts.sec()) * 1000000000 + ts.nsec();
    }
    sums.checksums += spread[r->flags / NFMETA_L3_CSUM_GOOD & 15];
    if (_flow == FLOW_NONE)
        return;
    uint32_t number = p->anno_u32(_flow_anno);
    int reverse = p->anno_u8(_direction_anno) & 1;
    if (_flow == FLOW_ANNO && (number != 0 || _flow_zero)) {
        // rewriters number anew in each thread
        uint32_t id = number * _shared->pushing + t.number;
        r->flags &= uint16_t(~NFMETA_FLOW_REVERSE);
        nfmeta_record_set_flow(r, id, 0, reverse, 0);
        sums.with_flow++;
    } else if (_flow == FLOW_TABLE && t.has_flows && number != 0) {
        fc_flow *flow = fc_find(&t.flows, number);
        if (flow) {
            b.queue[i] = fc_put_flow(&t.flows, flow, r, reverse, b.queue[i]);
            sums.with_flow++;
        }
    }
}

// Records that say what is known of the packets' bytes, and the queues of new flows.
void
ToNfmeta::classify(NfmetaShared::Thread &t, Burst &b, Sums &sums)
{
    nfmeta_flow_key keys[FC_BURST];
    const bool several = t.queues > 1;

    if (!_nic_csum) // the NIC has seen other bytes, perhaps
        for (unsigned i = 0; i < b.n; i++)
            b.m[i]->ol_flags &= ~(RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK |
                                  RTE_MBUF_F_RX_OUTER_L4_CKSUM_MASK | RTE_MBUF_F_RX_OUTER_IP_CKSUM_BAD);
    nfmeta_classify_burst(NFMETA_CLASSIFY_DEFAULT, b.m, uint16_t(b.n), b.r, several ? keys : nullptr);
    for (unsigned i = 0; i < b.n; i++) {
        b.queue[i] = several ? t.queue + fc_queue(fc_pair_of_key(&keys[i]), t.queues) : t.queue;
        finish(t, b, sums, i);
    }
}

// The same of one packet, from headers and annotations.
void
ToNfmeta::stamp_other(NfmetaShared::Thread &t, Burst &b, Sums &sums, unsigned i)
{
    const Packet *p = b.p[i];
    uint16_t l3 = nfmeta_l3_off(p);

    if (_wide)
        nfmeta_record_init(&b.r[i]);
    else
        fc_record_core(&b.r[i]);
    b.m[i]->packet_type = fc_stamp(&b.r[i], p->data(), p->length(), l3, _checked);
    b.queue[i] =
        t.queues > 1 ? t.queue + fc_queue(fc_pair(p->data(), p->length(), l3), t.queues) : t.queue;
    finish(t, b, sums, i);
    if (_lean) // send() need not look for those that have none yet
        nfmeta_record_set_burst(&_shared->field, &b.m[i], &b.r[i], 1);
}

// The same of a plain packet in a known flow.  false: it is none.
inline bool
ToNfmeta::stamp(NfmetaShared::Thread &t, const nfmeta_field &field, Sums &sums, const Packet *p,
                struct rte_mbuf *m)
{
    uint64_t core[2];
    nfmeta_record r;

    if (unlikely(p->network_header() != p->data() + FC_PLAIN_OFF))
        return false;
    uint32_t type = fc_plain(&_plain, p->data(), p->length(), core);
    if (unlikely(type == 0))
        return false;
    if (_flow == FLOW_TABLE) {
        if (unlikely(!t.has_flows || !fc_put_plain(&t.flows, p->anno_u32(_flow_anno), core,
                                                   p->anno_u8(_direction_anno) & 1)))
            return false;
        sums.with_flow++;
    } else if (fc_plain_reverse(p->data())) {
        core[0] |= FC_FLAG(NFMETA_FLOW_REVERSE);
    }
    m->packet_type = type;
    memcpy(&r, core, sizeof(core));
    nfmeta_record_set(&field, m, &r);
    sums.checksums += spread[core[0] / FC_FLAG(NFMETA_L3_CSUM_GOOD) & 15];
    return true;
}

/*
 * Hands over what is of several queues.  Those that are not accepted are counted, and
 * accepted[] says which they are.
 */
unsigned
ToNfmeta::send_apart(NfmetaShared::Thread &t, Burst &b, bool *accepted)
{
    struct rte_mbuf *m[FC_BURST];
    uint8_t at[FC_BURST];
    unsigned all = 0;

    for (uint16_t q = t.queue; q < t.queue + t.queues; q++) {
        uint16_t n = 0, sent;

        if (t.has_flows)
            fc_tell_new(&t.flows, q);
        for (unsigned i = 0; i < b.n; i++)
            if (b.queue[i] == q) {
                at[n] = uint8_t(i);
                m[n++] = b.m[i];
            }
        sent = n ? nfmeta_send_burst(_shared->link, q, m, n) : 0;
        for (uint16_t i = 0; i < sent; i++)
            accepted[at[i]] = true;
        all += sent;
    }
    return all;
}

// Hands the burst over; what is accepted is not the packets' any more.
void
ToNfmeta::send(NfmetaShared::Thread &t, Burst &b, const Sums &sums)
{
    bool accepted[FC_BURST];
    unsigned sent;

    t.c.ip_good += sums.checksums & 0xffff;
    t.c.ip_bad += sums.checksums >> 16 & 0xffff;
    t.c.l4_good += sums.checksums >> 32 & 0xffff;
    t.c.l4_bad += sums.checksums >> 48;
    if (_flow != FLOW_NONE) {
        t.c.with_flow += sums.with_flow;
        t.c.no_flow += b.n - sums.with_flow;
    }
    if (!_lean)
        nfmeta_record_set_burst(&_shared->field, b.m, b.r, uint16_t(b.n));
    if (likely(t.queues == 1)) {
        if (t.has_flows)
            fc_tell_new(&t.flows, t.queue);
        sent = nfmeta_send_burst(_shared->link, t.queue, b.m, uint16_t(b.n));
        if (likely(sent == b.n && b.copied == 0)) {
            t.c.sent += sent;
            t.c.sent_bytes += sums.bytes;
            t.spares.put(b.p, sent);
            return;
        }
        for (unsigned i = 0; i < b.n; i++)
            accepted[i] = i < sent;
    } else {
        memset(accepted, 0, sizeof(accepted));
        sent = send_apart(t, b, accepted);
    }
    t.c.sent += sent;
    t.c.refused += b.n - sent;
    t.c.sent_bytes += sums.bytes;
    BATCH_RECYCLE_START();
    for (unsigned i = 0; i < b.n; i++) {
        Packet *p = b.p[i];
        if (!accepted[i]) {
            t.c.sent_bytes -= p->length();
            if (b.copied >> i & 1)
                rte_pktmbuf_free(b.m[i]);
            else
                nfmeta_record_clear(&_shared->field, b.m[i]);
            b.refuse(p);
            continue;
        }
        if (!(b.copied >> i & 1))
            p->reset_buffer();
        BATCH_RECYCLE_PACKET_CONTEXT(p);
    }
    BATCH_RECYCLE_END();
}

void
ToNfmeta::push_batch(int, PacketBatch *batch)
{
    NfmetaShared::Thread &t = _shared->here();
    nfmeta_field core = _shared->field;
    unsigned n = 0;
    Sums sums;
    Burst b;

    // with _lean they are this: what is known here need not be asked for each packet
    core.placement = NFMETA_PLACE_DYNFIELD;
    core.size = NFMETA_RECORD_CORE;

    for (Packet *p = batch->first(), *next; p; p = next) {
        next = p->next();
        if (likely(next != nullptr)) // nearly always an mbuf
            rte_prefetch0(static_cast<char *>(next->destructor_argument()) + core.offset);
        struct rte_mbuf *m = nfmeta_own_mbuf(p);
        if (unlikely(!m)) {
            m = fc_copy(_pool, p->data(), p->length());
            if (m) {
                b.copied |= 1U << n;
                t.c.copied++;
            } else {
                t.c.no_mbuf++;
                b.refuse(p);
            }
        }
        if (likely(m != nullptr)) {
            b.p[n] = p;
            b.m[n] = m;
            sums.bytes += p->length();
            if (likely(_lean)) {
                if (unlikely(!stamp(t, core, sums, p, m)))
                    stamp_other(t, b, sums, n);
            } else if (!_classify) {
                stamp_other(t, b, sums, n);
            }
            n++;
        }
        if (n == FC_BURST || (!next && n != 0)) {
            b.n = n;
            if (_classify)
                classify(t, b, sums);
            send(t, b, sums);
            n = b.copied = 0;
            sums = Sums();
        }
    }
    if (b.refused) {
        b.refused_last->set_next(nullptr);
        b.refused->make_tail(b.refused_last, b.refused_n);
        checked_output_push_batch(0, b.refused);
    }
}

void
ToNfmeta::push(int, Packet *p)
{
    push_batch(0, PacketBatch::make_from_packet(p));
}

enum { H_COUNTS, H_IN_FLIGHT, H_LINK, H_QUEUES, H_CLOSE, H_RESET };

static const struct {
    const char *name;
    uint64_t NfmetaCounts::*counter;
} counters[] = {
    {"count", &NfmetaCounts::sent},
    {"byte_count", &NfmetaCounts::sent_bytes},
    {"refused", &NfmetaCounts::refused},
    {"copied", &NfmetaCounts::copied},
    {"no_mbuf", &NfmetaCounts::no_mbuf},
    {"with_flow", &NfmetaCounts::with_flow},
    {"no_flow", &NfmetaCounts::no_flow},
    {"ip_good", &NfmetaCounts::ip_good},
    {"ip_bad", &NfmetaCounts::ip_bad},
    {"l4_good", &NfmetaCounts::l4_good},
    {"l4_bad", &NfmetaCounts::l4_bad},
};
static const int ncounters = sizeof(counters) / sizeof(counters[0]);

String
ToNfmeta::read_handler(Element *e, void *thunk)
{
    ToNfmeta *to = static_cast<ToNfmeta *>(e);
    NfmetaShared *s = to->_shared;
    StringAccum sa;
    uint64_t n = 0;

    if (!s)
        return String();
    switch (intptr_t what = reinterpret_cast<intptr_t>(thunk)) {
    case H_COUNTS:
        for (int i = 0; i < ncounters; i++)
            sa << counters[i].name << ' ' << s->sum(counters[i].counter) << '\n';
        return sa.take_string();
    case H_IN_FLIGHT:
        for (int q = 0; s->link && q < s->queues.size(); q++)
            n += nfmeta_link_in_flight(s->link, q);
        return String(n);
    case H_LINK:
        return s->name;
    case H_QUEUES:
        for (int q = 0; s->link && q < s->queues.size(); q++) {
            struct nfmeta_link_stats st = {};
            st.sz = sizeof(st);
            nfmeta_link_stats(s->link, q, &st);
            sa << q << " thread " << s->queues[q].thread << " nfs " << st.epoch << " sent " << st.sent
               << " refused " << st.refused << " received " << st.received << " returned "
               << st.returned << " collected " << st.collected << " held " << st.held << '\n';
        }
        return sa.take_string();
    default:
        return String(s->sum(counters[what - 100].counter));
    }
}

int
ToNfmeta::write_handler(const String &, Element *e, void *thunk, ErrorHandler *)
{
    NfmetaShared *s = static_cast<ToNfmeta *>(e)->_shared;

    if (reinterpret_cast<intptr_t>(thunk) == H_RESET)
        s->reset();
    else if (s->link)
        nfmeta_link_close(s->link);
    return 0;
}

void
ToNfmeta::add_handlers()
{
    add_read_handler("counts", read_handler, H_COUNTS);
    add_read_handler("in_flight", read_handler, H_IN_FLIGHT);
    add_read_handler("link", read_handler, H_LINK);
    add_read_handler("queues", read_handler, H_QUEUES);
    for (int i = 0; i < ncounters; i++)
        add_read_handler(counters[i].name, read_handler, 100 + i);
    add_write_handler("close", write_handler, H_CLOSE, Handler::BUTTON);
    add_write_handler("reset_counts", write_handler, H_RESET, Handler::BUTTON);
}

CLICK_ENDDECLS
