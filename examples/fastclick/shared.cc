// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
#include <click/config.h>
#include "shared.hh"
#include <click/error.hh>
#include <click/master.hh>
#include <new>
#include <stdlib.h>
#include <unistd.h>
CLICK_DECLS

#define PATIENCE_MS 3000

NfmetaShared *
NfmetaShared::of(Element *e, const String &name)
{
    void *&place = e->router()->force_attachment("nfmeta.link." + name);

    if (!place) {
        NfmetaShared *s = new NfmetaShared;
        s->name = name;
        s->_router = e->router();
        for (int i = 0; i < e->master()->nthreads(); i++) {
            void *memory = aligned_alloc(64, (sizeof(Thread) + 63) & ~size_t(63));
            s->_threads.push_back(new (memory) Thread);
        }
        place = s;
    }
    NfmetaShared *s = static_cast<NfmetaShared *>(place);
    s->_users++;
    return s;
}

void
NfmetaShared::Spares::drop()
{
    while (Packet *p = _head) {
        _head = p->next();
        p->reset_buffer();
        p->kill();
    }
    _n = 0;
}

void
NfmetaShared::drop()
{
    close();
    if (--_users > 0)
        return;
    for (Thread *t : _threads) {
        t->spares.drop();
        if (t->has_flows)
            fc_flows_free(&t->flows);
        t->~Thread();
        free(t);
    }
    _router->set_attachment("nfmeta.link." + name, nullptr);
    delete this;
}

int
NfmetaShared::add_threads(const Bitvector &b, int n, ErrorHandler *errh)
{
    int weight = b.weight(), at = 0;

    if (weight == 0)
        return errh->error("link %s: no thread pushes packets into it", name.c_str());
    if (n == 0)
        n = weight;
    if (n % weight != 0 || n > NFMETA_QUEUES_MAX)
        return errh->error("link %s: QUEUES %d: %d threads push packets into it, and each needs as "
                           "many queues as the others, at most %d in all",
                           name.c_str(), n, weight, NFMETA_QUEUES_MAX);
    queues.resize(n);
    for (int i = 0; i < b.size() && i < _threads.size(); i++) {
        if (!b[i])
            continue;
        _threads[i]->number = pushing++;
        _threads[i]->queue = uint16_t(at);
        _threads[i]->queues = uint16_t(n / weight);
        for (int q = 0; q < n / weight; q++)
            queues[at++].thread = i;
    }
    return 0;
}

uint64_t
NfmetaShared::sum(uint64_t NfmetaCounts::*counter) const
{
    uint64_t all = 0;
    for (Thread *t : _threads)
        all += t->c.*counter;
    return all;
}

void
NfmetaShared::reset()
{
    for (Thread *t : _threads)
        t->c = NfmetaCounts();
}

// The driver has stopped: this thread is all there is.
void
NfmetaShared::close()
{
    struct rte_mbuf *m[FC_BURST];
    uint8_t how[FC_BURST];
    uint64_t orphans = 0, left = 0;
    bool busy = true;

    closed = true;
    if (!link)
        return;
    for (Thread *t : _threads)
        if (t->has_flows) {
            fc_end_all(&t->flows, NFMETA_END_STOPPED);
            fc_flush(&t->flows);
            for (uint16_t q = t->queue; t->flows.told && q < t->queue + t->queues; q++)
                nfmeta_flow_send(link, q, NFMETA_MSG_HEARTBEAT, nullptr, 0);
        }
    nfmeta_link_close(link);
    for (int ms = 0; busy && ms < PATIENCE_MS; ms++) {
        busy = false;
        for (int q = 0; q < queues.size(); q++) {
            uint16_t n = nfmeta_collect_burst(link, q, m, how, FC_BURST);
            rte_pktmbuf_free_bulk(m, n);
            Thread *t = _threads[queues[q].thread];
            if (t->has_flows)
                fc_collect(&t->flows, q, rte_get_tsc_cycles(), rte_get_tsc_hz());
            // nobody is there: nothing comes any more
            busy |= n != 0 || (nfmeta_link_peer(link, q) == NFMETA_PEER_ALIVE &&
                               (nfmeta_link_in_flight(link, q) != 0 ||
                                (t->has_flows && !fc_settled(&t->flows))));
        }
        usleep(1000);
    }
    for (int q = 0; q < queues.size(); q++)
        left += nfmeta_link_in_flight(link, q);
    if (left != 0)
        click_chatter("nfmeta: link %s: %llu packets were at NFs when it was closed", name.c_str(),
                      (unsigned long long)left);
    for (int ms = 0; nfmeta_link_destroy(link, &orphans) == -EBUSY; ms++) {
        if (ms == PATIENCE_MS) {
            click_chatter("nfmeta: link %s: an NF does not leave: it is left as it is", name.c_str());
            break;
        }
        usleep(1000);
    }
    link = nullptr;
}

CLICK_ENDDECLS
