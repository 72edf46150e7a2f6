#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Makes the captures of the Suricata tests.

usage: gen.py NAME FILE [SECONDS]

SECONDS: the time of the first packet, since 1970; else the first of January 2026.

  web        HTTP: whole, in pieces, out of order, twice, overlapping, with holes; longer than
             Suricata looks
  tls        TLS: connections with names, and one that is long after its handshake
  checksums  right, wrong and absent checksums of every kind, with and without tags
  vlans      no tag, one, two; one 5-tuple on many VLANs
  vlans3     three tags, too, and behind them packets that have fewer
  vlans3_sorted  the same packets, those with three tags last
  closed     TCP port pairs that are used again after their connection has ended
  fragments  datagrams in pieces: in order, in reverse, overlapping, one piece missing
  odd        cut, too short, tunnels, no IP
  drops      what the drop rules drop, among what they do not
  rejects    what the reject rules answer
  rejected, rejected_inline  their answers, when the packet goes on and when it does not
  many       20000 small packets of 500 flows
  big        marked frames of 9014 bytes, and the longest IP can be
  all_of_them  web, tls, checksums, vlans, fragments, odd, closed, big, and of tests/chain
             mixed, icmp, incomplete, jumbo

and all of tests/chain/gen.py.
"""
import importlib.util
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SPEC = importlib.util.spec_from_file_location(
    "chain_gen", os.path.join(HERE, "..", "chain", "gen.py"))
G = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(G)
SYN, ACK, FIN, RST, PSH = G.SYN, G.ACK, G.FIN, G.RST, G.PSH
ether, ip, udp, echo, address = G.ether, G.ip, G.udp, G.echo, G.address
host, server = G.host, G.server
WINDOW = 0xFFFF


class Talk:
    """A TCP connection; its packets gather in .out, the client's with a number in .sent."""

    def __init__(self, a, b, sport, dport, tags=()):
        self.a, self.b, self.sport, self.dport, self.tags = a, b, sport, dport, tags
        self.x, self.y = G.RND.getrandbits(31), G.RND.getrandbits(31)
        self.out = []

    def segment(self, back, seq, flags, payload=b""):
        src, dst, sport, dport, ack = ((self.b, self.a, self.dport, self.sport, self.x) if back else
                                       (self.a, self.b, self.sport, self.dport, self.y))
        header = struct.pack("!HHIIBBHHH", sport, dport, seq & 0xFFFFFFFF,
                             ack & 0xFFFFFFFF if flags & ACK else 0, 0x50, flags, WINDOW, 0, 0)
        l4 = G.TCP, G.summed(G.TCP, src, dst, header + payload, 16)
        return ether(ip(src, dst, l4), self.tags, back)

    def send(self, back, flags, payload=b""):
        self.out.append(self.segment(back, self.y if back else self.x, flags, payload))
        size = len(payload) + (1 if flags & (SYN | FIN) else 0)
        if back:
            self.y += size
        else:
            self.x += size

    def begin(self):
        self.send(False, SYN)
        self.send(True, SYN | ACK)
        self.send(False, ACK)
        return self

    def say(self, data, back=False, size=1400, order=None):
        """Data in segments of `size`, in the given order, then the other side's ACK."""
        parts = [(i, data[i:i + size]) for i in range(0, len(data), size)]
        seq = self.y if back else self.x
        for n, i in enumerate(order(len(parts)) if order else range(len(parts))):
            self.out.append(self.segment(back, seq + parts[i][0], ACK | PSH, parts[i][1]))
            if order is None and n % 8 == 7:  # more would not be in the window
                if back:
                    self.y = seq + parts[i][0] + len(parts[i][1])
                else:
                    self.x = seq + parts[i][0] + len(parts[i][1])
                self.send(not back, ACK)
        if back:
            self.y = seq + len(data)
        else:
            self.x = seq + len(data)
        self.send(not back, ACK)
        return self

    def end(self, how=FIN):
        if how == RST:
            self.send(False, RST | ACK)
        elif how == FIN:
            self.send(False, FIN | ACK)
            self.send(True, FIN | ACK)
            self.send(False, ACK)
        return self.out


def request(path, agent=b"curl/7.0", extra=b""):
    return (b"GET " + path + b" HTTP/1.1\r\nHost: www.example.test\r\nUser-Agent: " + agent
            + b"\r\nAccept: */*\r\n" + extra + b"\r\n")


