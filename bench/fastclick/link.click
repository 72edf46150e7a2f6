// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
//
// The same chain by a link: with a record on every packet, and flow state.
// FromDPDKRing sets no annotations, either.
// RING: as many packets may be on their way as fit into both rings of ring.click.
define($BUFFERS 32767);
require(package "nfmeta");
DPDKInfo(NB_SOCKET_MBUF $BUFFERS);
flows :: AggregateIPFlows(FRAGMENTS false);
told :: NfmetaFlow(ids, flows);
FromDPDKDevice(0, CLEAR true) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader(CHECKSUM true)
	-> ip :: IPClassifier(tcp, udp);
ip -> CheckTCPHeader -> flows;
ip[1] -> CheckUDPHeader -> flows;
flows -> Unstrip(14) -> to :: ToNfmeta(ids, CLASSIFY false, CHECKED "IP TCP UDP", RING 2048);
FromNfmeta(ids, ANNOTATE false) -> done :: Counter -> Discard;
