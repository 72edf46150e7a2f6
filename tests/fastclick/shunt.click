// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
//
// Slow enough that verdicts come before the flow is over.
define($WAIT_NF 0, $BUFFERS 16383);
require(package "nfmeta");
DPDKInfo(NB_SOCKET_MBUF $BUFFERS);

flows :: AggregateIPFlows(FRAGMENTS false);
told :: NfmetaFlow(ids, flows);
out :: ToDPDKDevice(1, BLOCKING true);
FromDPDKDevice(0, CLEAR true) -> Queue(65536) -> RatedUnqueue(500) -> in :: Counter
	-> Classifier(12/0800) -> Strip(14) -> CheckIPHeader(CHECKSUM true) -> SetTimestamp -> flows
	-> Unstrip(14) -> ip :: Counter -> action :: NfmetaAction(ids) -> to :: ToNfmeta(ids, WHEN_FULL WAIT, WAIT 100000,
	WAIT_NF $WAIT_NF);
FromNfmeta(ids) -> out;
action[1] -> out;