def answer(body):
    return (b"HTTP/1.1 200 OK\r\nServer: gen\r\nContent-Type: text/plain\r\nContent-Length: "
            + str(len(body)).encode() + b"\r\n\r\n" + body)


def text(n):
    return bytes(97 + G.RND.randrange(26) for _ in range(n))


def ends(i, v6=False):
    return host(i, v6), server(i, v6)


def web():
    talks = []
    for i in range(12):  # plain, several requests on a connection
        a, b = ends(i, i % 3 == 2)
        t = Talk(a, b, 40100 + i, 80, [(), (10,), (301, 345)][i % 3]).begin()
        for n in range(1 + i % 4):
            t.say(request(b"/1000/%d" % n))
            t.say(answer(text(500) + b"needle-in-body" + text(700 * n)), back=True)
        talks.append(t.end((FIN, RST, None)[i % 3]))
    # a word that no packet has whole
    for i, size in enumerate((1, 3, 7, 100)):
        t = Talk(*ends(20 + i), 40200 + i, 80).begin()
        t.say(request(b"/split-over-segments"), size=size)
        t.say(answer(text(50)), back=True)
        talks.append(t.end())
    # out of order, in reverse, twice
    orders = (lambda n: reversed(range(n)), lambda n: sorted(range(n), key=lambda i: i % 2),
              lambda n: [i for k in range(n) for i in (k, k)],
              lambda n: sorted(range(n), key=lambda i: i * 7919 % 31))
    for i, order in enumerate(orders):
        t = Talk(*ends(30 + i, i % 2 == 1), 40300 + i, 80).begin()
        t.say(request(b"/order", extra=b"X-A: begin-mark" + text(300) + b"end-mark\r\n"), size=50,
              order=order)
        t.say(answer(text(900) + b"needle-in-body" + text(900)), back=True, size=200, order=order)
        t.say(b"mark-%04d-end" % i, size=2, order=order)
        talks.append(t.end())
    # the second copy of a piece says something else
    t = Talk(*ends(40), 40400, 80).begin()
    first = t.x
    t.out.append(t.segment(False, first + 4, ACK | PSH, b"/overlap HTTP/1.1\r\n"))
    t.out.append(t.segment(False, first + 4, ACK | PSH, b"/0verlap HTTP/1.1\r\n"))
    t.out.append(t.segment(False, first, ACK | PSH, b"GET /1000"))
    t.x = first + 23
    t.say(b"Host: www.example.test\r\n\r\n")
    t.say(answer(b"x"), back=True)
    talks.append(t.end())
    # a piece that never comes
    t = Talk(*ends(41), 40401, 80).begin()
    t.say(request(b"/1000/hole"))
    t.say(answer(text(3000)), back=True, size=1000, order=lambda n: [0, 2, 3])
    talks.append(t.end())
    # SYN alone, in the middle of a connection, no end; old data behind the end
    talks.append(Talk(*ends(42), 40402, 80).begin().out[:1])
    talks.append(Talk(*ends(43), 40403, 80).begin().say(request(b"/1000/middle")).out[3:])
    t = Talk(*ends(44), 40404, 80).begin().say(request(b"/1000/behind"))
    t.end()
    t.send(False, ACK | PSH, b"one-packet-word behind the end")
    talks.append(t.out)
    # a word in one packet, of TCP that is no protocol
    t = Talk(*ends(45), 40405, 9999).begin().say(b"hello one-packet-word\n")
    talks.append(t.say(b"mark-4711-end\n", back=True).end())
    # longer than Suricata looks (1 MiB)
    t = Talk(*ends(46), 40406, 9998).begin()
    t.say(text(1000) * 1200, back=True, size=8000)
    t.say(b"this is beyond-depth, isn't it", back=True)
    t.say(b"of the other side: not beyond-depth")
    talks.append(t.end())
    return G.interleave(talks)


# --- TLS: records are real, their insides are not (Suricata looks at the records)


def tls_record(kind, body, version=0x0303):
    return struct.pack("!BHH", kind, version, len(body)) + body


def tls_handshake(kind, body):
    return struct.pack("!B", kind) + struct.pack("!I", len(body))[1:] + body


