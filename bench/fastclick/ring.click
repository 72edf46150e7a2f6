// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
//
// The chain by FastClick's own rings: nothing that was found out here reaches the NF.
define($BUFFERS 32767);
DPDKInfo(NB_SOCKET_MBUF $BUFFERS, RING_SIZE 1024);
flows :: AggregateIPFlows(FRAGMENTS false);
FromDPDKDevice(0, CLEAR true) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader(CHECKSUM true)
	-> ip :: IPClassifier(tcp, udp);
ip -> CheckTCPHeader -> flows;
ip[1] -> CheckUDPHeader -> flows;
flows -> Unstrip(14) -> ToDPDKRing(0, FROM_PROC fc, TO_PROC nf, SP_ENQ true, SC_DEQ true, NDESC 1024, TIMEOUT -1);
FromDPDKRing(0, FROM_PROC nf, TO_PROC fc, SP_ENQ true, SC_DEQ true, NDESC 1024) -> done :: Counter -> Discard;
