// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
//
// Load balancer: the flows of a port, divided among NFS NFs (or workers of one, as Suricata's).
//
//                        +--> queue 0 --> NF --+
//   port --> flows ------+--> queue 1 --> NF --+--> other port
//                        +--> ...              |
//
// The two addresses choose the queue, so both directions of a flow meet the same NF. Each NF
// attaches to a queue of its own; one that dies or is missing does not stop the others: with
// WHEN_FULL BYPASS its packets go on uninspected. (CheckIPHeader cuts off Ethernet's padding, here
// as in any Click.)
//
//   click --dpdk -l 0 --file-prefix nfmeta -a PORT -a PORT -- balance.click NFS=3

define($IN 0, $OUT 1, $LINK ids, $NFS 2, $WHEN_FULL BYPASS, $WAIT_NF 0, $BUFFERS 65535, $BUFFER_SIZE 2176);

require(package "nfmeta");
DPDKInfo(NB_SOCKET_MBUF $BUFFERS, MBUF_SIZE $BUFFER_SIZE);

out :: ToDPDKDevice($OUT, BLOCKING true);
flows :: AggregateIPFlows(TCP_TIMEOUT 300, TCP_DONE_TIMEOUT 5, UDP_TIMEOUT 60, REAP 1,
	FRAGMENTS false);
told :: NfmetaFlow($LINK, flows);
to :: ToNfmeta($LINK, QUEUES $NFS, WHEN_FULL $WHEN_FULL, WAIT 100000, FENCE 5, WAIT_NF $WAIT_NF);

FromDPDKDevice($IN, CLEAR true, PROMISC true) -> MarkMACHeader -> ether :: Classifier(12/0800, -)
	-> Strip(14) -> ip :: CheckIPHeader(CHECKSUM false) -> SetTimestamp -> flows;
flows -> rest :: Unstrip(14) -> to;
flows[1] -> rest;
ip[1] -> rest;
ether[1] -> to;

to -> bypassed :: Counter -> out;
back :: FromNfmeta($LINK) -> out;
