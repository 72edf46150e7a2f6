#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Do flows end when, and why, tshark's packets say?

usage: compare-ends.py CAPTURE FLOWS.csv SEEN.csv PACKET CLOSED OTHER

FLOWS.csv: the splitter's; SEEN.csv: the inspector's, which was told why a flow ended.  An ARP
takes PACKET seconds; connections end CLOSED seconds after FINs from both ends or an RST, all
others OTHER seconds after their last packet, or when tshark has a new one at their ports.
"""
import collections
import csv
import ipaddress
import subprocess
import sys

FIELDS = ["tcp.stream", "udp.stream", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst", "tcp.srcport",
          "udp.srcport", "tcp.dstport", "udp.dstport", "tcp.flags.fin", "tcp.flags.reset"]


class Stream:
    def __init__(self, ends):
        self.ends = ends
        self.packets = collections.Counter()
        self.fins = set()
        self.reset = False
        self.first = self.last = 0


def of_tshark(capture, arp):
    command = ["tshark", "-n", "-r", capture, "-T", "fields", "-E", "occurrence=f"]
    for field in FIELDS:
        command += ["-e", field]
    text = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                          text=True).stdout
    streams, now = {}, 0.0
    for line in text.splitlines():
        w = line.split("\t")
        if not w[0] and not w[1]:
            now += arp
            continue
        src = ipaddress.ip_address(w[2] or w[3]), int(w[6] or w[7])
        dst = ipaddress.ip_address(w[4] or w[5]), int(w[8] or w[9])
        proto = 6 if w[0] else 17
        s = streams.setdefault((proto, w[0] or w[1]), Stream(tuple(sorted((src, dst)))))
        s.proto = proto
        s.first = now if not s.packets else s.first
        s.last = now
        s.packets[src] += 1
        s.reset |= w[11] in ("1", "True")
        if w[10] in ("1", "True"):
            s.fins.add(src)
    return list(streams.values())


def expected(streams, closed, other):
    flows, at = collections.Counter(), {}
    for s in streams:
        at.setdefault((s.proto, s.ends), []).append(s)
    for (proto, ends), ss in at.items():
        for s, after in zip(ss, ss[1:] + [None]):
            is_closed = s.reset or len(s.fins) == 2
            reason = "timeout" if not is_closed else "reset" if s.reset else "closed"
            if after is not None and after.first - s.last < (closed if is_closed else other):
                reason = "reused"
            flows[proto, *ends, s.packets[ends[0]], s.packets[ends[1]], reason] += 1
    return flows


def rows(path):
    with open(path, newline="", encoding="ascii") as f:
        return list(csv.DictReader(f))


def told(flows, seen):
    reason = {(r["id"], r["generation"]): r["reason"] for r in rows(seen)}
    out = collections.Counter()
    for r in rows(flows):
        ends = [(ipaddress.ip_address(r["addr_" + e]), int(r["port_" + e]), int(r["packets_" + e]))
                for e in "ab"]
        (a, x, n), (b, y, m) = sorted(ends)
        out[int(r["proto"]), (a, x), (b, y), n, m, reason.get((r["id"], r["generation"]))] += 1
    return out


def main():
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    arp, closed, other = map(float, sys.argv[4:])
    theirs = expected(of_tshark(sys.argv[1], arp), closed, other)
    ours = told(sys.argv[2], sys.argv[3])
    for title, difference in (("only tshark", theirs - ours), ("only the splitter", ours - theirs)):
        for (proto, a, b, x, y, reason), n in sorted(difference.items(), key=str)[:10]:
            print("%s: %d x proto %d, %s %d <-> %s %d, packets %d and %d, %s"
                  % (title, n, proto, *a, *b, x, y, reason))
    reasons = collections.Counter()
    for key, n in ours.items():
        reasons[key[-1]] += n
    print("flows: tshark %d, splitter %d; ended by: %s"
          % (theirs.total(), ours.total(),
             ", ".join("%s %d" % (r, n) for r, n in sorted(reasons.items(), key=str))))
    sys.exit(0 if theirs == ours and ours else 1)


if __name__ == "__main__":
    main()
