#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Says the number and a digest of a capture's packets, whatever their order and times.

usage: packets.py FILE     (classic pcap)
"""
import hashlib
import struct
import sys


def read(path):
    packets = []
    with open(path, "rb") as f:
        end = "<" if f.read(24)[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
        while True:
            h = f.read(16)
            if len(h) < 16:
                return packets
            packets.append(f.read(struct.unpack(end + "IIII", h)[2]))


digest = hashlib.sha256()
packets = read(sys.argv[1])
for p in sorted(packets):
    digest.update(struct.pack("<I", len(p)) + p)
print(len(packets), digest.hexdigest())
