#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Makes the traces of the Suricata benchmark.

usage: gen.py TRACE FILE

  64         terminal sessions: a few bytes a packet, frames of 64 bytes (60 and FCS)
  660        short TLS and HTTP connections, 660 bytes a frame on average
  1300       longer ones, 1300 bytes a frame on average
  elephants  4 long TLS downloads with most of the bytes, among short connections

Complete TCP connections over IPv4 with valid checksums. The trace has two halves: the
same 5-tuples with other initial sequence numbers. So it can be replayed: a connection
never begins with the number that the one before it on the same ports began with, and
is a new one for everybody. Prints what it made as JSON.
"""
import json
import random
import struct
import sys

MAC_A, MAC_B = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10
MSS = 1460
START = 1767225600_000000  # us
GAP = 20  # us between two packets

# What a name, a path or a page is made of.
STEMS = (
    "amber anchor archive autumn basalt beacon bridge canvas cedar chapter cipher cobalt copper corner "
    "delta dockyard ember engine falcon fathom fennel garden gravel harbor hazel island ivory jasper "
    "juniper kernel lantern ledger lilac marble meadow meridian nimbus oaken orchard paper pebble pewter "
    "quarry quartz ribbon river saffron signal silver summit tangent thistle timber umbra valley velvet "
    "walnut willow yonder zephyr"
).split()
TLDS = ("com", "net", "org", "io", "de", "info")
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 "
    "Mobile/15E148 Safari/604.1",
    "curl/7.88.1",
)
# One in CANARY_EVERY connections of HTTP asks for this; rules.py has a rule for it.
CANARY = "/status/canary-7b31"
CANARY_EVERY = 25


class Trace:
    """Shape of a trace: connections in a half, how many at a time, what they are."""

    def __init__(self, seed, tuples, active, kinds, response, ack_every, elephants=0, elephant_bytes=0):
        self.seed = seed
        self.tuples = tuples
        self.active = active
        self.kinds = kinds  # weights of tls, http, lines, terminal
        self.response = response  # bytes, from and to
        self.ack_every = ack_every  # data packets that one pure ACK answers
        self.elephants = elephants
        self.elephant_bytes = elephant_bytes


TRACES = {
    "64": Trace(64, 1400, 400, (0, 0, 0, 1), (0, 0), 1),
    "660": Trace(660, 1000, 400, (60, 30, 10, 0), (1000, 13400), 2),
    "1300": Trace(1300, 300, 150, (60, 30, 10, 0), (30000, 90000), 24),
    "elephants": Trace(4, 360, 200, (60, 30, 10, 0), (1000, 13400), 2, elephants=4, elephant_bytes=7_600_000),
}


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    rest = int.from_bytes(data, "big") % 0xFFFF
    return 0xFFFF - rest if rest else 0


def host(rnd):
    first = rnd.choice(("www", "cdn", "api", "static", "mail"))
    return f"{first}.{rnd.choice(STEMS)}{rnd.choice(STEMS)}.{rnd.choice(TLDS)}"


def path(rnd):
    words = [rnd.choice(STEMS) for _ in range(rnd.randint(1, 3))]
    return "/" + "/".join(words) + rnd.choice((".html", ".js", ".css", ".png", "", f"?id={rnd.randrange(10 ** 6)}"))


def text(rnd, size):
    """Words, in lines."""
    some = " ".join(rnd.choices(STEMS, k=60)).encode() + b"\n"
    at = rnd.randrange(len(some))
    return ((some[at:] + some * (size // len(some) + 1)))[:size]


# ---- what is said in a connection: lists of (True: client, bytes) ------------------------


def tls_record(kind, body):
    return struct.pack("!BHH", kind, 0x0303, len(body)) + body


def tls_hello(rnd, client, name):
    session = rnd.randbytes(32)
    if client:
        sni = struct.pack("!HBH", len(name) + 3, 0, len(name)) + name
        extensions = struct.pack("!HH", 0, len(sni)) + sni
        extensions += struct.pack("!HHH4H", 10, 10, 8, 29, 23, 24, 25)  # groups
        extensions += struct.pack("!HHH4H", 13, 10, 8, 0x0403, 0x0804, 0x0401, 0x0503)  # signatures
        extensions += struct.pack("!HHBHH", 43, 5, 4, 0x0304, 0x0303)  # versions
        extensions += struct.pack("!HHHHH", 51, 38, 36, 29, 32) + rnd.randbytes(32)  # key share
        ciphers = struct.pack("!H6H", 12, 0x1301, 0x1302, 0x1303, 0xC02B, 0xC02F, 0xC030) + b"\1\0"
    else:
        extensions = struct.pack("!HHH", 43, 2, 0x0304) + struct.pack("!HHHH", 51, 36, 29, 32) + rnd.randbytes(32)
        ciphers = struct.pack("!HB", 0x1301, 0)
    body = struct.pack("!H", 0x0303) + rnd.randbytes(32) + b"\x20" + session + ciphers
    body += struct.pack("!H", len(extensions)) + extensions
    return tls_record(22, struct.pack("!I", (1 if client else 2) << 24 | len(body)) + body)


def tls_data(rnd, size):
    """Encrypted, in records of up to 16 KiB."""
    out = []
    while size > 0:
        n = min(size, 16384)
        out.append(tls_record(23, rnd.randbytes(n)))
        size -= n
    return b"".join(out)


def tls_start(rnd, name):
    changed = tls_record(20, b"\1")
    return [
        (True, tls_hello(rnd, True, name.encode())),
        (False, tls_hello(rnd, False, b"") + changed + tls_data(rnd, rnd.randint(1500, 2600))),
        (True, changed + tls_data(rnd, 53)),
    ]


def tls(rnd, response):
    talk = tls_start(rnd, host(rnd))
    for _ in range(rnd.randint(1, 3)):
        talk.append((True, tls_data(rnd, rnd.randint(150, 700))))
        talk.append((False, tls_data(rnd, rnd.randint(*response))))
    return talk


def http(rnd, response, canary=False):
    name, agent, talk = host(rnd), rnd.choice(AGENTS), []
    for i in range(rnd.randint(1, 3)):
        where = CANARY if canary and i == 0 else path(rnd)
        ask = f"GET {where} HTTP/1.1\r\nHost: {name}\r\nUser-Agent: {agent}\r\nAccept: */*\r\n"
        ask += f"Accept-Language: en\r\nCookie: session={rnd.getrandbits(96):024x}\r\nConnection: keep-alive\r\n\r\n"
        size = rnd.randint(*response)
        if where.endswith(".png"):
            kind, body = "image/png", b"\x89PNG\r\n\x1a\n" + rnd.randbytes(size)
        else:
            kind, body = "text/html; charset=utf-8", b"<!doctype html><html><body><p>" + text(rnd, size)
        head = f"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        talk += [(True, ask.encode()), (False, head.encode() + body)]
    return talk


def lines(rnd, response):
    """A protocol that nobody knows."""
    talk = []
    for _ in range(rnd.randint(1, 3)):
        talk.append((True, text(rnd, rnd.randint(50, 400)) + b"\r\n"))
        talk.append((False, text(rnd, rnd.randint(*response)) + b"\r\n"))
    return talk


def terminal(rnd, _response):
    talk = []
    for _ in range(rnd.randint(4, 9)):
        key = rnd.choice(STEMS)[: rnd.randint(1, 6)].encode()
        talk += [(True, key), (False, key)]
    return talk


# ---- packets ------------------------------------------------------------------------------


class Side:
    def __init__(self, rnd, address, port, mac):
        self.address, self.port, self.mac = address, port, mac
        self.seq = rnd.getrandbits(32)
        self.ident = rnd.getrandbits(16)


def packet(src, dst, flags, payload=b"", options=b""):
    size = 20 + len(options) + len(payload)
    pseudo = src.address + dst.address + struct.pack("!BBH", 0, 6, size)
    ack = dst.seq if flags & ACK else 0
    offset, window = (20 + len(options)) // 4 << 4, 64240 if flags & SYN else 501
    head = struct.pack("!HHIIBBHHH", src.port, dst.port, src.seq, ack, offset, flags, window, 0, 0) + options
    head = head[:16] + struct.pack("!H", checksum(pseudo + head + payload)) + head[18:]
    src.ident = (src.ident + 1) & 0xFFFF
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + size, src.ident, 0x4000, 64, 6, 0, src.address, dst.address)
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    src.seq = (src.seq + len(payload) + (1 if flags & (SYN | FIN) else 0)) & 0xFFFFFFFF
    frame = dst.mac + src.mac + b"\x08\x00" + ip + head + payload
    return frame + bytes(60 - len(frame)) if len(frame) < 60 else frame


def connection(a, b, talk, ack_every):
    """Packets of a connection, one after the other."""
    options = bytes.fromhex("020405b4 01010402 01030307".replace(" ", ""))  # MSS, SACK permitted, window scale 7
    yield packet(a, b, SYN, options=options)
    yield packet(b, a, SYN | ACK, options=options)
    yield packet(a, b, ACK)
    for client, data in talk:
        src, dst = (a, b) if client else (b, a)
        for n, at in enumerate(range(0, len(data), MSS), 1):
            last = at + MSS >= len(data)
            yield packet(src, dst, ACK | PSH if last else ACK, data[at : at + MSS])
            if n % ack_every == 0 or last and n > 1:
                yield packet(dst, src, ACK)
    yield packet(a, b, FIN | ACK)
    yield packet(b, a, FIN | ACK)
    yield packet(a, b, ACK)


KINDS = ((tls, 443), (http, 80), (lines, 7340), (terminal, 7323))


def tuples(rnd, trace):
    """Clients, servers and what they talk about."""
    out, seen = [], set()
    while len(out) < trace.tuples:
        client = struct.pack("!I", 10 << 24 | rnd.randrange(1, 1 << 12))
        server = struct.pack("!I", 198 << 24 | 18 << 16 | rnd.randrange(1, 1 << 12))
        port = rnd.randint(32768, 60999)
        if (client, server, port) not in seen:
            seen.add((client, server, port))
            make, to = (tls, 443) if len(out) < trace.elephants else rnd.choices(KINDS, trace.kinds)[0]
            out.append((client, server, port, make, to))
    return out


def half(rnd, trace, ends, counts):
    """Mice come and go, elephants last; nobody is left at the end."""
    waiting, mice, big = [], [], []
    https = 0
    for i, (client, server, port, make, to) in enumerate(ends):
        every = trace.ack_every
        if i < trace.elephants:
            talk, every = tls_start(rnd, "backup." + rnd.choice(STEMS) + ".net"), 8
            talk += [(True, tls_data(rnd, 400)), (False, tls_data(rnd, trace.elephant_bytes))]
        elif make is http:
            https += 1
            canary = https % CANARY_EVERY == 0
            counts["canaries"] += canary
            talk = http(rnd, trace.response, canary)
        else:
            talk = make(rnd, trace.response)
        a, b = Side(rnd, client, port, MAC_A), Side(rnd, server, to, MAC_B)
        (big if i < trace.elephants else waiting).append(connection(a, b, talk, every))
        counts["connections"] += 1
    # An elephant's turn is as likely as keeps all of them going until the mice are through.
    share = 0.0
    if trace.elephants:
        mean = sum(trace.response) / 2
        packets_of_mice = len(waiting) * (2 * (mean / MSS * 1.5 + 2) + 6)
        packets_of_big = trace.elephants * trace.elephant_bytes / MSS * 9 / 8
        share = packets_of_big / 8 / (packets_of_big / 8 + packets_of_mice / 2.5)
    waiting.reverse()
    while waiting or mice or big:
        while waiting and len(mice) < trace.active:
            mice.append(waiting.pop())
        herd, burst = (big, 8) if big and (not mice or rnd.random() < share) else (mice, rnd.randint(1, 4))
        i = rnd.randrange(len(herd))
        for _ in range(burst):
            frame = next(herd[i], None)
            if frame is None:
                herd[i] = herd[-1]
                herd.pop()
                break
            if herd is big:
                counts["elephant_packets"] += 1
                counts["elephant_bytes"] += len(frame)
            yield frame


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in TRACES:
        sys.exit(__doc__)
    trace = TRACES[sys.argv[1]]
    rnd = random.Random(trace.seed)
    ends = tuples(rnd, trace)
    counts = {"trace": sys.argv[1], "packets": 0, "bytes": 0, "connections": 0, "canaries": 0}
    counts |= {"elephant_packets": 0, "elephant_bytes": 0}
    with open(sys.argv[2], "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        when = START
        for _ in range(2):
            for frame in half(rnd, trace, ends, counts):
                out.write(struct.pack("<IIII", when // 10 ** 6, when % 10 ** 6, len(frame), len(frame)) + frame)
                when += GAP
                counts["packets"] += 1
                counts["bytes"] += len(frame)
    counts["mean"] = round(counts["bytes"] / counts["packets"], 1)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
