#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Makes the captures of the chain tests.

usage: gen.py NAME FILE

  mixed    TCP, UDP, ICMP; IPv4, IPv6; tags; fragments; errors; ARP
  reuse    TCP port pairs that are used again
  again    the same SYN again after the end: by its number it is the old connection's
  ends     ends of connections as they come: half closed, out of order, twice, reset; ports
           used again at once and after a pause. 2200 ARPs are the pause, 7000 the end
  icmp     ICMP errors that quote TCP and UDP packets
  incomplete  datagrams of which a fragment is missing
  jumbo    frames of 9014 bytes and more, among small ones
  elephant a flow of 100 packets, far apart, between packets that are no flow's
  tls      eight TLS flows of 100 packets, untagged and tagged, that name their servers in
           the fourth packet; one of them in two segments; one with a wrong checksum there
  ftp      FTP: control connections, and data by PORT, PASV, EPRT and EPSV
  sip      SIP over UDP and TCP, and the RTP and RTCP that SDP announces
  media    many flows at a time, two thirds of them video and music over TLS
  nano     time stamps finer than a microsecond
  pcapng   the packets of "mixed" as pcapng
  raw      link type RAW, not Ethernet
  none     no packets
"""
import random
import socket
import ssl
import struct
import sys

RND = random.Random(20260101)
MAC_A, MAC_B = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
SYN, ACK, FIN, RST, PSH = 0x02, 0x10, 0x01, 0x04, 0x08
TCP, UDP, ICMP, ICMP6 = 6, 17, 1, 58


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def address(text):
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def summed(proto, src, dst, segment, at):
    """The L4 segment with its checksum at byte `at`."""
    if len(src) == 4:
        pseudo = src + dst + struct.pack("!BBH", 0, proto, len(segment))
    else:
        pseudo = src + dst + struct.pack("!I3xB", len(segment), proto)
    value = checksum(pseudo + segment)
    if proto == UDP and value == 0:
        value = 0xFFFF
    return segment[:at] + struct.pack("!H", value) + segment[at + 2:]


def tcp(src, dst, sport, dport, seq, flags, payload=b"", ack=0):
    header = struct.pack("!HHIIBBHHH", sport, dport, seq & 0xFFFFFFFF, ack, 0x50, flags, 8192, 0, 0)
    return TCP, summed(TCP, src, dst, header + payload, 16)


def udp(src, dst, sport, dport, payload=b""):
    header = struct.pack("!HHHH", sport, dport, 8 + len(payload), 0)
    return UDP, summed(UDP, src, dst, header + payload, 6)


def echo(src, dst, ident, seq, payload=b"", reply=False):
    if len(src) == 4:
        header = struct.pack("!BBHHH", 0 if reply else 8, 0, 0, ident, seq)
        return ICMP, summed_plain(header + payload)
    header = struct.pack("!BBHHH", 129 if reply else 128, 0, 0, ident, seq)
    return ICMP6, summed(ICMP6, src, dst, header + payload, 2)


def summed_plain(message):
    return message[:2] + struct.pack("!H", checksum(message)) + message[4:]


def unreachable(src, dst, quoted):
    """Port unreachable: quotes an IP packet."""
    if len(src) == 4:
        return ICMP, summed_plain(struct.pack("!BBHI", 3, 3, 0, 0) + quoted[:28])
    return ICMP6, summed(ICMP6, src, dst, struct.pack("!BBHI", 1, 4, 0, 0) + quoted[:80], 2)


IDENT = [0]


def ip(src, dst, l4, offset=0, more=False, ident=None, options=b""):
    proto, segment = l4
    if len(src) == 4:
        if ident is None:
            IDENT[0] = IDENT[0] % 65535 + 1
            ident = IDENT[0]
        header = struct.pack(
            "!BBHHHBBH4s4s", 0x40 + 5 + len(options) // 4, 0, 20 + len(options) + len(segment),
            ident, offset // 8 | (0x2000 if more else 0), 64, proto, 0, src, dst) + options
        return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + segment
    if ident is not None:
        segment = struct.pack("!BBHI", proto, 0, offset | (1 if more else 0), ident) + segment
        proto = 44
    return struct.pack("!IHBB", 6 << 28, len(segment), proto, 64) + src + dst + segment


def fragments(src, dst, l4, size, ident):
    proto, segment = l4
    parts = [segment[i:i + size] for i in range(0, len(segment), size)]
    return [ip(src, dst, (proto, part), i * size, i + 1 < len(parts), ident)
            for i, part in enumerate(parts)]


def ether(packet, tags=(), back=False):
    kind = 0x86DD if packet[0] >> 4 == 6 else 0x0800
    frame = (MAC_A + MAC_B) if back else (MAC_B + MAC_A)
    for i, tag in enumerate(tags):
        frame += struct.pack("!HH", 0x88A8 if len(tags) > 1 and i == 0 else 0x8100, tag)
    frame += struct.pack("!H", kind) + packet
    return frame + bytes(max(0, 60 - len(frame)))


def arp(a, b):
    return (b"\xff" * 6 + MAC_A + struct.pack("!HHHBBH", 0x0806, 1, 0x0800, 6, 4, 1)
            + MAC_A + a + bytes(6) + b + bytes(18))


def noise(n):
    return RND.randbytes(n)


def tcp_talk(a, b, sport, dport, rounds, tags=(), isn=None, end=FIN, sizes=(0, 1400)):
    """A whole connection."""
    x = RND.getrandbits(32) if isn is None else isn
    y = RND.getrandbits(32)
    out = []

    def go(flags, payload=b""):
        nonlocal x
        out.append(ether(ip(a, b, tcp(a, b, sport, dport, x, flags, payload, y)), tags))
        x += len(payload) + (1 if flags & (SYN | FIN) else 0)

    def come(flags, payload=b""):
        nonlocal y
        out.append(ether(ip(b, a, tcp(b, a, dport, sport, y, flags, payload, x)), tags, True))
        y += len(payload) + (1 if flags & (SYN | FIN) else 0)

    go(SYN)
    come(SYN | ACK)
    go(ACK)
    for _ in range(rounds):
        go(ACK | PSH, noise(RND.randint(*sizes)))
        come(ACK | PSH, noise(RND.randint(*sizes)))
    if end == RST:
        go(RST | ACK)
    elif end == FIN:
        go(FIN | ACK)
        come(FIN | ACK)
        go(ACK)
    return out


def udp_talk(a, b, sport, dport, rounds, tags=(), sizes=(0, 1400)):
    out = []
    for _ in range(rounds):
        out.append(ether(ip(a, b, udp(a, b, sport, dport, noise(RND.randint(*sizes)))), tags))
        out.append(ether(ip(b, a, udp(b, a, dport, sport, noise(RND.randint(*sizes)))), tags, True))
    return out


def interleave(talks):
    """One capture of many talks, each in its own order."""
    talks = [list(t) for t in talks if t]
    out = []
    while talks:
        i = RND.randrange(len(talks))
        out.append(talks[i].pop(0))
        if not talks[i]:
            talks.pop(i)
    return out


def host(i, v6=False):
    return address("2001:db8::%x" % (i + 1) if v6 else "192.0.2.%d" % (i % 250 + 1))


def server(i, v6=False):
    return address("2001:db8:1::%x" % (i + 1) if v6 else "198.51.100.%d" % (i % 250 + 1))


def mixed():
    talks = []
    for i in range(60):
        v6 = i % 3 == 2
        tags = [(), (), (10,), (301, 345)][i % 4]
        talks.append(tcp_talk(host(i, v6), server(i % 7, v6), 40000 + i, 33000, i % 9, tags,
                              end=(FIN, RST, None)[i % 3]))
        talks.append(udp_talk(host(i, v6), server(i % 5, v6), 50000 + i, 34000, 1 + i % 4, tags))
    # the same ports both ways, and a host that talks to itself
    talks.append(udp_talk(host(1), server(1), 5000, 5000, 3))
    talks.append(udp_talk(host(1), host(1), 5000, 5001, 2))
    for i in range(6):
        v6 = i % 2 == 1
        a, b = host(i, v6), server(i, v6)
        parts = fragments(a, b, udp(a, b, 45000 + i, 34500, noise(3000)), 1232, 7000 + i)
        if i >= 4:
            parts.reverse()
        talks.append([ether(p) for p in parts])
        talks.append([ether(ip(a, b, echo(a, b, 77 + i, n, noise(56)))) for n in range(3)])
    talks.append([arp(host(i), server(i)) for i in range(4)])
    talks.append([noise(60)[:12] + struct.pack("!H", 0x88CC) + noise(40)])
    a, b = host(9), server(9)
    talks.append([ether(ip(a, b, udp(a, b, 46000, 34600, b"options"), options=b"\x01" * 8))])
    return interleave(talks)


def reuse():
    talks = []
    for i in range(12):
        v6 = i % 4 == 3
        a, b = host(i, v6), server(i, v6)
        one = []
        for n in range(1 + i % 4):
            isn = 1000 + n * 100000
            one += tcp_talk(a, b, 41000 + i, 33000, n, isn=isn, end=(FIN, RST, None)[(i + n) % 3])
        talks.append(one)
    # the SYN again: no new connection
    a, b = host(20), server(20)
    one = tcp_talk(a, b, 42000, 33000, 2, isn=5000, end=None)
    talks.append([one[0], one[0]] + one[1:])
    # the capture starts in the middle of a connection; then its ports are used again
    a, b = host(30), server(30)
    talks.append(tcp_talk(a, b, 42002, 33000, 3, isn=9000)[4:]
                 + tcp_talk(a, b, 42002, 33000, 2, isn=700000))
    # used again from the other side
    a, b = host(31), server(31)
    talks.append(tcp_talk(a, b, 42003, 33000, 2, isn=1) + tcp_talk(b, a, 33000, 42003, 2, isn=99))
    return interleave(talks)


def again():
    talks = []
    for n, end in enumerate((FIN, RST)):
        a, b = host(21 + n), server(21 + n)
        talks.append(tcp_talk(a, b, 42001, 33000, 1, isn=5000, end=end)
                     + tcp_talk(a, b, 42001, 33000, 1, isn=5000, end=None))
    return interleave(talks)


def icmp():
    talks = []
    for i in range(8):
        v6 = i % 2 == 1
        a, b = host(i, v6), server(i, v6)
        one = ip(a, b, udp(a, b, 47000 + i, 34700, noise(20)))
        answer = ether(ip(b, a, unreachable(b, a, one)), back=True)
        talks.append([ether(one), answer] if i < 6 else [answer])
        if i < 4:
            one = ip(a, b, tcp(a, b, 48000 + i, 33000, 1, SYN))
            talks.append([ether(one), ether(ip(b, a, unreachable(b, a, one)), back=True)])
    return interleave(talks)


def incomplete():
    talks = []
    for i in range(4):
        v6 = i % 2 == 1
        a, b = host(i, v6), server(i, v6)
        parts = fragments(a, b, udp(a, b, 45000 + i, 34500, noise(3000)), 1232, 8000 + i)
        del parts[i // 2]
        talks.append([ether(p) for p in parts])
        talks.append(udp_talk(a, b, 46000 + i, 34600, 2))
    return interleave(talks)


def jumbo():
    talks = []
    for i in range(10):
        v6 = i % 2 == 1
        a, b = host(i, v6), server(i, v6)
        size = (8972, 8900, 2034, 2035, 2100, 4082, 16000, 40000, 65400, 8972)[i]
        if size == 8972 and not v6:  # a frame of 9014 bytes
            talks.append([ether(ip(a, b, udp(a, b, 49000 + i, 34800, noise(8972))))] * 3)
        talks.append(udp_talk(a, b, 49100 + i, 34800, 4, sizes=(size, size)))
        talks.append(tcp_talk(a, b, 49200 + i, 33000, 5, sizes=(0, 8900)))
    return interleave(talks)


def elephant():
    a, b = host(1), server(1)
    filler = [arp(a, b)] * 256
    out = []
    for p in tcp_talk(a, b, 43000, 443, 47)[:100]:
        out += [p] + filler
    return out


CLIENT = ssl.create_default_context()


def client_hello(name):
    """What a real client says first."""
    said = ssl.MemoryBIO()
    try:
        CLIENT.wrap_bio(ssl.MemoryBIO(), said, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return said.read()


def tls_talk(a, b, sport, name, tags=(), cut=None, bad=False, n=100):
    x, y = RND.getrandbits(32), RND.getrandbits(32)
    hello = client_hello(name)

    def packet(back, flags, payload=b""):
        nonlocal x, y
        if back:
            out = tcp(b, a, 443, sport, y, flags, payload, x)
            y += len(payload) + (1 if flags & SYN else 0)
            return ether(ip(b, a, out), tags, True)
        out = tcp(a, b, sport, 443, x, flags, payload, y)
        x += len(payload) + (1 if flags & SYN else 0)
        return ether(ip(a, b, out), tags)

    out = [packet(False, SYN), packet(True, SYN | ACK), packet(False, ACK)]
    for part in [hello] if cut is None else [hello[:cut], hello[cut:]]:
        out.append(packet(False, ACK | PSH, part))
    if bad:  # the last byte of the hello
        out[-1] = out[-1][:-1] + bytes([out[-1][-1] ^ 0xFF])
    while len(out) < n:
        if len(out) % 3 == 0:
            out.append(packet(False, ACK))
        else:
            out.append(packet(True, ACK, b"\x17\x03\x03" + struct.pack("!H", 1195) + noise(1195)))
    return out


def tls():
    names = ["www.youtube.com", "www.netflix.com", "open.spotify.com", "www.example.org"]
    talks = [tls_talk(host(i, i == 3), server(i, i == 3), 44000 + i, name)
             for i, name in enumerate(names)]
    talks.append(tls_talk(host(4), server(4), 44004, names[0], (10,)))
    talks.append(tls_talk(host(5, True), server(5, True), 44005, names[0], (301, 345)))
    talks.append(tls_talk(host(6), server(6), 44006, names[1], cut=100))
    talks.append(tls_talk(host(7), server(7), 44007, names[1], bad=True))
    return interleave(talks)


def media():
    names = ["www.youtube.com", "www.netflix.com", "open.spotify.com"]
    talks = []
    for i in range(600):
        a, b = host(i), server(i % 13)
        if i % 3 == 2:
            talks.append(tcp_talk(a, b, 20000 + i, 33000, 47))
        else:
            talks.append(tls_talk(a, b, 20000 + i, names[i // 3 % len(names)]))
    return interleave(talks)


class Talk:
    """A TCP connection, packet by packet; all packets go into one list."""

    def __init__(self, out, a, b, sport, dport, tags=()):
        self.out, self.a, self.b, self.sport, self.dport, self.tags = out, a, b, sport, dport, tags
        self.x, self.y = RND.getrandbits(32), RND.getrandbits(32)
        self.go(SYN)
        self.come(SYN | ACK)
        self.go(ACK)

    def go(self, flags, payload=b""):
        self.out.append(ether(ip(self.a, self.b, tcp(self.a, self.b, self.sport, self.dport, self.x,
                                                     flags, payload, self.y)), self.tags))
        self.x += len(payload) + (1 if flags & (SYN | FIN) else 0)

    def come(self, flags, payload=b""):
        self.out.append(ether(ip(self.b, self.a, tcp(self.b, self.a, self.dport, self.sport, self.y,
                                                     flags, payload, self.x)), self.tags, True))
        self.y += len(payload) + (1 if flags & (SYN | FIN) else 0)

    def say(self, text):
        self.go(ACK | PSH, text.encode())

    def answer(self, text):
        self.come(ACK | PSH, text.encode())

    def end(self):
        self.go(FIN | ACK)
        self.come(FIN | ACK)
        self.go(ACK)


def ending(kind, a, b, sport, out):
    """A connection that ends in some way."""
    t = Talk(out, a, b, sport, 33000)
    t.go(ACK | PSH, noise(100))
    t.come(ACK | PSH, noise(200))
    if kind == "half":  # the other end goes on, and ends later
        t.go(FIN | ACK)
        for _ in range(3):
            t.come(ACK | PSH, noise(300))
            t.go(ACK)
        t.come(FIN | ACK)
        t.go(ACK)
    elif kind == "early":  # FINs overtake the data before them
        t.go(ACK | PSH, noise(50))
        t.go(FIN | ACK)
        t.come(ACK | PSH, noise(60))
        t.come(FIN | ACK)
        t.go(ACK)
        out[-5], out[-4] = out[-4], out[-5]
        out[-3], out[-2] = out[-2], out[-3]
    elif kind == "crossed":  # the last ACKs overtake the FINs
        t.end()
        out[-3:] = [out[-1], out[-2], out[-3]]
    elif kind == "twice":  # FINs are sent again
        t.go(FIN | ACK)
        out += [out[-1]] * 2
        t.come(FIN | ACK)
        out += [out[-1], out[-2]]
        t.go(ACK)
    elif kind == "twice-one":  # ... but one end's only
        t.go(FIN | ACK)
        out += [out[-1]] * 3
        t.come(ACK)
    elif kind == "fin-rst":
        t.go(FIN | ACK)
        t.come(RST | ACK)
    elif kind == "closed-rst":
        t.end()
        t.come(RST)
    elif kind == "rst-data":  # data that was on its way
        t.go(RST | ACK)
        t.come(ACK | PSH, noise(70))
    elif kind == "one":
        t.come(FIN | ACK)
        t.go(ACK)


ENDINGS = ("half", "early", "crossed", "twice", "twice-one", "fin-rst", "closed-rst", "rst-data",
           "one", "none")


def ends():
    first, second = [], []
    for i in range(40):
        v6 = i % 4 == 3
        kind = ENDINGS[i % len(ENDINGS)]
        a, b = host(i, v6), server(i, v6)
        one, two = [], []
        ending(kind, a, b, 43100 + i, one)
        if i >= 20:  # used again at once, some twice
            ending(ENDINGS[(i * 7 + 3) % len(ENDINGS)], a, b, 43100 + i, one)
            if i % 3 == 0:
                ending("half", a, b, 43100 + i, one)
        if i % 20 < 10:  # and after the pause
            ending(ENDINGS[(i * 3 + 1) % len(ENDINGS)], a, b, 43100 + i, two)
        first.append(one)
        second.append(two)
        # refused, not answered, and UDP that goes on after the pause
        syn = ether(ip(a, b, tcp(a, b, 43200 + i, 33000, 7, SYN)))
        no = ether(ip(b, a, tcp(b, a, 33000, 43200 + i, 0, RST | ACK, b"", 8)), back=True)
        first.append([syn, no] if i % 2 else [syn, syn])
        talk = udp_talk(a, b, 43300 + i, 34000, 4)
        first.append(talk[:4])
        second.append(talk[4:])
    pause = [arp(host(1), server(1))]
    return interleave(first) + pause * 2200 + interleave(second) + pause * 7000


def text_of(addr):
    return socket.inet_ntop(socket.AF_INET if len(addr) == 4 else socket.AF_INET6, addr)


def six_numbers(addr, port):
    return ",".join(str(n) for n in (*addr, port >> 8, port & 255))


def ftp_transfer(out, control, how, a, b, port, tags):
    """One transfer; a: where the client has its data, b: the server."""
    if how in ("PORT", "EPRT"):
        if how == "PORT":
            control.say("PORT %s\r\n" % six_numbers(a, port))
        else:
            control.say("EPRT |%d|%s|%d|\r\n" % (1 if len(a) == 4 else 2, text_of(a), port))
        control.answer("200 Command okay.\r\n")
        control.say("RETR file%d\r\n" % port)
        data = Talk(out, b, a, 20, port, tags)
        control.answer("150 Opening data connection.\r\n")
        for _ in range(3):
            data.go(ACK | PSH, noise(RND.randint(1, 1400)))
            data.come(ACK)
    else:
        control.say("%s\r\n" % how)
        if how == "PASV":
            control.answer("227 Entering Passive Mode (%s).\r\n" % six_numbers(b, port))
        else:
            control.answer("229 Entering Extended Passive Mode (|||%d|)\r\n" % port)
        data = Talk(out, a, b, RND.randint(20000, 60000), port, tags)
        control.say("STOR file%d\r\n" % port)
        control.answer("150 Ok to send data.\r\n")
        for _ in range(3):
            data.go(ACK | PSH, noise(RND.randint(1, 1400)))
            data.come(ACK)
    data.end()
    control.answer("226 Transfer complete.\r\n")


def ftp():
    talks = []
    for i in range(24):
        v6 = i % 3 == 2
        a, b = host(i, v6), server(i % 7, v6)
        tags = [(), (), (10,), (301, 345)][i % 4]
        out = []
        control = Talk(out, a, b, 30000 + i, 21, tags)
        control.answer("220-Welcome\r\n220 ready\r\n")
        control.say("USER anonymous\r\n")
        control.answer("230 Login successful.\r\n")
        for n in range(4):
            how = ("EPSV", "EPRT")[n % 2] if v6 else ("PASV", "PORT", "EPSV", "EPRT")[n]
            # every other one has its data at an address of its own, if it can say so
            at, bt = (a, b) if i % 2 else (host(100 + i, v6), server(100 + i, v6))
            ftp_transfer(out, control, how, at if how in ("PORT", "EPRT") else a,
                         bt if how == "PASV" else b,
                         1024 + i * 64 + RND.randrange(64) * 257 % 60000, tags)
        control.say("QUIT\r\n")
        control.answer("221 Goodbye.\r\n")
        control.end()
        talks.append(out)
        talks.append(udp_talk(a, b, 50000 + i, 34000, 4, tags))
    return interleave(talks)


def rtp(kind, seq, ssrc):
    return struct.pack("!BBHII", 0x80, kind, seq, seq * 160, ssrc) + noise(160)


def rtcp(ssrc):
    return struct.pack("!BBHIIIIII", 0x80, 200, 6, ssrc, 0, 0, 0, 0, 0)


def sdp(who, where, audio, video=None, video_at=None, rtcp_port=None):
    """Media at "where"; a video line has an address of its own."""
    def net(addr):
        return "IN IP%d %s" % (4 if len(addr) == 4 else 6, text_of(addr))

    lines = ["v=0", "o=- 1 1 %s" % net(who), "s=-", "c=%s" % net(where), "t=0 0",
             "m=audio %d RTP/AVP 0" % audio]
    if rtcp_port is not None:
        lines.append("a=rtcp:%d" % rtcp_port)
    lines.append("a=rtpmap:0 PCMU/8000")
    if video is not None:
        lines += ["m=video %d RTP/AVP 34" % video, "c=%s" % net(video_at), "a=rtpmap:34 H263/90000"]
    return "\r\n".join(lines) + "\r\n"


def sip_message(first, call, more, body=""):
    lines = [first, "Via: SIP/2.0/UDP proxy;branch=z9hG4bK%d" % call, "From: <sip:a@example.org>;tag=1",
             "To: <sip:b@example.org>", "Call-ID: %d@example.org" % call, "CSeq: 1 " + more,
             "Contact: <sip:a@example.org>", "Max-Forwards: 70"]
    if body:
        lines.append("Content-Type: application/sdp")
    return "\r\n".join(lines + ["Content-Length: %d" % len(body), "", body])


def sip():
    talks = []
    for i in range(24):
        v6 = i % 3 == 2
        tags = [(), (), (10,), (301, 345)][i % 4]
        # phone, proxy; media of the phone, of the other one, and of its video
        a, p = host(i, v6), server(i, v6)
        ma, mb, mv = host(100 + i, v6), server(100 + i, v6), server(180 + i, v6)
        at, bt, av, bv = (port + 4 * i for port in (16384, 26000, 36000, 46000))
        out = []
        video = i % 2 == 0
        own_rtcp = at + 30001 if i % 5 == 1 else None
        call = sip_message("INVITE sip:b@example.org SIP/2.0", i, "INVITE",
                           sdp(a, ma, at, av if video else None, ma, own_rtcp))
        ringing = sip_message("SIP/2.0 180 Ringing", i, "INVITE")
        okay = sip_message("SIP/2.0 200 OK", i, "INVITE", sdp(p, mb, bt, bv if video else None, mv))
        if i % 4 == 3:
            control = Talk(out, a, p, 31000 + i, 5060, tags)
            say, answer = control.say, control.answer
        else:
            def say(text):
                out.append(ether(ip(a, p, udp(a, p, 5060, 5060, text.encode())), tags))

            def answer(text):
                out.append(ether(ip(p, a, udp(p, a, 5060, 5060, text.encode())), tags, True))

        def media(x, y, sport, dport, payload):
            out.append(ether(ip(x, y, udp(x, y, sport, dport, payload)), tags))

        say(call)
        answer(ringing)
        answer(okay)
        say(sip_message("ACK sip:b@example.org SIP/2.0", i, "ACK"))
        for n in range(8):
            media(ma, mb, at, bt, rtp(0, n, 2 * i + 1))
            # some answer from another port than the one they listen at
            media(mb, ma, bt + (5000 if i % 6 == 5 else 0), at, rtp(0, n, 2 * i + 2))
            if video:
                media(ma, mv, av, bv, rtp(34, n, 3 * i + 1))
                media(mv, ma, bv, av, rtp(34, n, 3 * i + 2))
            if n % 4 == 3:
                media(ma, mb, own_rtcp or at + 1, bt + 1, rtcp(2 * i + 1))
                media(mb, ma, bt + 1, own_rtcp or at + 1, rtcp(2 * i + 2))
        say(sip_message("BYE sip:b@example.org SIP/2.0", i, "BYE"))
        answer(sip_message("SIP/2.0 200 OK", i, "BYE"))
        talks.append(out)
        talks.append(udp_talk(a, p, 50000 + i, 34000, 4, tags))
    return interleave(talks)


def pcap(path, packets, link=1, nano=False):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 262144,
                            link))
        for i, p in enumerate(packets):
            fine = i * 1237 % 1000000 * (1000 if nano else 1) + (i % 1000 if nano else 0)
            f.write(struct.pack("<IIII", 1767225600 + i // 1000, fine, len(p), len(p)) + p)


def pcapng(path, packets):
    def block(kind, body):
        body += bytes(-len(body) % 4)
        size = struct.pack("<I", 12 + len(body))
        return struct.pack("<I", kind) + size + body + size

    with open(path, "wb") as f:
        f.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        f.write(block(1, struct.pack("<HHI", 1, 0, 262144)))
        for i, p in enumerate(packets):
            us = 1767225600000000 + i * 1237
            f.write(block(6, struct.pack("<IIIII", 0, us >> 32, us & 0xFFFFFFFF, len(p), len(p))
                          + p))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    name, path = sys.argv[1:]
    if name in ("mixed", "reuse", "again", "ends", "icmp", "incomplete", "jumbo", "elephant", "tls", "media", "ftp",
                "sip"):
        pcap(path, globals()[name]())
    elif name == "nano":
        pcap(path, mixed(), nano=True)
    elif name == "pcapng":
        pcapng(path, mixed())
    elif name == "raw":
        pcap(path, [p[14:] for p in mixed()[:20]], link=101)
    elif name == "none":
        pcap(path, [])
    else:
        sys.exit("gen.py: there is no capture \"%s\"\n%s" % (name, __doc__))


if __name__ == "__main__":
    main()
