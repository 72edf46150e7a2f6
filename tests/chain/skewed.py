#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""A capture as load balancers meet it: few sessions have most of the packets, few pairs of
addresses have most of the sessions.

usage: skewed.py FILE PACKETS SECONDS

TCP sessions of Pareto sizes (12 packets and more, shape 1.3) begin at random within SECONDS,
each goes on at a pace of its own, between pairs of addresses drawn from a Zipf law.  Some datagrams
of UDP are in fragments.  The times are those of the packets: for a run that lasts SECONDS, replay at
PACKETS / SECONDS a second.
"""
import heapq
import random
import sys

import gen

RND = random.Random(20260202)
PAIRS = 400


def sizes(total, most):
    while total > 0:
        n = min(most, total, int(12 * RND.paretovariate(1.3)))
        total -= n
        yield max(n, 4)


def talk(a, b, sport, n):
    """A TCP session of n packets: both directions, an end."""
    x, y = RND.getrandbits(31), RND.getrandbits(31)
    one = gen.ether(gen.ip(a, b, gen.tcp(a, b, sport, 443, x + 1, gen.ACK, bytes(26), y + 1)))
    other = gen.ether(gen.ip(b, a, gen.tcp(b, a, 443, sport, y + 1, gen.ACK, bytes(26), x + 1)), (), True)
    yield gen.ether(gen.ip(a, b, gen.tcp(a, b, sport, 443, x, gen.SYN)))
    for i in range(n - 3):
        yield other if i % 2 == 0 else one
    yield gen.ether(gen.ip(a, b, gen.tcp(a, b, sport, 443, x + 1, gen.FIN | gen.ACK, b"", y + 1)))
    yield gen.ether(gen.ip(b, a, gen.tcp(b, a, 443, sport, y + 1, gen.FIN | gen.ACK, b"", x + 2)), (), True)


def pieces(a, b, sport):
    """A datagram in three fragments, and one that is whole."""
    for p in gen.fragments(a, b, gen.udp(a, b, sport, 34500, gen.noise(300)), 128, sport):
        yield gen.ether(p)
    yield gen.ether(gen.ip(a, b, gen.udp(a, b, sport, 34500, b"whole")))


def packets(total, seconds):
    pace = total / seconds  # of all together
    weights = [1 / (i + 1) ** 0.9 for i in range(PAIRS)]
    due = []
    for k, n in enumerate(sizes(total, total // 40)):
        pair = RND.choices(range(PAIRS), weights)[0]
        a = gen.address("192.0.%d.%d" % (2 + pair // 200, pair % 200 + 1))
        b = gen.address("198.51.100.%d" % (pair * 7 % 250 + 1))
        if k % 50 == 49:
            one, n = pieces(a, b, 1024 + k % 60000), 4
        else:
            one = talk(a, b, 1024 + k % 60000, n)
        # the longest ones go on for most of the run, at no more than 1/40 of all packets a second
        gap = 1 / min(pace / 40, RND.uniform(0.002, 0.01) * pace + n / seconds)
        start = RND.uniform(0, max(0.05, 1 - n * gap / seconds)) * seconds
        due.append((start, k, gap, one))
    heapq.heapify(due)
    while due:
        at, k, gap, one = heapq.heappop(due)
        p = next(one, None)
        if p is not None:
            yield p
            heapq.heappush(due, (at + gap, k, gap, one))


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    gen.pcap(sys.argv[1], list(packets(int(sys.argv[2]), float(sys.argv[3]))))


if __name__ == "__main__":
    main()
