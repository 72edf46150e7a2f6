// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
#ifndef NFMETA_FASTCLICK_SHARED_HH
#define NFMETA_FASTCLICK_SHARED_HH
#include <click/bitvector.hh>
#include <click/dpdkdevice.hh>
#include <click/element.hh>
#include <click/packet_anno.hh>
#include <click/router.hh>
#include <click/string.hh>
#include <click/vector.hh>

#include "nfmeta-fastclick.h"

#if CLICK_PACKET_USE_DPDK || CLICK_PACKET_INSIDE_DPDK || !HAVE_ZEROCOPY || !HAVE_BATCH
# error "the nfmeta package is for FastClick with batches and zero copy, without --enable-dpdk-packet"
#endif

CLICK_DECLS

class FromNfmeta;
class ToNfmeta;

// Counters that several threads write: each its own.
struct alignas(64) NfmetaCounts {
    uint64_t sent, sent_bytes, refused, copied, no_mbuf, with_flow, no_flow;
    uint64_t ip_good, ip_bad, l4_good, l4_bad, unknown;
    uint64_t received, forwarded, backward, dropped, injected, no_way_back, linearised, too_big;
    uint64_t reclaimed, orphans, deaths, fenced, fenced_packets;
    uint64_t inspected, shunted, shunted_bytes, verdict_dropped;
};

/*
 * What the elements of one link share, by its name.  ToNfmeta makes the link when all
 * are configured.  A queue belongs to one thread: the one that pushes into ToNfmeta for it
 * sends, collects, and tells of its flows.
 */
class NfmetaShared { public:

    struct Thread {
        unsigned number = 0; // among the threads that push
        uint16_t queue = 0, queues = 0; // of the link: first, how many
        bool has_flows = false;         // an NfmetaFlow is at this thread
        fc_flows flows;
        NfmetaCounts c = {};
    };
    struct Queue {
        unsigned thread = 0;
        FromNfmeta *from = nullptr;
        uint64_t next_look = 0; // TSC
        uint64_t heartbeat = 0, moved = 0;
        int peer = NFMETA_PEER_NONE;
    };

    // The same for all who ask under this name; each calls drop() once, in cleanup().
    static NfmetaShared *of(Element *e, const String &name);
    void drop();

    // 0, or -1 and errh has said it.  Threads that push into ToNfmeta get queues.
    int add_threads(const Bitvector &b, int queues, ErrorHandler *errh);
    Thread &here() { return *_threads[click_current_cpu_id()]; }
    Thread &thread(unsigned i) { return *_threads[i]; }
    int nthreads() const { return _threads.size(); }
    uint64_t sum(uint64_t NfmetaCounts::*counter) const;
    void reset();
    // The link is closed, what is there is taken back, flows end, the link goes.
    void close();

    String name;
    ToNfmeta *to = nullptr;
    Vector<FromNfmeta *> froms;
    Vector<Queue> queues;
    nfmeta_link *link = nullptr;
    nfmeta_field field;
    uint64_t fence = 0; // TSC; 0: never
    unsigned pushing = 0;   // threads
    uint8_t carrier = 0;
    bool closed = false;

  private:

    Vector<Thread *> _threads;
    Router *_router;
    int _users = 0;
};

// The packet's own mbuf, with start and length as Click has them; null: it has to be copied.
inline struct rte_mbuf *
nfmeta_own_mbuf(Packet *p)
{
    if (unlikely(!DPDKDevice::is_dpdk_packet(p) || p->data_packet() || p->shared()))
        return nullptr;
    // Not from the buffer's address, as DPDKDevice::get_mbuf has it: that is wrong with a priv_size.
    struct rte_mbuf *m = static_cast<struct rte_mbuf *>(p->destructor_argument());
    const unsigned char *buf = static_cast<unsigned char *>(m->buf_addr);
    if (unlikely(!RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) != 1 || p->data() < buf ||
                 p->end_data() > buf + m->buf_len || p->length() > UINT16_MAX))
        return nullptr;
    if (unlikely(m->nb_segs != 1)) {
        // Click knows the first segment alone. What is behind it still belongs there, if its end is.
        if (p->end_data() != buf + m->data_off + m->data_len)
            return nullptr;
        m->pkt_len += p->length() - m->data_len;
        m->data_off = uint16_t(p->data() - buf);
        m->data_len = uint16_t(p->length());
        return m;
    }
    m->data_off = uint16_t(p->data() - buf);
    m->data_len = uint16_t(p->length());
    m->pkt_len = p->length();
    return m;
}

// Where Click says the IP header is.
inline uint16_t
nfmeta_l3_off(const Packet *p)
{
    int off;
    if (!p->has_network_header())
        return NFMETA_OFF_NONE;
    off = p->network_header_offset();
    return off >= 0 && off < NFMETA_OFF_NONE ? uint16_t(off) : NFMETA_OFF_NONE;
}

CLICK_ENDDECLS
#endif
