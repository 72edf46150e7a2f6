// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
//
// IDS tap: every packet goes on at once, and a copy of it to an NF that only looks.
//
//   port --> Tee --> other port
//             +--> checks --> flows --> NF --> freed
//
// Tee makes two packets of one buffer; what the port has not sent yet ToNfmeta copies into a
// buffer of its own, so that the NF has its packets as long as it wants. When it is too slow
// it misses some (refused), and nobody else waits. Checksums are verified here by Click's own
// elements, and CHECKED says so: nothing between them and ToNfmeta may write to packets, or
// click refuses.
//
//   click --dpdk -l 0 --file-prefix nfmeta -a PORT -a PORT -- tap.click

define($IN 0, $OUT 1, $LINK ids, $WHEN_FULL DROP, $WAIT_NF 0, $BUFFERS 65535, $BUFFER_SIZE 2176);

require(package "nfmeta");
DPDKInfo(NB_SOCKET_MBUF $BUFFERS, MBUF_SIZE $BUFFER_SIZE);

FromDPDKDevice($IN, CLEAR true, PROMISC true) -> SetTimestamp
	-> tee :: Tee -> ToDPDKDevice($OUT, BLOCKING true);

flows :: AggregateIPFlows(TCP_TIMEOUT 300, TCP_DONE_TIMEOUT 5, UDP_TIMEOUT 60, REAP 1,
	FRAGMENTS false);
told :: NfmetaFlow($LINK, flows);
to :: ToNfmeta($LINK, CLASSIFY false, CHECKED "IP TCP UDP", WHEN_FULL $WHEN_FULL,
	WAIT 100000, WAIT_NF $WAIT_NF);

tee[1] -> MarkMACHeader -> ether :: Classifier(12/0800, -) -> Strip(14)
	-> CheckIPHeader(CHECKSUM true) -> ip :: IPClassifier(tcp, udp, -);
// A fragment's checksum is the whole datagram's: nothing is known, and nothing promised.
ip -> tcp :: IPClassifier(ip unfrag, -) -> CheckTCPHeader -> flows;
ip[1] -> udp :: IPClassifier(ip unfrag, -) -> CheckUDPHeader -> flows;
tcp[1], udp[1], ip[2] -> rest :: Unstrip(14);
flows -> rest;
flows[1] -> rest;
ether[1], rest -> to;

back :: FromNfmeta($LINK) -> Discard;
