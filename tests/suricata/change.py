#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Changes one thing in a pcap file: what a faulty way for packets could do to them.

usage: change.py CAPTURE CHANGED drop:N | twice:N | swap:N | byte:N | tag:N | cut:N

N is the number of the packet, from 1; swap: with the next one of its flow's addresses;
byte: the last one; tag: the first VLAN id of the first tagged packet from N on.
"""
import struct
import sys


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    head, at, packets = data[:24], 24, []
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        packets.append((data[at:at + 8], data[at + 16:at + 16 + size]))
        at += 16 + size
    return head, packets


def main():
    if len(sys.argv) != 4 or ":" not in sys.argv[3]:
        sys.exit(__doc__)
    head, packets = read(sys.argv[1])
    what, n = sys.argv[3].split(":")
    i = int(n) - 1
    when, p = packets[i]
    if what == "drop":
        del packets[i]
    elif what == "twice":
        packets.insert(i, packets[i])
    elif what == "swap":
        k = next(k for k in range(i + 1, len(packets))
                 if packets[k][1][:40] != p[:40] and packets[k][1][:16] == p[:16])
        packets[i], packets[k] = (when, packets[k][1]), (packets[k][0], p)
    elif what == "byte":
        packets[i] = when, p[:-1] + bytes([p[-1] ^ 1])
    elif what == "cut":
        packets[i] = when, p[:-1]
    elif what == "tag":
        i = next(k for k in range(i, len(packets)) if packets[k][1][12:14] == b"\x81\x00")
        when, p = packets[i]
        packets[i] = when, p[:15] + bytes([p[15] ^ 1]) + p[16:]
    else:
        sys.exit(__doc__)
    with open(sys.argv[2], "wb") as f:
        f.write(head)
        for when, p in packets:
            f.write(when + struct.pack("<II", len(p), len(p)) + p)


if __name__ == "__main__":
    main()
