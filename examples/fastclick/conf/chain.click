// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
//
// port -> NAT -> flows -> NF -> port
//
//   inside  --> NAT --+                        +--> outside
//                     +--> flows --> NF -------+
//   outside --> NAT --+                        +--> inside
//
// What the inside sends leaves with the address ADDRESS. The NF sees packets as they leave
// the NAT, with a record that was made for these bytes: libnfmeta verifies checksums behind
// the NAT (CLASSIFY true). Flows that the NF shunts pass by it, those it drops end at
// NfmetaAction.
//
//   click --dpdk -l 0 --file-prefix nfmeta -a PORT -a PORT -- chain.click ADDRESS=192.0.2.1

define($INSIDE 0, $OUTSIDE 1, $LINK ids, $ADDRESS 192.0.2.1, $WAIT_NF 0, $BUFFERS 65535, $BUFFER_SIZE 2176,
	$INSIDE_GATEWAY 02:00:00:00:00:01, $OUTSIDE_GATEWAY 02:00:00:00:00:02,
	$MAC 02:00:00:00:00:03);

require(package "nfmeta");
DPDKInfo(NB_SOCKET_MBUF $BUFFERS, MBUF_SIZE $BUFFER_SIZE);

inside :: FromDPDKDevice($INSIDE, CLEAR true, PROMISC true);
outside :: FromDPDKDevice($OUTSIDE, CLEAR true, PROMISC true);
to_inside :: EtherRewrite($MAC, $INSIDE_GATEWAY) -> ToDPDKDevice($INSIDE, BLOCKING true);
to_outside :: EtherRewrite($MAC, $OUTSIDE_GATEWAY) -> ToDPDKDevice($OUTSIDE, BLOCKING true);

// IPv4 alone is translated; the rest is not for this chain.
nat :: IPRewriter(pattern $ADDRESS 1024-65535# - - 0 1, drop);
inside -> MarkMACHeader -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader(CHECKSUM true)
	-> inside_ip :: IPClassifier(tcp or udp, -) -> nat;
outside -> MarkMACHeader -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader(CHECKSUM true)
	-> outside_ip :: IPClassifier(tcp or udp, -) -> [1] nat;
inside_ip[1], outside_ip[1] -> other :: Counter -> Discard;

// A flow is over some seconds after its end; REAP is how often that is looked for.
flows :: AggregateIPFlows(TCP_TIMEOUT 300, TCP_DONE_TIMEOUT 5, UDP_TIMEOUT 60, REAP 1,
	FRAGMENTS false);
told :: NfmetaFlow($LINK, flows);

nat, nat[1] -> SetTimestamp -> flows -> ether :: Unstrip(14)
	-> action :: NfmetaAction($LINK)
	-> to :: ToNfmeta($LINK, WHEN_FULL WAIT, WAIT 100000, WAIT_NF $WAIT_NF);

flows[1] -> ether; // later fragments have no flow

back :: FromNfmeta($LINK);
back, action[1] -> MarkIPHeader(14) -> way :: IPClassifier(src host $ADDRESS, -);
way -> to_outside;
way[1] -> to_inside;
