#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Write the golden vectors: flow-keys, records, handshakes, messages and table (.json).

    make.py            write them beside this file
    make.py --check    exit 1 if they are not what this program makes

Written from the text of bindings-spec alone, so that the C library and this
file can only agree by both being right.  Packets are built, not parsed: what
is expected of a packet follows from what it was built of.  One vector a line,
so that a test can read them without a JSON library.
"""

import ipaddress
import json
import pathlib
import struct
import sys

# ---- flags, see "Flags" in ../README.md
L2, L3, L4 = 0x0001, 0x0002, 0x0004
L3_GOOD, L3_BAD, L4_GOOD, L4_BAD = 0x0008, 0x0010, 0x0020, 0x0040
FIRST, LATER = 0x0080, 0x0100
REVERSE, TUNNEL = 0x0800, 0x1000
NONE = 0xFFFF

VLAN_IN_KEY, L4_CSUM = 1, 2

# ---- packets


def inet_sum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 if crc & 1 else crc >> 1
    return crc ^ 0xFFFFFFFF


def address(text):
    return ipaddress.ip_address(text).packed


def l4_bytes(proto, sport, dport, data, src, dst):
    """An L4 packet with a right checksum, and the length of its header."""
    if proto == 6:
        head, at = struct.pack("!HHIIBBHHH", sport, dport, 1, 0, 0x50, 0x18, 512, 0, 0), 16
    elif proto == 17:
        head, at = struct.pack("!HHHH", sport, dport, 8 + len(data), 0), 6
    elif proto == 132:
        head = struct.pack("!HHI", sport, dport, 99)
        return head + struct.pack("<I", crc32c(head + bytes(4) + data)) + data, 12
    elif proto in (1, 58):  # sport: type, dport: identifier
        head, at = struct.pack("!BBHHH", sport, 0, 0, dport, 1), 2
    else:
        return data, None
    pseudo = b"" if proto == 1 else src + dst + struct.pack("!HH", len(head + data), proto)
    check = inet_sum(pseudo + head + data)
    if proto == 17 and check == 0:
        check = 0xFFFF
    head = head[:at] + struct.pack("!H", check) + head[at + 2 :]
    return head + data, 4 if proto == 58 else len(head)


def packet(
    src,
    dst,
    proto,
    sport=0,
    dport=0,
    data=b"nfmeta",
    tags=(),
    options=b"",
    frag=None,
    ext=b"",
    first_next=None,
    fix=lambda b: b,
):
    """The bytes of an Ethernet packet, and the offsets of its headers.

    tags: (TPID, TCI); frag: IPv4 flags and offset, or the IPv6 field; ext and
    first_next: IPv6 extension headers as bytes and the number of the first.
    """
    src, dst = address(src), address(dst)
    body, head_len = l4_bytes(proto, sport, dport, data, src, dst)
    if len(src) == 4:
        length = 20 + len(options) + len(body)
        vhl = 0x45 + len(options) // 4
        ip = struct.pack("!BBHHHBBH", vhl, 0, length, 7, frag or 0, 64, proto, 0) + src + dst + options
        ip = ip[:10] + struct.pack("!H", inet_sum(ip)) + ip[12:]
        ethertype = 0x0800
    else:
        number = proto if first_next is None else first_next
        ip = struct.pack("!IHBB", 6 << 28, len(ext + body), number, 64) + src + dst + ext
        ethertype = 0x86DD
    eth = bytes.fromhex("020000000002020000000001")
    eth += b"".join(struct.pack("!HH", *tag) for tag in tags) + struct.pack("!H", ethertype)
    l4_off = len(eth + ip)
    payload = NONE if head_len is None else l4_off + head_len
    return fix(eth + ip + body), (len(eth), NONE if head_len is None else l4_off, payload)


def flow_key(src, dst, proto, sport=0, dport=0, vlan=(0, 0), fragment=0):
    """The canonical key, and whether the source is its end b."""
    ends = [(address(src), struct.pack("!H", sport)), (address(dst), struct.pack("!H", dport))]
    reverse = ends[0] > ends[1]
    (addr_a, port_a), (addr_b, port_b) = sorted(ends)
    key = addr_a.ljust(16, b"\0") + addr_b.ljust(16, b"\0") + port_a + port_b
    key += struct.pack("!HH", *vlan)
    key += bytes([proto, 4 if len(addr_a) == 4 else 6, fragment, 0]) + bytes(4)
    assert len(key) == 48
    return key, reverse


A4, B4 = "192.0.2.1", "198.51.100.2"
A6, B6 = "2001:db8::1", "2001:db8::2"


def flow_keys():
    vectors = []

    def add(name, made, keyed, flags, stripped=(), policy=L4_CSUM | VLAN_IN_KEY):
        data, (l3, l4, payload) = made
        if keyed is None:
            key, reverse, l3 = bytes(48), False, NONE
        else:
            key, reverse = keyed
        if flags & LATER:
            l4 = payload = NONE
        vectors.append(
            {
                "name": name,
                "policy": policy,
                "stripped": list(stripped),
                "packet": data.hex(),
                "key": key.hex(),
                "flags": flags | (REVERSE if reverse else 0),
                "reverse": int(reverse),
                "l3_off": l3,
                "l4_off": l4,
                "payload_off": payload,
            }
        )

    good4, good6 = L2 | L3 | L4 | L3_GOOD | L4_GOOD, L2 | L3 | L4 | L4_GOOD

    for name, a, b, good in (("ipv4", A4, B4, good4), ("ipv6", A6, B6, good6)):
        for proto, l4 in ((6, "tcp"), (17, "udp"), (132, "sctp")):
            t = (a, b, proto, 40000, 443)
            r = (b, a, proto, 443, 40000)
            add(f"{name} {l4}", packet(*t), flow_key(*t), good)
            add(f"{name} {l4}, other direction", packet(*r), flow_key(*r), good)
        same = (a, a, 17, 500, 499)
        add(f"{name}, one address: ports decide", packet(*same), flow_key(*same), good)
        same = (a, a, 17, 500, 500)
        add(f"{name}, equal ends: not reverse", packet(*same), flow_key(*same), good)
        cross = (a, b, 6, 443, 40000)
        add(f"{name}, ports change places: another flow", packet(*cross), flow_key(*cross), good)
        odd = (a, b, 47)
        add(f"{name} GRE: no ports", packet(*odd), flow_key(*odd), good & ~(L4 | L4_GOOD) | TUNNEL)
        odd = (b, a, 50)
        add(f"{name} ESP: no ports", packet(*odd), flow_key(*odd), good & ~(L4 | L4_GOOD))
        vxlan = (a, b, 17, 1234, 4789)
        add(f"{name} VXLAN: outer headers", packet(*vxlan), flow_key(*vxlan), good | TUNNEL)
        for port, tunnel in ((6081, "Geneve"), (2152, "GTP-U")):
            outer = (a, b, 17, 1234, port)
            add(f"{name} {tunnel}: outer headers", packet(*outer), flow_key(*outer), good | TUNNEL)
            back = (b, a, 17, port, 1234)
            add(f"{name}, source port of {tunnel}: no tunnel", packet(*back), flow_key(*back), good)
        for number, inner in ((4, "IPv4"), (41, "IPv6")):
            outer = (a, b, number)
            flags = good & ~(L4 | L4_GOOD) | TUNNEL
            add(f"{inner} in {name}: outer headers", packet(*outer), flow_key(*outer), flags)

    signs = ("127.255.255.255", "128.0.0.0", 6, 1, 2)
    add("addresses compare as unsigned bytes", packet(*signs), flow_key(*signs), good4)
    order = ("10.0.0.2", "9.0.0.3", 6, 1, 2)
    add("addresses compare from their first byte", packet(*order), flow_key(*order), good4)
    order = (A4, A4, 6, 0x0100, 0x00FF)
    add("ports compare from their first byte", packet(*order), flow_key(*order), good4)

    for kind, text in ((8, "request"), (0, "reply")):
        ends = (A4, B4) if kind else (B4, A4)
        made = packet(*ends, 1, kind, 0x1234)
        add(f"icmp echo {text}", made, flow_key(*ends, 1, 0x1234, 0x1234), good4)
        made = packet(*((A6, B6) if kind else (B6, A6)), 58, 128 if kind else 129, 0x1234)
        ends = (A6, B6) if kind else (B6, A6)
        add(f"icmpv6 echo {text}", made, flow_key(*ends, 58, 0x1234, 0x1234), good6)
    add("icmp, not echo: no ports", packet(A4, B4, 1, 3, 0x1234), flow_key(A4, B4, 1), good4)

    # VLAN
    t = (A4, B4, 6, 40000, 443)
    for policy in (L4_CSUM | VLAN_IN_KEY, L4_CSUM):
        said = "in the key" if policy & VLAN_IN_KEY else "not in the key"

        def vlan(*ids):
            return ids if policy & VLAN_IN_KEY else (0, 0)

        made = packet(*t, tags=[(0x8100, 42)])
        add(f"VLAN 42 {said}", made, flow_key(*t, vlan=vlan(42, 0)), good4, policy=policy)
        made = packet(*t, tags=[(0x8100, 0xE000 | 42)])
        add(f"VLAN 42 with priority {said}", made, flow_key(*t, vlan=vlan(42, 0)), good4, policy=policy)
        key = flow_key(*t, vlan=vlan(301, 345))
        made = packet(*t, tags=[(0x88A8, 301), (0x8100, 345)])
        add(f"QinQ in the bytes, {said}", made, key, good4, policy=policy)
        made = packet(*t, tags=[(0x8100, 345)])
        add(f"QinQ, outer tag stripped, {said}", made, key, good4, [301], policy)
        add(f"QinQ, both tags stripped, {said}", packet(*t), key, good4, [301, 345], policy)
    made = packet(*t, tags=[(0x9100, 1), (0x8100, 2), (0x8100, 3)])
    add("three tags: the outer two count", made, flow_key(*t, vlan=(1, 2)), good4)

    # fragments
    no_sum = L4_GOOD
    made = packet(*t, frag=0x2000)
    add("ipv4 first fragment", made, flow_key(*t), good4 & ~no_sum | FIRST)
    made = packet(A4, B4, 6, 40000, 443, frag=0x00B9)
    add("ipv4 later fragment", made, flow_key(A4, B4, 6, fragment=1), L2 | L3 | L3_GOOD | LATER)
    for field, later in ((0x0001, 0), (0x0008, 1), (0x0000, None)):
        ext = struct.pack("!BBHI", 17, 0, field, 9)
        made = packet(A6, B6, 17, 53, 53, ext=ext, first_next=44)
        if later:
            add("ipv6 later fragment", made, flow_key(A6, B6, 17, fragment=1), L2 | L3 | LATER)
        else:
            name, flags = ("ipv6 first fragment", good6 & ~no_sum | FIRST) if later == 0 else (
                "ipv6 atomic fragment: not a fragment", good6)
            add(name, made, flow_key(A6, B6, 17, 53, 53), flags)

    # headers between
    hop, dst = bytes([60, 0, 1, 4, 0, 0, 0, 0]), bytes([6, 1, 1, 12]) + bytes(12)
    t6 = (A6, B6, 6, 40000, 443)
    made = packet(*t6, ext=hop + dst, first_next=0)
    add("ipv6 hop-by-hop and destination options", made, flow_key(*t6), good6)
    made = packet(*t, options=b"\1\1\1\1")
    add("ipv4 with options", made, flow_key(*t), good4)

    # checksums
    def change(at, value):
        return lambda b: b[:at] + value + b[at + len(value) :]

    made = packet(*t, fix=change(24, b"\x55\x55"))
    add("ipv4 header checksum wrong", made, flow_key(*t), good4 ^ L3_GOOD ^ L3_BAD)
    made = packet(*t, fix=change(55, b"x"))
    add("tcp checksum wrong", made, flow_key(*t), good4 ^ L4_GOOD ^ L4_BAD)
    made = packet(*t, fix=change(55, b"x"))
    add("tcp checksum wrong, L4 not asked for", made, flow_key(*t), good4 ^ L4_GOOD, policy=VLAN_IN_KEY)
    u = (A4, B4, 17, 53, 53)
    made = packet(*u, fix=change(40, b"\0\0"))
    add("udp without checksum over ipv4: not known", made, flow_key(*u), good4 ^ L4_GOOD)
    u = (A6, B6, 17, 53, 53)
    made = packet(*u, fix=change(60, b"\0\0"))
    add("udp without checksum over ipv6: bad", made, flow_key(*u), good6 ^ L4_GOOD ^ L4_BAD)

    # lengths
    made = packet(*t, fix=lambda b: b + bytes(9))
    add("ethernet padding", made, flow_key(*t), good4)
    made = packet(*t, fix=lambda b: b[:-1])
    add("cut in the payload: still a flow", made, flow_key(*t), L2 | L3_GOOD)
    made = packet(*t, fix=lambda b: b[:38])
    add("cut behind the ports: still a flow", (made[0], (14, 34, NONE)), flow_key(*t), L2 | L3_GOOD)
    made = packet(*t, fix=lambda b: b[:37])
    add("cut in the ports", (made[0], (14, NONE, NONE)), flow_key(A4, B4, 6), L2 | L3_GOOD)
    made = packet(*t, fix=lambda b: b[:33])
    add("cut in the addresses: no key", (made[0], (14, NONE, NONE)), None, L2)
    made = packet(*t, fix=lambda b: b[:12] + b"\x08\x06" + b[14:])
    add("not IP: no key", (made[0], (14, NONE, NONE)), None, L2)
    return vectors


# ---- records

FIELDS = (
    ("abi", "B"), ("size", "B"), ("flags", "H"), ("flow_id", "I"),
    ("l3_off", "H"), ("l4_off", "H"), ("payload_off", "H"), ("flow_gen", "H"),
    ("app_id", "I"), ("port", "H"), ("vlan_outer", "H"), ("vlan_inner", "H"),
    ("vlan_count", "B"), ("action", "B"), ("reserved0", "4s"),
    ("timestamp", "Q"), ("tenant", "I"), ("chain", "B"), ("tunnels", "B"),
    ("reserved1", "2s"), ("user", "16s"),
)  # fmt: skip


def record_bytes(**values):
    """All 64 bytes; what is not given is as in an empty record."""
    values = {"abi": 1, "size": 64, "l3_off": NONE, "l4_off": NONE, "payload_off": NONE, **values}
    data = b""
    for name, form in FIELDS:
        data += struct.pack("<" + form, values.get(name, b"" if form.endswith("s") else 0))
    assert len(data) == 64
    return data


def fields_of(data):
    """What a reader finds in the first bytes of a record."""
    out, at = {}, 0
    for name, form in FIELDS:
        end = at + struct.calcsize("<" + form)
        if end > len(data):
            break
        value = struct.unpack("<" + form, data[at:end])[0]
        if name == "user":
            out[name] = value.hex()
        elif form == "Q":
            out[name] = f"0x{value:016x}"  # more than JSON's numbers hold
        elif not form.endswith("s"):
            out[name] = value
        at = end
    return out


DYNFIELD, UDATA64, HEADROOM = 1, 2, 3
MASK = (1 << 64) - 1


def seal(placement, size, key, data, start, length):
    """See "Seal" in ../README.md."""
    turn = (0, 7, 13, 19, 29, 37, 43, 53)
    x = key
    if placement == HEADROOM:
        data = data[:28] + bytes(4) + data[32:]
    for i in range(size // 8):
        word = int.from_bytes(data[8 * i : 8 * i + 8], "little")
        x ^= (word << turn[i] | word >> (64 - turn[i])) & MASK
    x ^= x >> 32
    if placement != HEADROOM:
        x ^= x >> 16
    x ^= (start + length * 0x9E36) & 0xFFFF
    return x.to_bytes(8, "little")[: 4 if placement == HEADROOM else 2]


def records():
    full = record_bytes(
        flags=0x0E2F, flow_id=0x01020304, l3_off=14, l4_off=34, payload_off=54, flow_gen=0x0506,
        app_id=0x0007005B, port=0x0809, vlan_outer=0xE12D, vlan_inner=0x0159, vlan_count=2, action=3,
        timestamp=0x17E1D3A4B5C6D7E8, tenant=0x0A0B0C0D, chain=14, tunnels=15, user=bytes(range(16, 32)),
    )  # fmt: skip
    all_ones = bytes([1, 64]) + bytes([0xFF] * 62)

    def sized(data, size):
        return data[:1] + bytes([size]) + data[2:size]

    bare = []
    for name, data in (("empty", record_bytes()), ("every field", full), ("all bits set", all_ones)):
        for size in (8, 16, 32, 64):
            cut = sized(data, size)
            bare.append({"name": f"{name}, {size} bytes", "bytes": cut.hex(), **fields_of(cut)})

    sealed = []

    # the seal's own place in a headroom record is empty in "record"
    def add(name, data, placement, size, reads, start=128, length=60, key=0x0123456789ABCDEF, was=None, spoil=None, present=1):
        """was: (start, length) when it was sealed; spoil: a byte changed after that."""
        if placement == HEADROOM:
            data = data[:28] + bytes(4) + data[32:]
        good = seal(placement, size, key, data, *(was or (start, length)))
        if spoil is not None:
            data = bytearray(data)
            data[spoil] ^= 0x40
        sealed.append(
            {
                "name": name,
                "placement": placement,
                "size": size,
                "key": f"0x{key:016x}",
                "present": present,
                "start": start,
                "length": length,
                "record": bytes(data).hex(),
                "seal": good.hex(),
                "reads": reads,
            }
        )

    places = ((DYNFIELD, 16), (DYNFIELD, 32), (UDATA64, 8), (HEADROOM, 64))
    for placement, size in places:
        what = {1: "dynfield", 2: "udata64", 3: "headroom"}[placement] + f" {size}"
        data = sized(full, size)
        more = {"placement": placement, "size": size}
        add(f"{what}: good", data, reads=size, **more)
        add(f"{what}: good, empty record", sized(record_bytes(), size), reads=size, **more)
        add(f"{what}: good, all bits set", sized(all_ones, size), reads=size, **more)
        add(f"{what}: good, another key", data, reads=size, key=0xFEDCBA9876543210, **more)
        add(f"{what}: good, long packet", data, reads=size, length=70000, **more)
        if size > 8:
            short = bytes([1, 8]) + data[2:]
            add(f"{what}: good, the writer filled 8 bytes", short, reads=8, **more)
        add(f"{what}: flag not set", data, reads=0, present=0, **more)
        add(f"{what}: other ABI major", b"\x02" + data[1:], reads=0, **more)
        add(f"{what}: ABI major 0", b"\x00" + data[1:], reads=0, **more)
        for wrong in (0, 4, 12, 2 * size, 255):
            add(f"{what}: size byte {wrong}", data[:1] + bytes([wrong]) + data[2:], reads=0, **more)
        for at in sorted({2, 4, 7, size // 2, size - 1}):
            add(f"{what}: byte {at} changed", data, reads=0, spoil=at, **more)
        add(f"{what}: packet start moved", data, reads=0, start=124, length=60, was=(128, 60), **more)
        add(f"{what}: pushed 4 bytes", data, reads=0, start=124, length=64, was=(128, 60), **more)
        add(f"{what}: pulled 14 bytes", data, reads=0, start=142, length=46, was=(128, 60), **more)
        add(f"{what}: cut by 1 byte", data, reads=0, start=128, length=59, was=(128, 60), **more)
    add("headroom 64: 64 bytes of headroom", full, HEADROOM, 64, 64, start=64)
    add("headroom 64: no room, the packet starts in it", full, HEADROOM, 64, 0, start=63)
    return bare, sealed


# ---- handshakes of links

FIELD = (
    ("field_flag", "Q"), ("field_key", "Q"), ("field_offset", "H"), ("field_seal_offset", "H"),
    ("field_placement", "B"), ("field_size", "B"), ("reserved", "10s"),
)  # fmt: skip
LINK = (
    ("magic", "Q"), ("abi_major", "H"), ("abi_minor", "H"), ("size", "I"),
    ("features_required", "Q"), ("features_offered", "Q"), ("instance", "I"), ("state", "I"),
    ("queue_count", "H"), ("queue_size", "H"), ("queue_offset", "H"), ("when_full", "B"),
    ("reserved0", "B"), ("ring_size", "I"), ("blanks", "I"), *FIELD, ("link", "32s"),
    ("library_version", "32s"), ("dpdk_version", "32s"), ("pool_name", "32s"), ("pool_ops", "32s"),
    ("mbuf_layout", "32s"), ("flow_table", "32s"), ("flow_ring", "I"), ("flow_carrier", "B"),
    ("reserved1", "67s"), ("heartbeat", "Q"), ("reserved2", "120s"),
)  # fmt: skip
TEXTS = ("link", "library_version", "dpdk_version", "pool_name", "pool_ops", "flow_table")
QUEUE = ("down", "up", "blank", "flow_down", "flow_up")
QUEUE_AT = {"down": 0, "up": 32, "blank": 64, "flow_down": 256, "flow_up": 288}
LINK_MAGIC = 0x314B4E4C464E2D31
RING, INBAND, TABLE = 1, 2, 3


def offset_of(name):
    at = 0
    for field, form in LINK:
        if field == name:
            return at
        at += struct.calcsize("<" + form)
    raise KeyError(name)


def handshakes():
    good, bad, sizes = [], [], {}
    # 128 bytes; buf_addr, data_off ... as in bindings-spec
    mbuf = (128, 0, 16, 18, 20, 22, 24, 32, 36, 40, 42, 52, 54, 56, 64, 72)

    def add(name, queues=1, queue_size=256, queue_offset=512, spares=0, filler=0, **given):
        carrier = given.get("flow_carrier", 0)
        values = {
            "magic": LINK_MAGIC, "abi_major": 1, "abi_minor": 1, "instance": 0x89ABCDEF, "state": 1,
            "size": queue_offset + (queues + spares) * queue_size, "queue_count": queues,
            "queue_size": queue_size, "queue_offset": queue_offset, "when_full": 1, "ring_size": 1024,
            "field_flag": 1 << 40, "field_key": 0x0123456789ABCDEF, "field_offset": 104,
            "field_seal_offset": 100, "field_placement": DYNFIELD, "field_size": 16, "link": b"demo",
            "library_version": b"0.1.0", "dpdk_version": b"DPDK 22.11.11", "pool_ops": b"ring_mp_mc",
            "mbuf_layout": struct.pack("<16H", *mbuf), "heartbeat": 7, **given,
        }  # fmt: skip
        if filler:
            values |= {n: bytes([filler]) * struct.calcsize(f) for n, f in LINK if n.startswith("reserved") and f != "B"}
        data = bytearray(put(LINK, values).ljust(queue_offset, bytes([filler])))
        names = []
        for i in range(queues):
            has = {
                "down": f"nfm_d{i}_demo", "up": f"nfm_u{i}_demo",
                "blank": f"nfm_b{i}_demo" if values.get("blanks") else "",
                "flow_down": f"nfm_m{i}_demo" if carrier == RING else "",
                "flow_up": f"nfm_v{i}_demo" if carrier in (RING, TABLE) else "",
            }  # fmt: skip
            block = bytearray(queue_size)
            for key in QUEUE if carrier else QUEUE[:3]:
                block[QUEUE_AT[key] : QUEUE_AT[key] + 32] = has[key].encode().ljust(32, b"\0")
            data += block
            names.append([has[key] for key in QUEUE])
        data += bytes(spares * queue_size)
        assert len(data) == values["size"]
        out = shown(LINK, {k: v for k, v in values.items() if not isinstance(v, bytes)})
        out |= {key: values.get(key, b"").decode() for key in TEXTS}
        good.append({"name": name, "bytes": data.hex(), **out, "queues": names})
        sizes[name] = len(data)

    def judge(name, result, of="one queue", at=0, put=b"", queue=0, link="demo", length=None):
        assert of in sizes
        at = at if isinstance(at, int) else offset_of(at)
        vector = {"name": name, "of": of, "at": at, "put": put.hex(), "length": length or sizes[of]}
        bad.append({**vector, "link": link, "queue": queue, "result": result})

    pool = {"blanks": 64, "pool_name": b"packets"}
    ring = {"flow_carrier": RING, "flow_ring": 8191, "queue_size": 512}
    add("one queue")
    add("three queues with blanks", queues=3, when_full=2, **pool)
    add("dynfield of 32 bytes", field_size=32, field_offset=96, field_seal_offset=92, when_full=3)
    add("udata64", field_placement=UDATA64, field_size=8)
    add("headroom", field_placement=HEADROOM, field_size=64, field_offset=0, field_seal_offset=28)
    add("minor 0", abi_minor=0)
    add("messages on rings", **ring)
    add("messages in-band", flow_carrier=INBAND, queue_size=512, features_required=1, **pool)
    add("a table alone", flow_carrier=TABLE, flow_ring=512, queue_size=512, flow_table=b"nfmeta_t.demo")
    add("messages on rings and a table", flow_table=b"nfmeta_t.demo", spares=1, **ring)
    add(
        "newer minor: larger, with what is not known here", abi_minor=9, features_offered=MASK, queue_size=576,
        queue_offset=576, filler=0xEE, spares=2, **{k: v for k, v in ring.items() if k != "queue_size"},
    )  # fmt: skip

    def u16(value):
        return struct.pack("<H", value)

    def u32(value):
        return struct.pack("<I", value)

    for name in sizes:
        judge(f"{name}: good", "accept", of=name)
    judge("the last queue", "accept", of="three queues with blanks", queue=2)
    judge("no such queue", "EINVAL", of="three queues with blanks", queue=3)
    judge("bytes behind it in the memzone", "accept", length=4096)
    judge("heartbeat does not matter", "accept", at="heartbeat", put=b"\xFF" * 8)
    judge("library_version is for people", "accept", at="library_version", put=b"9.9.9\0")
    judge("features that are offered only", "accept", at="features_offered", put=b"\xFF" * 8)
    judge("not ready: no magic yet", "again", put=bytes(8))
    judge("not ready: no magic yet, nothing else either", "again", put=bytes(512))
    judge("building", "again", at="state", put=u32(0))
    judge("closing", "NFMETA_ECLOSING", at="state", put=u32(2))
    judge("a state that is not defined", "NFMETA_EFORMAT", at="state", put=u32(3))
    judge("other magic", "NFMETA_EFORMAT", put=b"\x32")
    judge("magic in the other byte order", "NFMETA_EFORMAT", put=LINK_MAGIC.to_bytes(8, "big"))
    judge("shorter than the handshake", "NFMETA_EFORMAT", length=511)
    for major in (0, 2, 0xFFFF):
        judge(f"ABI major {major}", "NFMETA_EABI", at="abi_major", put=u16(major))
    behind = u16(2) + b"\xFF" * 502
    judge("other ABI major: nothing behind it is looked at", "NFMETA_EABI", at="abi_major", put=behind)
    judge("size of less than the handshake", "NFMETA_EFORMAT", at="size", put=u32(511))
    judge("size of more than the memzone", "NFMETA_EFORMAT", at="size", put=u32(769))
    judge("the queue lies behind size", "NFMETA_EFORMAT", at="size", put=u32(767))
    for bit in (1, 8, 63):
        mask = (1 << bit).to_bytes(8, "little")
        judge(f"feature bit {bit} is required", "NFMETA_EFEATURE", at="features_required", put=mask)
    behind = b"\x02" + bytes(7) + b"\xFF" * 488
    judge("unknown feature: before all that follows", "NFMETA_EFEATURE", at="features_required", put=behind)
    for name in ("link", "library_version", "dpdk_version", "pool_name", "pool_ops", "flow_table"):
        of = "messages on rings and a table"
        judge(f"{name} without end", "NFMETA_EFORMAT", of=of, at=name, put=b"x" * 32)
    judge("other DPDK", "NFMETA_EDPDKVERSION", at="dpdk_version", put=b"DPDK 21.11.2\0")
    judge("no DPDK version", "NFMETA_EDPDKVERSION", at="dpdk_version", put=bytes(32))
    judge("other size of rte_mbuf", "NFMETA_EMBUF", at="mbuf_layout", put=u16(192))
    judge("other offset of tx_offload", "NFMETA_EMBUF", at=offset_of("mbuf_layout") + 30, put=u16(126))
    judge("another link's name", "NFMETA_EFORMAT", at="link", put=b"Demo")
    judge("asked for by another name", "NFMETA_EFORMAT", link="demo1")
    judge("asked for with a blank at the end", "NFMETA_EFORMAT", link="demo ")
    for count in (0, 65):
        judge(f"{count} queues", "NFMETA_EFORMAT", at="queue_count", put=u16(count))
    judge("more queues than there are", "NFMETA_EFORMAT", at="queue_count", put=u16(2))
    judge("queues too small", "NFMETA_EFORMAT", at="queue_size", put=u16(192))
    judge("size of queues not a multiple of 64", "NFMETA_EFORMAT", at="queue_size", put=u16(257))
    judge("queues inside the handshake", "NFMETA_EFORMAT", at="queue_offset", put=u16(448))
    judge("offset of queues not a multiple of 64", "NFMETA_EFORMAT", at="queue_offset", put=u16(513))
    judge("sizes of queues that wrap in 16 bits", "NFMETA_EFORMAT", at="queue_count", put=u16(64) + u16(0xFFC0))
    for policy in (0, 4):
        judge(f"when_full {policy}", "NFMETA_EFORMAT", at="when_full", put=bytes([policy]))
    for size in (0, 32, 1000, 131072):
        judge(f"ring_size {size}", "NFMETA_EFORMAT", at="ring_size", put=u32(size))
    judge("blanks without a ring for them", "NFMETA_EFORMAT", at="blanks", put=u32(64))
    judge("a ring for blanks without blanks", "NFMETA_EFORMAT", of="three queues with blanks", at="blanks", put=u32(0))
    judge("no instance", "NFMETA_EFORMAT", at="instance", put=u32(0))
    for placement in (0, 4, 255):
        judge(f"placement {placement}", "NFMETA_EFORMAT", at="field_placement", put=bytes([placement]))
    for size in (0, 12, 128):
        judge(f"record of {size} bytes", "NFMETA_EFORMAT", at="field_size", put=bytes([size]))
    judge("record not aligned", "NFMETA_EFORMAT", at="field_offset", put=u16(100))
    judge("record behind the mbuf", "NFMETA_EFORMAT", at="field_offset", put=u16(65528))
    judge("seal behind the mbuf", "NFMETA_EFORMAT", at="field_seal_offset", put=u16(65535))
    judge("no presence flag", "NFMETA_EFORMAT", at="field_flag", put=bytes(8))
    judge("two presence flags", "NFMETA_EFORMAT", at="field_flag", put=b"\x03" + bytes(7))
    rings, inband, table = "messages on rings", "messages in-band", "a table alone"
    judge("carrier not defined", "NFMETA_EFORMAT", of=rings, at="flow_carrier", put=b"\x04")
    judge("carrier without room in the queues", "NFMETA_EFORMAT", at="flow_ring", put=u32(8191) + b"\x01")
    for words in (0, 511, 1048577):
        judge(f"flow ring of {words} words", "NFMETA_EFORMAT", of=rings, at="flow_ring", put=u32(words))
    judge("flow ring without carrier", "NFMETA_EFORMAT", at="flow_ring", put=u32(8191))
    judge("in-band with a flow ring", "NFMETA_EFORMAT", of=inband, at="flow_ring", put=u32(8191))
    judge("in-band without blanks", "NFMETA_EFORMAT", of=inband, at="blanks", put=u32(0))
    judge("a table without name", "NFMETA_EFORMAT", of=table, at="flow_table", put=bytes(32))
    for key in ("down", "up"):
        judge(f"{key} without name", "NFMETA_EFORMAT", at=512 + QUEUE_AT[key], put=bytes(32))
        judge(f"{key} without end", "NFMETA_EFORMAT", at=512 + QUEUE_AT[key], put=b"x" * 32)
    last = 512 + 2 * 256 + QUEUE_AT["blank"]
    judge("the last queue's blank without end", "NFMETA_EFORMAT", of="three queues with blanks", at=last, put=b"x" * 32)
    for key in ("flow_down", "flow_up"):
        judge(f"{key} without name", "NFMETA_EFORMAT", of=rings, at=512 + QUEUE_AT[key], put=bytes(32))
        judge(f"{key} without end", "NFMETA_EFORMAT", of=rings, at=512 + QUEUE_AT[key], put=b"x" * 32)
    judge("in-band with a ring down", "NFMETA_EFORMAT", of=inband, at=512 + QUEUE_AT["flow_down"], put=b"x\0")
    return good, bad


# ---- messages of flow state

MAGIC = 0x314C464E
OPTIONAL = 0x80
SNAP_FIRST, SNAP_LAST = 1, 2

HEADER = (
    ("magic", "I"), ("abi", "B"), ("type", "B"), ("flags", "B"), ("reserved", "B"),
    ("count", "H"), ("entry_size", "H"), ("source", "H"), ("ask", "H"),
    ("instance", "I"), ("epoch", "I"), ("seq", "Q"), ("barrier", "Q"),
)  # fmt: skip
STATE = (
    ("flow_id", "I"), ("flow_gen", "H"), ("action", "B"), ("reserved1", "B"),
    ("app_id", "I"), ("reserved2", "4s"),
)  # fmt: skip
DELETE = (("flow_id", "I"), ("flow_gen", "H"), ("reason", "H"))
COUNTERS = (
    ("flow_id", "I"), ("flow_gen", "H"), ("reserved", "2s"),
    ("packets", "2Q"), ("bytes", "2Q"),
)  # fmt: skip
VERDICT = (
    ("flow_id", "I"), ("flow_gen", "H"), ("verdict", "B"), ("flags", "B"),
    ("after", "I"), ("ttl", "I"), ("who", "H"), ("why", "H"), ("reserved", "4s"),
)  # fmt: skip
LOAD = (("busy", "I"), ("flows", "I"), ("overload", "Q"))
MARK = (("seq", "Q"),)
OWN = (("own", "8s"),)

# number: (name, goes up, layout of an entry)
TYPES = {
    1: ("NEW", 0, STATE), 2: ("UPDATE", 0, STATE), 3: ("DELETE", 0, DELETE),
    4: ("COUNTERS", 0, COUNTERS), 5: ("SNAPSHOT", 0, STATE), 6: ("RESET", 0, ()),
    7: ("HEARTBEAT", 0, ()), 16: ("VERDICT", 1, VERDICT), 17: ("LOAD", 1, LOAD),
    18: ("RESYNC", 1, MARK), 19: ("ACK", 1, MARK),
}  # fmt: skip
NUMBER = {name: number for number, (name, _, _) in TYPES.items()}


def size_of(layout):
    return sum(struct.calcsize("<" + form) for _, form in layout)


def put(layout, values):
    """The bytes of a structure; what is not given is zero."""
    data = b""
    for name, form in layout:
        value = values.get(name, b"" if form.endswith("s") else (0, 0) if form == "2Q" else 0)
        data += struct.pack("<" + form, *value) if form == "2Q" else struct.pack("<" + form, value)
    return data


def shown(layout, values):
    """The fields that a vector lists: none that is reserved, 64 bits as text."""
    out = {}
    for name, form in layout:
        value = values.get(name, (0, 0) if form == "2Q" else 0)
        if form == "2Q":
            out[name] = [f"0x{v:016x}" for v in value]
        elif form == "Q":
            out[name] = f"0x{value:016x}"
        elif not form.endswith("s") and not name.startswith("reserved"):
            out[name] = value
    return out


def messages():
    good, bad = [], []

    def make(kind, entries=(), tail=b"", **head):
        """The header's values and the bytes of a message; kind: name or number."""
        number = NUMBER.get(kind, kind)
        layout = TYPES[number][2] if number in TYPES else OWN
        values = {
            "magic": MAGIC, "abi": 1, "type": number, "count": len(entries),
            "entry_size": size_of(layout) + len(tail) if entries else 0, "source": 3, "instance": 0x89ABCDEF,
            "epoch": 2, "seq": 0x0102030405060708, "barrier": 0x1112131415161718, **head,
        }  # fmt: skip
        return values, put(HEADER, values) + b"".join(put(layout, e) + tail for e in entries)

    def add(name, kind, entries=(), tail=b"", **head):
        values, data = make(kind, entries, tail, **head)
        _, up, layout = TYPES[NUMBER[kind]]
        good.append(
            {
                "name": name,
                "up": up,
                "message": data.hex(),
                "length": len(data),
                **shown(HEADER, values),
                "entries": [shown(layout, e) for e in entries],
            }
        )

    flow = {"flow_id": 0x01020304, "flow_gen": 0x0506}
    state = {**flow, "action": 3, "app_id": 0x0007005B}
    gone = {**flow, "reason": 1}
    seen = {
        **flow, "packets": (0x2122232425262728, 0x3132333435363738),
        "bytes": (0x4142434445464748, 0x5152535455565758),
    }  # fmt: skip
    said = {**flow, "verdict": 4, "flags": 1, "after": 10, "ttl": 3600, "who": 0x0708, "why": 0x090A}
    load = {"busy": 875, "flows": 0x0B0C0D0E, "overload": 0x6162636465666768}
    mark = {"seq": 0x7172737475767778}
    zero = {}

    for kind in ("NEW", "UPDATE"):
        add(f"{kind}, one flow", kind, [state])
        add(f"{kind}, two flows", kind, [state, zero])
    for action in range(5):
        add(f"UPDATE, action {action}", "UPDATE", [{**state, "action": action}])
    add("NEW, 128 flows: as many as fit", "NEW", [{**state, "flow_id": i} for i in range(128)])
    add("DELETE, one flow", "DELETE", [gone])
    for reason in range(7):
        add(f"DELETE, reason {reason}", "DELETE", [{**gone, "reason": reason}])
    many = [{"flow_id": 0xFFFFFFFF - i, "flow_gen": i, "reason": i % 7} for i in range(256)]
    add("DELETE, 256 flows: as many as fit", "DELETE", many)
    add("COUNTERS, one flow", "COUNTERS", [seen])
    add("COUNTERS, 51 flows: as many as fit", "COUNTERS", [seen] * 51)
    add("SNAPSHOT, first part", "SNAPSHOT", [state], flags=SNAP_FIRST, ask=7)
    add("SNAPSHOT, part in the middle", "SNAPSHOT", [state, zero], ask=7)
    add("SNAPSHOT, last part, empty", "SNAPSHOT", flags=SNAP_LAST, ask=7)
    add("SNAPSHOT, first and last", "SNAPSHOT", [state], flags=SNAP_FIRST | SNAP_LAST, ask=0xFFFF)
    add("SNAPSHOT, of no flows", "SNAPSHOT", flags=SNAP_FIRST | SNAP_LAST, ask=1)
    add("RESET", "RESET")
    add("HEARTBEAT", "HEARTBEAT")
    add("VERDICT, one flow", "VERDICT", [said])
    for verdict in range(1, 5):
        add(f"VERDICT, verdict {verdict}", "VERDICT", [{**flow, "verdict": verdict}])
    add("VERDICT, 85 flows: as many as fit", "VERDICT", [said] * 85)
    add("LOAD", "LOAD", [load])
    add("RESYNC", "RESYNC", [mark], ask=7)
    add("ACK", "ACK", [mark])
    add("first of all", "NEW", [state], seq=1, barrier=0, epoch=1, source=0)
    top = {"source": 63, "instance": MASK >> 32, "epoch": MASK >> 32, "seq": MASK, "barrier": MASK}
    add("every number at its end", "NEW", [{"flow_id": MASK >> 32, "flow_gen": 0xFFFF}], **top)
    add("reserved byte and bits of the header are not looked at", "NEW", [state], reserved=0xFF, flags=0xFC)
    marked = {**state, "reserved1": 0xFF, "reserved2": b"\xFF" * 4}
    add("reserved bytes of an entry are not looked at", "NEW", [marked])
    add("SNAPSHOT of no flows, entry_size 16 all the same", "SNAPSHOT", flags=SNAP_LAST, ask=1, entry_size=16)
    newer = {"tail": b"\xEE" * 8}
    add("newer minor: 8 bytes more in an entry", "NEW", [state, zero], **newer)
    add("newer minor: DELETE of 16 bytes", "DELETE", [gone, zero], **newer)
    add("newer minor: LOAD of 24 bytes", "LOAD", [load], **newer)
    add("newer minor: one entry of 2048 bytes", "NEW", [state], tail=bytes(2032))

    def judge(name, up, data, result, length=None):
        bad.append({"name": name, "up": up, "bytes": data.hex(), "result": result, "length": length or len(data)})

    def refuse(name, kind, entries=(), up=None, tail=b"", cut=None, **head):
        _, data = make(kind, entries, tail, **head)
        if up is None:
            up = TYPES[NUMBER[kind]][1]
        judge(name, up, data[:cut], "refuse")

    refuse("magic 0", "NEW", [state], magic=0)
    refuse("magic in the other byte order", "NEW", [state], magic=0x4E464C31)
    refuse("other ABI major", "NEW", [state], abi=2)
    refuse("ABI major 0", "NEW", [state], abi=0)
    for kind, entry in (
        ("NEW", state), ("UPDATE", state), ("DELETE", gone), ("COUNTERS", seen),
        ("SNAPSHOT", state), ("VERDICT", said), ("LOAD", load), ("RESYNC", mark), ("ACK", mark),
    ):  # fmt: skip
        size = size_of(TYPES[NUMBER[kind]][2])
        if kind != "SNAPSHOT":
            refuse(f"{kind} without entries", kind)
        refuse(f"{kind}: entries smaller than the struct", kind, [entry], entry_size=size - 8)
        refuse(f"{kind}: entry_size {size + 4}, no multiple of 8", kind, [entry], entry_size=size + 4, cut=40)
        refuse(f"{kind}: more than 2048 bytes", kind, [entry] * (2048 // size + 1))
        refuse(f"{kind} in the wrong direction", kind, [entry], up=1 - TYPES[NUMBER[kind]][1])
    for kind in ("LOAD", "RESYNC", "ACK"):
        refuse(f"two entries of {kind}", kind, [zero, zero])
    refuse("65535 entries of 65528 bytes", "NEW", count=0xFFFF, entry_size=0xFFF8)
    refuse("count * entry_size is 0 in 16 bits", "NEW", count=0x2000, entry_size=0x0008)
    refuse("entries of 0 bytes", "DELETE", count=1)
    refuse("RESET, entry_size 4", "RESET", entry_size=4)
    refuse("one entry of 2056 bytes", "NEW", [state], tail=bytes(2040))
    for kind in ("RESET", "HEARTBEAT"):
        refuse(f"{kind} with an entry", kind, [mark], count=1, entry_size=8)
        refuse(f"{kind} in the wrong direction", kind, up=1)
    for number, (kind, up, _) in TYPES.items():
        if kind == "SNAPSHOT":
            continue
        entries = [] if kind in ("RESET", "HEARTBEAT") else [zero]
        for flags, text in ((SNAP_FIRST, "FIRST"), (SNAP_LAST, "LAST")):
            refuse(f"{kind} with {text}", kind, entries, flags=flags)
    for number in (0, 8, 15, 20, 63, 127):
        for up in (0, 1):
            way = "up" if up else "down"
            refuse(f"unknown type {number} that must be known, {way}", number, [zero], up=up)
    refuse("bad header, entries cut: refused at once", "NEW", [state], magic=0, cut=48)

    for number in (0x80, 0x83, 0xE0, 0xFF):
        for up in (0, 1):
            way = "up" if up else "down"
            judge(f"unknown type {number:#x} that may be skipped, {way}", up, make(number, [zero])[1], "skip")
    judge("unknown type to skip, two entries of 24 bytes", 0, make(0xE1, [zero, zero], bytes(16))[1], "skip")
    judge("unknown type to skip, without entries", 0, make(0xE1)[1], "skip")
    judge("unknown type to skip, FIRST and LAST set", 0, make(0xE1, [zero], flags=3)[1], "skip")
    refuse("type to skip, entries of 0 bytes", 0xE0, up=0, count=1)
    refuse("type to skip, more than 2048 bytes", 0xE0, [zero] * 257, up=0)
    refuse("type to skip, entry_size 12", 0xE0, [zero, zero], up=0, entry_size=12)
    refuse("type to skip, other ABI major", 0xE0, [zero], up=0, abi=2)

    _, data = make("NEW", [state, state])
    for n in (0, 8, 39, 40, 56, 71):
        judge(f"cut after {n} of {len(data)} bytes", 0, data[:n], "more")
    _, optional = make(0xE0, [zero])
    judge("type to skip, cut", 0, optional[:40], "more")
    judge("two messages: the length is the first one's", 0, data + optional, "deliver", len(data))
    judge("garbage behind a message is not looked at", 0, data + b"\xFF" * 9, "deliver", len(data))
    return good, bad


# ---- the shared table

ENTRY = (
    ("seq", "I"), ("flow_gen", "H"), ("state", "B"), ("proto", "B"), ("app_id", "I"),
    ("port_a", "2s"), ("port_b", "2s"), ("addr_a", "16s"), ("addr_b", "16s"),
    ("from_a", "Q"), ("from_b", "Q"),
)  # fmt: skip
PACKETS_MAX, BYTES_MAX = (1 << 28) - 1, (1 << 36) - 1


def counted(packets, size):
    return min(packets, PACKETS_MAX) << 36 | min(size, BYTES_MAX)


def mapped(data):
    return bytes(10) + b"\xFF\xFF" + data if len(data) == 4 else data


def table():
    vectors = []

    def add(name, src, dst, proto, sport=0, dport=0, state=1, action=0, along=(1, 60), against=(0, 0), seq=2, gen=0, app=0):
        """src: what sent the flow's first packet; along, against: packets and bytes."""
        key, reverse = flow_key(src, dst, proto, sport, dport)
        size = 4 if key[41] == 4 else 16
        a, b = (against, along) if reverse else (along, against)
        values = {
            "seq": seq, "flow_gen": gen, "state": state | (8 if reverse else 0) | action << 4,
            "proto": proto, "app_id": app, "port_a": key[32:34], "port_b": key[34:36],
            "addr_a": mapped(key[:size]), "addr_b": mapped(key[16 : 16 + size]),
            "from_a": counted(*a), "from_b": counted(*b),
        }  # fmt: skip
        data = put(ENTRY, values)
        assert len(data) == 64
        vectors.append(
            {
                "name": name,
                "entry": data.hex(),
                **shown(ENTRY, values),
                "port_a": int.from_bytes(values["port_a"], "big"),
                "port_b": int.from_bytes(values["port_b"], "big"),
                "addr_a": values["addr_a"].hex(),
                "addr_b": values["addr_b"].hex(),
                "phase": state,
                "reverse": int(reverse),
                "action": action,
                "packets_a": min(a[0], PACKETS_MAX),
                "bytes_a": f"0x{min(a[1], BYTES_MAX):09x}",
                "packets_b": min(b[0], PACKETS_MAX),
                "bytes_b": f"0x{min(b[1], BYTES_MAX):09x}",
                "key": (key[:36] + bytes(4) + key[40:]).hex(),
            }
        )

    for text, a, b in (("ipv4", A4, B4), ("ipv6", A6, B6)):
        add(f"{text} tcp, a began", a, b, 6, 40000, 443)
        add(f"{text} tcp, b began", b, a, 6, 443, 40000)
        full = {"state": 2, "along": (12, 3456), "against": (34, 56789), "app": 0x0007005B, "gen": 0x0506}
        add(f"{text} tcp, established", a, b, 6, 40000, 443, **full)
        add(f"{text} tcp, b began, established, shunted", b, a, 6, 443, 40000, action=4, **full)
        add(f"{text} udp, equal ends", a, a, 17, 500, 500)
        add(f"{text} GRE: no ports", a, b, 47)
    add("closing, dropped", A4, B4, 6, 40000, 443, state=3, action=2)
    for action in range(5):
        add(f"action {action}", A4, B4, 17, 53, 53, action=action)
    add("counters full", A4, B4, 6, 1, 2, along=(PACKETS_MAX, BYTES_MAX), against=(PACKETS_MAX, BYTES_MAX))
    over = (PACKETS_MAX + 1, BYTES_MAX + 1)
    add("counters stay at their maximum", A4, B4, 6, 1, 2, along=over, against=(1, BYTES_MAX + 1))
    add("seq and generation at their end", A4, B4, 6, 1, 2, seq=0xFFFFFFFE, gen=0xFFFF)
    add("ipv4 that looks like ipv6 loopback", "0.0.0.1", "0.0.0.2", 17, 1, 2)
    add("addresses compare as unsigned bytes", "127.255.255.255", "128.0.0.0", 6, 1, 2)
    return vectors


TABLE_HEADER = (
    ("magic", "Q"), ("abi_major", "H"), ("abi_minor", "H"), ("entry_size", "H"),
    ("entry_offset", "H"), ("flows", "I"), ("instance", "I"), ("reserved", "40s"),
)  # fmt: skip


def table_headers():
    vectors = []

    def add(name, result, length=None, cut=64, **given):
        values = {
            "magic": 0x314C42544D464E2D, "abi_major": 1, "abi_minor": 1, "entry_size": 64,
            "entry_offset": 64, "flows": 1000, "instance": 0x89ABCDEF, **given,
        }  # fmt: skip
        data = put(TABLE_HEADER, values)[:cut]
        if length is None:
            length = cut if cut < 64 else values["entry_offset"] + values["flows"] * 64
        vectors.append({"name": name, "header": data.hex(), **shown(TABLE_HEADER, values), "length": length, "result": result})

    add("good", "accept")
    add("one flow", "accept", flows=1)
    add("as many flows as there can be", "accept", flows=1 << 26)
    add("the memzone is longer", "accept", length=1 << 20)
    add("newer minor: entries further back, more in the header", "accept", abi_minor=9, entry_offset=128, reserved=b"\xFF" * 40)
    add("no magic yet, or no more", "NFMETA_EFORMAT", magic=0)
    add("magic in the other byte order", "NFMETA_EFORMAT", magic=0x2D4E464D54424C31)
    add("shorter than the header", "NFMETA_EFORMAT", cut=63)
    for major in (0, 2):
        add(f"ABI major {major}", "NFMETA_EABI", abi_major=major)
    add("other ABI major: nothing behind it is looked at", "NFMETA_EABI", abi_major=2, entry_size=0, flows=0, instance=0)
    for size in (0, 32, 128):
        add(f"entries of {size} bytes", "NFMETA_EFORMAT", entry_size=size)
    for at in (0, 32, 100):
        add(f"entries from {at} on", "NFMETA_EFORMAT", entry_offset=at)
    add("no flows", "NFMETA_EFORMAT", flows=0)
    add("more flows than there can be", "NFMETA_EFORMAT", flows=(1 << 26) + 1)
    add("no instance", "NFMETA_EFORMAT", instance=0)
    add("the last entry is cut", "NFMETA_EFORMAT", length=64 + 1000 * 64 - 1)
    add("the last entry is cut, further back", "NFMETA_EFORMAT", entry_offset=128, length=64 + 1000 * 64)
    return vectors


# ---- files


def dump(what, minor=0, **lists):
    lines = [f'{{"abi": [1, {minor}],\n "what": {json.dumps(what)}']
    for name, vectors in lists.items():
        rows = ",\n  ".join(json.dumps(v) for v in vectors)
        lines.append(f' "{name}": [\n  {rows}\n ]')
    return ",\n".join(lines) + "\n}\n"


def main():
    bare, sealed = records()
    shake, judged = handshakes()
    good, other = messages()
    files = {
        "flow-keys.json": dump(
            "classify each packet with the policy, the NIC having judged no checksum", vectors=flow_keys()
        ),
        "records.json": dump("bytes and fields; records in mbufs and what reads there", records=bare, sealed=sealed),
        "handshakes.json": dump(
            "handshakes and what is in them; changed ones and what a reader says",
            minor=1,
            handshakes=shake,
            judged=judged,
        ),
        "messages.json": dump(
            "messages and what is in them; bytes and what a reader says", minor=1, messages=good, judged=other
        ),
        "table.json": dump(
            "entries of the shared table and what is in them; headers and what a reader says",
            minor=1,
            entries=table(),
            headers=table_headers(),
        ),
    }
    here = pathlib.Path(__file__).parent
    bad = 0
    for name, text in files.items():
        path = here / name
        if sys.argv[1:] == ["--check"]:
            if not path.exists() or path.read_text() != text:
                print(f"{path} is not what {__file__} makes", file=sys.stderr)
                bad = 1
        else:
            path.write_text(text)
    return bad


if __name__ == "__main__":
    sys.exit(main())
