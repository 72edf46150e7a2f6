#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""What has to come out, and what has to be injected, for what a host was told to do.

usage: expect.py cycle VERDICT,VERDICT,... IN OUT    verdicts by turns: pass, block, replace
       expect.py inject N IN OUT                     first 60 bytes of every N-th packet
       expect.py cut N IN OUT                        N bytes of every packet at most
       expect.py times IN                            first and last time stamp, us
"""
import struct
import sys


def read(path):
    with open(path, "rb") as f:
        head = f.read(24)
        assert head[:4] == b"\xd4\xc3\xb2\xa1", "a pcap file of little-endian us is wanted"
        while True:
            h = f.read(16)
            if len(h) < 16:
                return
            yield h, bytearray(f.read(struct.unpack("<IIII", h)[2]))


def write(path, packets):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for h, p in packets:
            f.write(h[:8] + struct.pack("<II", len(p), len(p)) + p)


def cycled(packets, verdicts):
    for n, (h, p) in enumerate(packets):
        v = verdicts[n % len(verdicts)]
        if v == "replace":
            p[-1] ^= 0xFF
        if v != "block":
            yield h, p


def main():
    what, args = sys.argv[1], sys.argv[2:]
    if what == "cycle":
        write(args[2], cycled(read(args[1]), args[0].split(",")))
    elif what == "inject":
        every = int(args[0])
        write(args[2], ((h, p[:60]) for n, (h, p) in enumerate(read(args[1]), 1)
                        if n % every == 0))
    elif what == "cut":
        with open(args[2], "wb") as f:
            f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
            for h, p in read(args[1]):
                p = p[:int(args[0])]
                f.write(h[:8] + struct.pack("<I", len(p)) + h[12:] + p)
    else:
        us = [struct.unpack("<II", h[:8]) for h, _ in read(args[0])]
        print(us[0][0] * 1000000 + us[0][1], us[-1][0] * 1000000 + us[-1][1])


main()
