// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
#ifndef NFMETA_FASTCLICK_NFMETAACTION_HH
#define NFMETA_FASTCLICK_NFMETAACTION_HH
#include <click/batchelement.hh>
#include "shared.hh"
CLICK_DECLS

/*
=c

NfmetaAction(LINK [, I<keywords>])

=s netdevices

does what the NF of a link decided about the flow of a packet

=d

To be put between AggregateIPFlows and ToNfmeta. Output 0: packets for the NF. Output 1: those of
flows that the NF has shunted; they pass by it. Output 2, if connected: those of flows that it
drops; else they are dropped here. What passes by is told to the NF when the flow ends.

A shunted packet may overtake packets of its flow that are at the NF at that moment.

=over 8

=item FLOW_ANNO, DIRECTION_ANNO

As in ToNfmeta.

=back

=h inspected, shunted, shunted_bytes, dropped read-only

Packets; bytes.

=a NfmetaFlow, ToNfmeta */

class NfmetaAction : public BatchElement { public:

    NfmetaAction() CLICK_COLD;

    const char *class_name() const override { return "NfmetaAction"; }
    const char *port_count() const override { return "1/2-3"; }
    const char *processing() const override { return PUSH; }
    bool is_mt_safe() override { return true; }

    int configure(Vector<String> &, ErrorHandler *) override CLICK_COLD;
    void cleanup(CleanupStage) override CLICK_COLD;
    void add_handlers() override CLICK_COLD;

    void push(int, Packet *) override;
    void push_batch(int, PacketBatch *) override;

  private:

    int decide(NfmetaShared::Thread &, const Packet *, uint64_t now);

    NfmetaShared *_shared = nullptr;
    int _flow_anno, _direction_anno;

    static String read_handler(Element *, void *);
    static int write_handler(const String &, Element *, void *, ErrorHandler *);
};

CLICK_ENDDECLS
#endif