def client_hello(name):
    sni = struct.pack("!HBH", len(name) + 3, 0, len(name)) + name
    extensions = struct.pack("!HH", 0, len(sni)) + sni
    body = (struct.pack("!H", 0x0303) + G.noise(32) + b"\0" + struct.pack("!HHH", 4, 0xC02F, 0xC030)
            + b"\1\0" + struct.pack("!H", len(extensions)) + extensions)
    return tls_record(22, tls_handshake(1, body), 0x0301)


def tls_talk(a, b, sport, name, data, tags=(), burst=1):
    """data: sizes of records, alternating from the client and the server."""
    t = Talk(a, b, sport, 443, tags).begin()
    t.say(client_hello(name))
    hello = struct.pack("!H", 0x0303) + G.noise(32) + b"\0" + struct.pack("!HB", 0xC02F, 0)
    t.say(tls_record(22, tls_handshake(2, hello)) + tls_record(22, tls_handshake(14, b"")),
          back=True)
    t.say(tls_record(22, tls_handshake(16, b"\x20" + G.noise(32))) + tls_record(20, b"\1")
          + tls_record(22, G.noise(40)))
    t.say(tls_record(20, b"\1") + tls_record(22, G.noise(40)), back=True)
    for i, size in enumerate(data):
        t.say(tls_record(23, G.noise(size)), back=i // burst % 2 == 1)
    return t


def tls():
    talks = []
    for i in range(10):
        v6 = i % 2 == 1
        talks.append(tls_talk(*ends(i, v6), 42100 + i, b"name%d.example.test" % i,
                              [100 + 10 * i] * (2 * i), [(), (10,)][i // 5]).end())
    talks.append(tls_talk(*ends(30), 42200, b"long.example.test", [1200] * 2000).end())
    # others go on while the long one does
    return G.interleave(talks[:-1]) + talks[-1]


def broken(frame, at):
    return frame[:at] + bytes([frame[at] ^ 0x55]) + frame[at + 1:]


def checksums():
    out = []
    n = 0
    for v6 in (False, True):
        for tags in ((), (10,), (301, 345)):
            l3 = 14 + 4 * len(tags)
            l4 = l3 + (40 if v6 else 20)
            for kind in range(8):
                n += 1
                a, b = ends(n, v6)
                word = b"checksum-test %d " % n + bytes(n % 2)  # both parities of the length
                u = ether(ip(a, b, udp(a, b, 43000 + n, 44000, word)), tags)
                t = Talk(a, b, 43000 + n, 44001, tags).begin()
                e = ether(ip(a, b, echo(a, b, n, 1, word)), tags)
                if kind == 0:  # all are right
                    out += [u, u, e] + t.say(word).end()
                elif kind == 1:  # of IPv4 itself
                    if not v6:
                        out += [broken(u, l3 + 10), broken(e, l3 + 10), broken(t.out[0], l3 + 11)]
                elif kind == 2:
                    out += [broken(u, l4 + 6), u, broken(u, l4 + 7)]
                elif kind == 3:  # the data is wrong, not the sum
                    out += [u, broken(u, l4 + 9)]
                elif kind == 4:  # a connection of which one segment is wrong, and comes again
                    t.say(b"mark-")
                    good = t.segment(False, t.x, ACK | PSH, b"%04d-end" % n)
                    out += t.out + [broken(good, l4 + 22), broken(good, l4 + 16), good, good]
                elif kind == 5:  # a SYN that is wrong
                    out += [broken(t.out[0], l4 + 17)] + t.out[1:]
                elif kind == 6:
                    out += [broken(e, l4 + 2), e, broken(e, l4 + 9)]
                elif kind == 7:  # there is none; over IPv6 there has to be one
                    out += [u[:l4 + 6] + b"\0\0" + u[l4 + 8:]] * 2
    for i in range(4):  # of a whole datagram, in pieces
        a, b = ends(100 + i, i % 2 == 1)
        proto, segment = udp(a, b, 45000 + i, 44002, b"head-of-fragments" + G.noise(2000))
        if i >= 2:
            segment = broken(segment, 6)
        out += [ether(p) for p in G.fragments(a, b, (proto, segment), 1200, 10900 + i)]
    # a sum of 0xffff, that is 0
    a, b = ends(110)
    for word in range(0x10000):
        whole = udp(a, b, 46000, 44003, struct.pack("!H", word))
        if whole[1][6:8] == b"\xff\xff":
            out += [ether(ip(a, b, whole))] * 2
            break
    return out


def vlan_talks(sets):
    talks = []
    for i in range(8 * len(sets)):
        tags = sets[i % len(sets)]
        k = i // len(sets)
        a, b = ends(k // 2, k % 2 == 1)  # one 5-tuple on many VLANs
        if tags and tags[0] in (0, 0x600A):  # the same VLAN for Suricata as another one here
            k += 16
        talks.append(G.udp_talk(a, b, 47000 + k, 34000, 6, tags))
        t = Talk(a, b, 47100 + k, 80, tags).begin()
        t.say(request(b"/1000/vlan"))
        t.say(answer(text(100)), back=True)
        talks.append(t.end())
    return G.interleave(talks)


FEW_TAGS = ((), (10,), (20,), (301, 345), (0,), (0x6000 | 10, ), (345, 301))


def vlans():
    out = vlan_talks(FEW_TAGS)
    a, b = ends(200)
    for _ in range(20):
        for i in range(20):
            out.append(ether(ip(a, b, udp(a, b, 47600 + i, 34000, b"none")), FEW_TAGS[i % 4]))
    return out


def tags(frame):
    n = 0
    while frame[12 + 4 * n:14 + 4 * n] in (b"\x81\x00", b"\x88\xa8"):
        n += 1
    return n


def vlans3():
    """Packets of Suricata's pool that had three tags are used again for others."""
    out = vlan_talks(FEW_TAGS + ((7, 8, 9), (303, 345, 10)))
    a, b = ends(200)
    for i in range(1500):
        out.append(ether(ip(a, b, udp(a, b, 47500, 34000, b"three")), (7, 8, 9)))
    for _ in range(40):
        for i in range(40):
            out.append(ether(ip(a, b, udp(a, b, 47600 + i, 34000, b"none")), FEW_TAGS[i % 4]))
    # four are more than Suricata knows
    out.append(ether(ip(a, b, udp(a, b, 47700, 34000, b"four")), (7, 8, 9, 10)))
    return out


def vlans3_sorted():
    """The same, those with three tags last: then Suricata does well by itself."""
    return sorted(vlans3(), key=lambda p: max(2, tags(p)))


def fragments():
    talks = []
    orders = (lambda p: p, lambda p: p[::-1], lambda p: p[1:] + p[:1], lambda p: p + p,
              lambda p: p[:1] + p[2:], lambda p: p[1:])
    for i in range(24):
        v6 = i % 2 == 1
        a, b = ends(i, v6)
        word = b"head-of-fragments" + G.noise(2500 + i) + b"tail-of-fragments"
        parts = G.fragments(a, b, udp(a, b, 45100 + i, 34500, word), (1232, 800, 104)[i // 8],
                            17000 + i)
        talks.append([ether(p, [(), (10,), (301, 345)][i % 3]) for p in orders[i // 4](parts)])
        talks.append(G.udp_talk(a, b, 45200 + i, 34500, 2))
    # of a flow that has whole datagrams, too
    for i in range(4):
        a, b = ends(40 + i, i % 2 == 1)
        word = b"head-of-fragments" + G.noise(1500) + b"tail-of-fragments"
        one = G.udp_talk(a, b, 45300 + i, 34500, 2)
        one += [ether(p) for p in
                G.fragments(a, b, udp(a, b, 45300 + i, 34500, word), 800, 17100 + i)]
        talks.append(one + G.udp_talk(a, b, 45300 + i, 34500, 2))
    # and one that begins in pieces
    for i in range(4):
        a, b = ends(60 + i, i % 2 == 1)
        word = b"head-of-fragments" + G.noise(1500) + b"tail-of-fragments"
        one = [ether(p) for p in
               G.fragments(a, b, udp(a, b, 45350 + i, 34500, word), 800, 17150 + i)]
        talks.append(one + [ether(ip(a, b, udp(a, b, 45350 + i, 34500, b"whole")))] * 3)
    # they overlap: the later piece says something else
    a, b = ends(50)
    proto, segment = udp(a, b, 45400, 34500, b"head-of-fragments" + G.noise(1500))
    talks.append([ether(ip(a, b, (proto, segment[:800]), 0, True, 17200)),
                  ether(ip(a, b, (proto, G.noise(800)), 400, True, 17200)),
                  ether(ip(a, b, (proto, segment[800:]), 800, False, 17200))])
    # a TCP segment in pieces
    t = Talk(*ends(51), 45401, 80).begin()
    whole = t.segment(False, t.x, ACK | PSH, request(b"/1000/in-pieces", extra=b"X: " + text(900)
                                                     + b"\r\n"))
    t.x += len(whole) - 54
    t.out += [ether(p) for p in G.fragments(*ends(51), (G.TCP, whole[34:]), 400, 17300)]
    t.say(answer(b"y"), back=True)
    talks.append(t.end())
    # one that needs no other: "more fragments" is not set, at 0 (IPv6's atomic fragment)
    a, b = ends(52, True)
    talks.append([ether(ip(a, b, udp(a, b, 45402, 34500, b"atomic"), 0, False, 17400))] * 2)
    return G.interleave(talks)


def odd():
    a, b = ends(1)
    c, d = ends(2, True)
    inner = ip(a, b, udp(a, b, 48000, 34000, b"inside a tunnel, tail-mark"))
    inner6 = ip(c, d, udp(c, d, 48001, 34000, b"inside a tunnel, tail-mark"))
    t = Talk(*ends(3), 48002, 80).begin().say(request(b"/1000/tunnel"))
    gre = struct.pack("!HH", 0, 0x0800)
    vxlan = struct.pack("!II", 0x08000000, 42 << 8)
    out = [G.arp(a, b), G.noise(12) + struct.pack("!H", 0x88CC) + G.noise(46)]
    out += [ether(ip(a, b, (4, inner))), ether(ip(a, b, (41, inner6)))]
    out += [ether(ip(c, d, (4, inner))), ether(ip(c, d, (41, inner6)))]
    out += [ether(ip(a, b, (47, gre + inner)))] * 2
    for frame in t.end():  # a connection inside of GRE
        out.append(ether(ip(a, b, (47, gre + frame[14:]))))
    for frame in Talk(*ends(4), 48003, 80).begin().say(request(b"/1000/vxlan")).end():
        out.append(ether(ip(a, b, udp(a, b, 48004, 4789, vxlan + frame))))
    out.append(ether(ip(a, b, udp(a, b, 48005, 3544, inner6))))  # Teredo
    # inside of a tunnel, in pieces
    out += [ether(ip(a, b, (47, gre + p))) for p in
            G.fragments(a, b, udp(a, b, 48006, 34500, b"head-of-fragments" + G.noise(1200)
                                  + b"tail-of-fragments"), 800, 17500)]
    # IP says more, or less, than there is
    whole = ether(ip(a, b, udp(a, b, 48010, 34000, G.noise(100))))
    out += [whole[:n] for n in (14, 20, 33, 34, 38, 41, 42, 60, 100)]
    out.append(whole + G.noise(30))
    out.append(whole[:16] + struct.pack("!H", 19) + whole[18:])
    out.append(whole[:16] + struct.pack("!H", 25) + whole[18:])
    out.append(whole[:14] + b"\x44" + whole[15:])
    out.append(whole[:14] + b"\x65" + whole[15:])
    out.append(whole[:38] + struct.pack("!H", 7) + whole[40:])
    out.append(whole[:38] + struct.pack("!H", 500) + whole[40:])
    six = ether(ip(c, d, udp(c, d, 48011, 34000, G.noise(100))))
    out += [six[:n] for n in (30, 53, 54, 60, 61, 62, 120)]
    out.append(six[:18] + struct.pack("!H", 500) + six[20:])
    syn = Talk(a, b, 48012, 80).begin().out[0]
    out += [syn[:n] for n in (40, 53)]
    out.append(syn[:46] + b"\x40" + syn[47:])
    out.append(syn[:46] + b"\xf0" + syn[47:])
    out.append(syn[:47] + b"\x00" + syn[48:])
    out.append(syn[:47] + b"\xff" + syn[48:])
    # extension headers
    hop = struct.pack("!BB6s", 60, 0, b"\1\4\0\0\0\0")
    dst = struct.pack("!BB14s", G.UDP, 1, b"\1\12" + bytes(12))
    word = b"behind options, tail-mark"
    out.append(ether(ip(c, d, (0, hop + dst + udp(c, d, 48013, 34000, word)[1]))))
    out.append(ether(ip(a, b, udp(a, b, 48014, 34000, b"options"), options=b"\x44\x04\x05\x00")))
    # other protocols
    out.append(ether(ip(a, b, (132, struct.pack("!HHII", 48015, 34000, 0, 0) + bytes(20)))))
    out.append(ether(ip(a, b, (50, G.noise(60)))))
    out.append(ether(ip(a, b, (89, G.noise(44)))))
    out.append(ether(ip(a, b, (254, G.noise(44)))))
    # MPLS, PPPoE, a length in place of a type
    out.append(G.MAC_B + G.MAC_A + struct.pack("!HI", 0x8847, 0x00012140) + inner)
    out.append(G.MAC_B + G.MAC_A
               + struct.pack("!HBBHHH", 0x8864, 0x11, 0, 1, len(inner) + 2, 0x0021) + inner)
    out.append(G.MAC_B + G.MAC_A + struct.pack("!H", 40) + G.noise(46))
    out += [whole[:1], whole[:13]]  # less than Ethernet has
    out += G.icmp()
    return out * 2


def drops():
    talks = []
    for i in range(20):
        a, b = ends(i, i % 3 == 2)
        tags = [(), (10,), (301, 345)][i % 3]
        talks.append(G.udp_talk(a, b, 46000 + i, (34000, 34999)[i % 2], 5, tags))  # 34999: dropped
        t = Talk(a, b, 46100 + i, 80, tags).begin()
        t.say(request((b"/1000/keep", b"/forbidden")[i % 2]))  # the flow is dropped from here
        t.say(answer(text(1000)), back=True)
        talks.append(t.end())
        talks.append([ether(ip(a, b, echo(a, b, i, n, b"ping")), tags) for n in range(3)])
        # of one packet: only it is dropped
        one = []
        for n in range(6):
            one.append(ether(ip(a, b, udp(a, b, 46200 + i, 34001,
                                          (b"keep", b"drop-this-one")[n == 3])), tags))
        talks.append(one)
    for i in range(6):  # in pieces: the whole is dropped
        a, b = ends(40 + i, i % 2 == 1)
        word = b"head-of-fragments" + G.noise(1500) + (b"drop-this-one", b"keep")[i // 3]
        talks.append([ether(p) for p in
                      G.fragments(a, b, udp(a, b, 46300 + i, 34002, word), 800, 17600 + i)])
    # a tunnel with something to be dropped inside
    a, b = ends(60)
    for word in (b"keep", b"drop-this-one"):
        talks.append([ether(ip(a, b, (47, struct.pack("!HH", 0, 0x0800)
                                      + ip(a, b, udp(a, b, 46400, 34001, word)))))] * 2)
    return G.interleave(talks)


REJECT_TAGS = ((), (10,), (301, 345))
REJECT_PORTS = ((2222, "src"), (2223, "both"), (2224, "src"), (2225, "dst"))


def unreachable(frame, tags):
    """The answer to a datagram that is not wanted."""
    packet = frame[14 + 4 * len(tags):]
    if packet[0] >> 4 == 4:
        src, dst = packet[12:16], packet[16:20]
        l4 = G.ICMP, G.summed_plain(struct.pack("!BBHI", 3, 13, 0, 0) + packet[:128])
    else:
        src, dst = packet[8:24], packet[24:40]
        message = struct.pack("!BBHI", 1, 1, 0, 0) + packet[:128]
        l4 = G.ICMP6, G.summed(G.ICMP6, dst, src, message, 2)
    return ether(ip(dst, src, l4), tags, True)


def reject_talks(inline):
    """What comes, and what the inline Suricata (or the one that only looks) answers."""
    out, back, forth = [], [], []
    for i in range(24):
        a, b = ends(i, i % 2 == 1)
        port, to = REJECT_PORTS[i // 6]
        t = Talk(a, b, 46600 + i, port, REJECT_TAGS[i % 3])
        if port == 2224:  # the SYN itself
            t.send(False, SYN)
            rst_seq, t.y = 0, 0
        else:
            t.begin().say(b"harmless").say(b"answer", back=True)
            t.out.append(t.segment(False, t.x, ACK | PSH, b"reject-me"))
            t.x += 9
            rst_seq = t.y
        out.append(t.out)
        rst = RST | ACK
        if to in ("src", "both"):
            back.append(t.segment(True, rst_seq, rst))
        if to in ("dst", "both"):
            forth.append(t.segment(False, t.x - (9 if inline else 0), rst))
    for i in range(6):
        a, b = ends(30 + i, i % 2 == 1)
        tags = REJECT_TAGS[i % 3]
        u = ether(ip(a, b, udp(a, b, 46700 + i, 34003, b"reject-me" + G.noise(60 * i))), tags)
        out.append([u])
        back.append(unreachable(u, tags))
        # no answer: to ICMP, in a tunnel
        out.append([ether(ip(a, b, echo(a, b, i, 1, b"reject-me")), tags)])
        c, d = address("192.0.2.1"), address("192.0.2.2")
        inner = ip(c, d, udp(c, d, 46800 + i, 34003, b"reject-me"))
        out.append([ether(ip(a, b, (47, struct.pack("!HH", 0, 0x0800) + inner)), tags)])
    return out, back, forth


def rejects():
    return [p for t in reject_talks(True)[0] for p in t]


def rejected_inline():
    _, back, forth = reject_talks(True)
    return back + forth


def rejected():
    _, back, forth = reject_talks(False)
    return back + forth


def many():
    talks = []
    for i in range(500):
        a, b = ends(i, i % 2 == 1)
        talks.append(G.udp_talk(a, b, 1024 + i, 34000, 20, sizes=(0, 20)))
    out = []
    for n in range(0, 40, 2):
        for t in talks:
            out += t[n:n + 2]
    return out


def big():
    out = []
    for i in range(4):
        a, b = ends(i)
        word = b"head-mark" + G.noise(8972 - 18) + b"tail-mark"
        out.append(ether(ip(a, b, udp(a, b, 49000 + i, 34800, word))))  # 9014 bytes
        c, d = ends(i, True)
        word = b"head-mark" + G.noise(8952 - 18) + b"tail-mark"
        out.append(ether(ip(c, d, udp(c, d, 49100 + i, 34800, word))))
        out.append(ether(ip(a, b, udp(a, b, 49200 + i, 34800, b"small, tail-mark"))))
        t = Talk(a, b, 49300 + i, 80).begin()
        extra = b"X: begin-mark" + text(8000) + b"end-mark\r\n"
        t.say(request(b"/1000/big", extra=extra), size=9000)
        t.say(answer(text(20000) + b"needle-in-body"), back=True, size=8960)
        out += t.end()
        word = b"head-mark" + G.noise(65507 - 18) + b"tail-mark"
        out.append(ether(ip(a, b, udp(a, b, 49400 + i, 34800, word)))[:65535])
    return out


def closed():
    """As reuse of tests/chain/gen.py; every connection ends before the next begins."""
    talks = []
    for i in range(16):
        v6 = i % 4 == 3
        a, b = ends(i, v6)
        one = []
        for n in range(2 + i % 4):
            t = Talk(a, b, 41000 + i, 80, [(), (10,)][i % 2]).begin()
            for k in range(n):
                t.say(request(b"/1000/%d" % k)).say(answer(text(100)), back=True)
            one += t.end((FIN, RST)[(i + n) % 2])
        talks.append(one)
    return G.interleave(talks)


def all_of_them():
    """One file of many of these: a run costs more time than its packets."""
    return [p for made in (web, tls, checksums, vlans, fragments, odd, closed, big, G.mixed, G.icmp,
                           G.incomplete, G.jumbo) for p in made()]


def pcap(path, packets, start):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for i, p in enumerate(packets):
            us = i * 137
            f.write(struct.pack("<IIII", start + us // 1000000, us % 1000000, len(p), len(p)) + p)


MINE = (web, tls, checksums, vlans, vlans3, vlans3_sorted, fragments, odd, drops, many, big,
        closed, all_of_them, rejects, rejected, rejected_inline)
CHAIN = (G.mixed, G.reuse, G.icmp, G.incomplete, G.jumbo, G.elephant)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    name, path = sys.argv[1:3]
    for made in MINE + CHAIN:
        if made.__name__ == name:
            pcap(path, [p for p in made() if p], int(sys.argv[3] if sys.argv[3:] else 1767225600))
            return
    sys.exit("gen.py: there is no capture \"%s\"\n%s" % (name, __doc__))


if __name__ == "__main__":
    main()
