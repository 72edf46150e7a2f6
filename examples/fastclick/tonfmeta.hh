// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
#ifndef NFMETA_FASTCLICK_TONFMETA_HH
#define NFMETA_FASTCLICK_TONFMETA_HH
#include <click/batchelement.hh>
#include "shared.hh"
CLICK_DECLS

/*
=c

ToNfmeta(LINK [, I<keywords>])

=s netdevices

makes a link of libnfmeta and hands packets to its NF, each with a record

=d

Packets have to begin with the Ethernet header. Those that the link does not accept come out of
the output, if it is connected; else they are dropped. The packets come back at FromNfmeta(LINK).
A packet whose buffer is not a DPDK one, or is shared (Tee), is copied into one.

Keywords are:

=over 8

=item QUEUES

Queues of the link, the same number for every thread that pushes. Default: one per thread. With
more, the two IP addresses choose; a flow stays at its queue.

=item RING

Packets that can be at the NF per queue, a power of 2. Default 1024.

=item WHEN_FULL

DROP (default), WAIT (for room, at most WAIT microseconds; default 1000) or BYPASS: what is not
accepted was not inspected and may go on; packets of an NF that died go on, too.

=item CLASSIFY

true (default): libnfmeta looks at every packet as it is now, and verifies the checksums. false:
offsets come from the network header annotation, and checksums are good that CHECKED names.

=item CHECKED

With CLASSIFY false: IP, TCP, UDP, ICMP: elements upstream (CheckIPHeader with CHECKSUM true,
CheckTCPHeader, ...) let no packet with a wrong checksum of these pass. It is an error if an
element between them and here may write to the packet.

=item NIC_CSUM

With CLASSIFY true: believe the NIC's verdict on checksums instead of computing them. Not for
packets that were written to since. Default false.

=item FLOW

TABLE: flows of the NfmetaFlow of this link (default, if there is one); ANNO: the flow id is the
annotation (with several threads: times their number, plus the thread's), and nobody is told when
the flow ends; NONE.

=item FLOW_ANNO, DIRECTION_ANNO

Annotations with the flow's number (4 bytes; default AGGREGATE) and direction (1 byte, 0: that of
the first packet; default PAINT). A number 0 is no flow, unless FLOW_ZERO is true.

=item CARRIER

How the NF is told of flows: RING (default, if there is an NfmetaFlow), INBAND, NONE.

=item PLACEMENT, BLANKS, FENCE, WAIT_NF, PORT

Of the record: AUTO (default), DYNFIELD, UDATA64, HEADROOM. Blanks for packets that the NF makes, 0.
Seconds after which an NF that stands still is cut off, 0: never. Seconds to wait at the start for an
NF at every queue, 0. The port number in the record, 0.

=back

=h close write-only

Nothing is sent any more; NFs are told to end.

=h counts read-only

All counters, one a line. Each is a handler of its own, too; "reset_counts" sets them to 0.

=a FromNfmeta, NfmetaFlow, NfmetaAction, AggregateIPFlows, CheckIPHeader */

class ToNfmeta : public BatchElement { public:

    ToNfmeta() CLICK_COLD;

    const char *class_name() const override { return "ToNfmeta"; }
    const char *port_count() const override { return "1/0-1"; }
    const char *processing() const override { return PUSH; }
    int configure_phase() const override { return CONFIGURE_PHASE_PRIVILEGED + 2; }
    bool can_live_reconfigure() const { return false; }
    bool is_mt_safe() override { return true; }

    int configure(Vector<String> &, ErrorHandler *) override CLICK_COLD;
    int initialize(ErrorHandler *) override CLICK_COLD;
    void cleanup(CleanupStage) override CLICK_COLD;
    void add_handlers() override CLICK_COLD;

    void push(int, Packet *) override;
    void push_batch(int, PacketBatch *) override;

    enum { FLOW_AUTO, FLOW_TABLE, FLOW_ANNO, FLOW_NONE };
    int queues() const { return _queues; } // as configured; 0: one per thread

  private:

    struct Burst;
    struct Sums;

    void classify(NfmetaShared::Thread &, Burst &, Sums &);
    bool stamp(NfmetaShared::Thread &, const nfmeta_field &, Sums &, const Packet *, struct rte_mbuf *);
    void stamp_other(NfmetaShared::Thread &, Burst &, Sums &, unsigned i);
    void finish(NfmetaShared::Thread &, Burst &, Sums &, unsigned i);
    void send(NfmetaShared::Thread &, Burst &, const Sums &);
    unsigned send_apart(NfmetaShared::Thread &, Burst &, bool *accepted);
    int wait_for_nfs(ErrorHandler *);

    NfmetaShared *_shared = nullptr;
    struct rte_mempool *_pool = nullptr;
    nfmeta_link_opts _opts;
    nfmeta_field_opts _field_opts;
    int _queues = 0, _flow = FLOW_AUTO;
    int _flow_anno, _direction_anno;
    fc_plain_words _plain;
    bool _wide = false; // the record is more than the core
    bool _lean = false; // the core of a plain packet in a known flow is all there is to write
    bool _classify = true, _nic_csum = false, _flow_zero = false, _carrier_given = false;
    unsigned _checked = 0, _fence = 0, _wait_nf = 0, _port = 0;

    static String read_handler(Element *, void *);
    static int write_handler(const String &, Element *, void *, ErrorHandler *);
};

CLICK_ENDDECLS
#endif
