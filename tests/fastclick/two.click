// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
//
// Two ports, each with a thread, a flow table, a queue of the link and a way out of its own.
define($WAIT_NF 0, $BUFFERS 16383);
require(package "nfmeta");
DPDKInfo(NB_SOCKET_MBUF $BUFFERS);

in0 :: FromDPDKDevice(0, CLEAR true, THREADOFFSET 0, MAXTHREADS 1);
in1 :: FromDPDKDevice(1, CLEAR true, THREADOFFSET 1, MAXTHREADS 1);
flows0 :: AggregateIPFlows(FRAGMENTS false);
flows1 :: AggregateIPFlows(FRAGMENTS false);
told0 :: NfmetaFlow(ids, flows0);
told1 :: NfmetaFlow(ids, flows1);
to :: ToNfmeta(ids, WHEN_FULL WAIT, WAIT 100000, WAIT_NF $WAIT_NF);

in0 -> ether0 :: Classifier(12/0800, -) -> Strip(14) -> MarkIPHeader -> SetTimestamp -> flows0;
in1 -> ether1 :: Classifier(12/0800, -) -> Strip(14) -> MarkIPHeader -> SetTimestamp -> flows1;
flows0, flows0[1] -> Unstrip(14) -> to;
flows1, flows1[1] -> Unstrip(14) -> to;
ether0[1], ether1[1] -> to;

back0 :: FromNfmeta(ids, QUEUES 0) -> ToDPDKDevice(2, BLOCKING true);
back1 :: FromNfmeta(ids, QUEUES 1) -> ToDPDKDevice(3, BLOCKING true);
