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

    /*
     * Click's packets whose mbufs were handed over, for those that come back: without the way
     * through Click's pool, which destroys and makes them one by one.
     */
    class Spares { public:

        // Nobody else has them, and their buffers are not theirs any more.
        void put(Packet **p, unsigned n);
        // A packet around the mbuf, which has one segment; annotations are clear.
        WritablePacket *make(struct rte_mbuf *m);
        void drop();

      private:

        Packet *_head = nullptr;
        unsigned _n = 0;
    };

    struct Thread {
        unsigned number = 0; // among the threads that push
        uint16_t queue = 0, queues = 0; // of the link: first, how many
        bool has_flows = false;         // an NfmetaFlow is at this thread
        fc_flows flows;
        Spares spares;
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
                 p->end_data() > buf + m->buf_len))
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

// Click's pool takes what is above.  Where Click counts references to flows by packet, its own way.
#if HAVE_FLOW_DYNAMIC
# define NFMETA_SPARES 0
#else
# define NFMETA_SPARES 512
#endif

inline void
NfmetaShared::Spares::put(Packet **p, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        p[i]->set_next(_head);
        _head = p[i];
    }
    _n += n;
    if (unlikely(_n > NFMETA_SPARES))
        drop();
}

inline WritablePacket *
NfmetaShared::Spares::make(struct rte_mbuf *m)
{
    WritablePacket *p = static_cast<WritablePacket *>(_head);

    if (unlikely(!p))
        return Packet::make(rte_pktmbuf_mtod(m, unsigned char *), rte_pktmbuf_data_len(m),
                            DPDKDevice::free_pkt, m, rte_pktmbuf_headroom(m), rte_pktmbuf_tailroom(m), true);
    _head = p->next();
    _n--;
    p->initialize(false);
    // clear_annotations(true) in parts: all at once compilers make a "rep stos" of it, which is slow
    p->clear_annotations(false);
    p->set_packet_type_anno(Packet::HOST);
    p->set_device_anno(nullptr);
    p->set_timestamp_anno(Timestamp());
    p->clear_mac_header();
    p->clear_network_header();
    p->clear_transport_header();
    p->set_next(nullptr);
    p->set_prev(nullptr);
    p->set_buffer(static_cast<unsigned char *>(m->buf_addr), m->buf_len);
    p->set_data(rte_pktmbuf_mtod(m, unsigned char *));
    p->set_data_length(rte_pktmbuf_data_len(m));
    p->set_buffer_destructor(DPDKDevice::free_pkt);
    p->set_destructor_argument(m);
    return p;
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
