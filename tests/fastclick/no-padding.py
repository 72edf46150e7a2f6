#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""A capture without Ethernet's padding behind untagged IPv4, as Click's CheckIPHeader cuts it off.

no-padding.py PCAP OUT
"""
import struct
import sys


def main():
    data = open(sys.argv[1], "rb").read()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    out = [data[:24]]
    at = 24
    while at < len(data):
        sec, frac, caplen, length = struct.unpack_from(order + "IIII", data, at)
        p = data[at + 16 : at + 16 + caplen]
        at += 16 + caplen
        if p[12:14] == b"\x08\x00" and len(p) >= 34 and p[14] >> 4 == 4:
            header, total = (p[14] & 15) * 4, struct.unpack_from(">H", p, 16)[0]
            if 20 <= header <= total <= len(p) - 14:
                p = p[: 14 + total]
        out.append(struct.pack(order + "IIII", sec, frac, len(p), len(p)) + p)
    open(sys.argv[2], "wb").write(b"".join(out))


main()
