#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Makes a capture of TCP connections that nobody closes, by turns a packet of each.

usage: flows.py FILE FLOWS PACKETS SIZE [PORT...]

PACKETS of every connection, three of them the handshake; data packets have SIZE bytes
(Ethernet without FCS, at least 60). The PORTs (80 and 8080) are servers', by turns.
"""
import struct
import sys

MAC = bytes.fromhex("020000000002020000000001")


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def tcp(src, dst, sport, dport, seq, ack, flags, data):
    t = struct.pack("!HHIIBBHHH", sport, dport, seq, ack, 0x50, flags, 8192, 0, 0) + data
    c = checksum(src + dst + struct.pack("!BBH", 0, 6, len(t)) + t)
    t = t[:16] + struct.pack("!H", c) + t[18:]
    h = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(t), 1, 0, 64, 6, 0, src, dst)
    h = h[:10] + struct.pack("!H", checksum(h)) + h[12:]
    p = MAC + b"\x08\x00" + h + t
    return p + bytes(60 - len(p)) if len(p) < 60 else p


def connection(i, size, ports):
    a, b = struct.pack("!I", 0x0A000001 + i // 200), struct.pack("!I", 0x0B000001 + i % 250)
    sport, dport = 10000 + i % 50000, ports[i % len(ports)]
    yield tcp(a, b, sport, dport, 1000, 0, 0x02, b"")
    yield tcp(b, a, dport, sport, 5000, 1001, 0x12, b"")
    yield tcp(a, b, sport, dport, 1001, 5001, 0x10, b"")
    s, t, data = 1001, 5001, bytes([65 + i % 26]) * (size - 54)
    while True:
        yield tcp(a, b, sport, dport, s, t, 0x18, data)
        s += len(data)
        yield tcp(b, a, dport, sport, t, s, 0x18, data)
        t += len(data)


def main():
    flows, packets, size = (int(x) for x in sys.argv[2:5])
    ports = [int(x) for x in sys.argv[5:]] or [80, 8080]
    all_of_them = [connection(i, max(size, 60), ports) for i in range(flows)]
    us = 1767225600_000000
    with open(sys.argv[1], "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for _ in range(packets):
            for c in all_of_them:
                p = next(c)
                us += 10
                f.write(struct.pack("<IIII", us // 1000000, us % 1000000, len(p), len(p)) + p)


main()
