#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Are Suricata's flows those of the splitter?

usage: flows.py [--flows-only] FLOWS.csv EVE.json

TCP and UDP, not the fragments: every flow of the one is one of the other, with its VLANs,
its packets and its bytes in both directions (Suricata's are with those that passed by it),
and of the same name: id and generation. --flows-only: without packets and bytes.

Left out on both sides: ICMP (an error belongs to another flow for Suricata, to one of its
own for the splitter), fragments (Suricata counts the datagram), and tunnels' insides, which
the splitter does not look into: a flow with packets of none of the splitter's.
"""
import collections
import csv
import ipaddress
import json
import sys


def end(address, port):
    return ipaddress.ip_address(address), int(port)


def flow(name, proto, vlans, a, b):
    """Ends in a fixed order with what each sent."""
    a, b = sorted((a, b), key=lambda e: (e[0][0].version, e[0][0], e[0][1]))
    while vlans and vlans[-1] == 0:
        vlans = vlans[:-1]
    return name, proto, tuple(vlans), a, b


def of_splitter(path, bare):
    flows = collections.Counter()
    with open(path, newline="", encoding="ascii") as f:
        for r in csv.DictReader(f):
            if r["proto"] not in ("6", "17") or r["fragment"] == "1":
                continue
            vlans = [int(r[k]) for k in ("vlan_outer", "vlan_inner")]
            a = (end(r["addr_a"], r["port_a"]),) + (() if bare else (int(r["packets_a"]),
                                                                     int(r["bytes_a"])))
            b = (end(r["addr_b"], r["port_b"]),) + (() if bare else (int(r["packets_b"]),
                                                                     int(r["bytes_b"])))
            flows[flow((int(r["id"]), int(r["generation"])), r["proto"], vlans, a, b)] += 1
    return flows


def of_suricata(path, bare):
    flows = collections.Counter()
    with open(path, encoding="utf-8") as f:
        for line in f:
            r = json.loads(line)
            if r["event_type"] != "flow" or r.get("proto") not in ("TCP", "UDP"):
                continue
            n = r["flow"]
            a = (end(r["src_ip"], r["src_port"]),) + (() if bare else (
                n["pkts_toserver"], n["bytes_toserver"]))
            b = (end(r["dest_ip"], r["dest_port"]),) + (() if bare else (
                n["pkts_toclient"], n["bytes_toclient"]))
            vlans = r.get("vlan", [])[:2]
            name = r.get("metadata", {}).get("flowints", {})
            name = name.get("nfmeta.flow_id"), name.get("nfmeta.generation")
            flows[flow(name, "6" if r["proto"] == "TCP" else "17", vlans, a, b)] += 1
    return flows


def text(f):
    name, proto, vlans, a, b = f
    return "%s.%s proto %s, VLANs %s: %s" % (*name, proto, list(vlans), " <-> ".join(
        "%s %d, %s packets, %s bytes" % (*e[0], *(e[1:] or ("?", "?"))) for e in (a, b)))


def main():
    args = sys.argv[1:]
    bare = args[:1] == ["--flows-only"]
    if len(args) != 2 + bare:
        sys.exit(__doc__)
    theirs, ours = of_splitter(args[-2], bare), of_suricata(args[-1], bare)
    bad = 0
    for title, difference in (("only the splitter's", theirs - ours),
                              ("only Suricata's", ours - theirs)):
        bad += sum(difference.values())
        for f, n in sorted(difference.items(), key=str)[:8]:
            print("%s: %d x %s" % (title, n, text(f)))
    print("flows: splitter %d, Suricata %d, differ %d"
          % (sum(theirs.values()), sum(ours.values()), bad))
    sys.exit(bad != 0 or not theirs)


if __name__ == "__main__":
    main()
