#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Are the splitter's TCP and UDP flows those that tshark counts?

usage: compare-flows.py [--heads] CAPTURE FLOWS.csv

Runs "tshark -q -z conv,tcp -z conv,udp" and compares the number of flows, and
for every flow its two ends and the packets of each direction.

tshark joins fragments and counts a datagram when it is whole; the splitter
counts its head, and the other fragments as flows of their own, which are left
out here.  For whole datagrams that is the same.  --heads tells tshark not to
join fragments: it counts heads then, of datagrams that are never whole, too.
"""
import collections
import csv
import ipaddress
import subprocess
import sys


def end(address, port):
    return ipaddress.ip_address(address), int(port)


def flow(proto, a, b, from_a, from_b):
    """Ends in a fixed order, the packets with them."""
    (a, x), (b, y) = sorted(((a, from_a), (b, from_b)),
                            key=lambda e: (e[0][0].version, e[0][0], e[0][1]))
    return proto, a, b, x, y


def of_tshark(capture, heads):
    options = ["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"] if heads else []
    text = subprocess.run(["tshark", *options, "-r", capture, "-q", "-z", "conv,tcp",
                           "-z", "conv,udp"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                          text=True).stdout
    flows = collections.Counter()
    proto = None
    for line in text.splitlines():
        if line.endswith("Conversations"):
            proto = {"TCP": 6, "UDP": 17}[line.split()[0]]
        words = line.split()
        if len(words) < 5 or words[1] != "<->":
            continue
        # A <-> B  frames bytes unit  frames bytes unit  ...: first those from B
        a, b = (end(*w.rsplit(":", 1)) for w in (words[0], words[2]))
        flows[flow(proto, a, b, int(words[6]), int(words[3]))] += 1
    return flows


def of_splitter(path):
    flows = collections.Counter()
    with open(path, newline="", encoding="ascii") as f:
        for row in csv.DictReader(f):
            if row["proto"] not in ("6", "17") or row["fragment"] == "1":
                continue
            flows[flow(int(row["proto"]), end(row["addr_a"], row["port_a"]),
                       end(row["addr_b"], row["port_b"]), int(row["packets_a"]),
                       int(row["packets_b"]))] += 1
    return flows


def main():
    args = sys.argv[1:]
    heads = args[:1] == ["--heads"]
    if len(args) != 2 + heads:
        sys.exit(__doc__)
    theirs, ours = of_tshark(args[-2], heads), of_splitter(args[-1])
    for title, difference in (("only tshark", theirs - ours), ("only the splitter", ours - theirs)):
        for (proto, a, b, x, y), n in sorted(difference.items(), key=str)[:10]:
            print("%s: %d x proto %d, %s %d <-> %s %d, packets %d and %d"
                  % (title, n, proto, *a, *b, x, y))
    print("flows: tshark %d, splitter %d; packets: tshark %d, splitter %d"
          % (theirs.total(), ours.total(), sum((k[3] + k[4]) * n for k, n in theirs.items()),
             sum((k[3] + k[4]) * n for k, n in ours.items())))
    sys.exit(0 if theirs == ours and ours else 1)


if __name__ == "__main__":
    main()
