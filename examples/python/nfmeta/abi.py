# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""The bytes that processes share, read by bindings-spec/README.md alone.

Nothing in here calls C or touches memory: all functions take bytes.
"""

from collections import namedtuple
from struct import Struct

ABI = 1
NONE = 0xFFFF  # an offset: there is no such header

# Flags of a record, section 3
L2_VALID, L3_VALID, L4_VALID = 0x0001, 0x0002, 0x0004
L3_CSUM_GOOD, L3_CSUM_BAD = 0x0008, 0x0010
L4_CSUM_GOOD, L4_CSUM_BAD = 0x0020, 0x0040
FRAG_FIRST, FRAG_LATER = 0x0080, 0x0100
FLOW_KNOWN, FLOW_NEW, FLOW_REVERSE = 0x0200, 0x0400, 0x0800
TUNNEL_OUTER = 0x1000

# Dispositions, section 7
FORWARD, DROP, BACKWARD, INJECTED = 0, 1, 2, 4

# Actions and verdicts
ACTION_NONE, ACTION_FORWARD, ACTION_DROP, ACTION_INSPECT, ACTION_SHUNT = range(5)
STICKY = 0x01

# Placements, section 5
DYNFIELD, UDATA64, HEADROOM = 1, 2, 3
HEADROOM_ROOM = 64

# Carriers and messages, section 8
CARRIER_RING, CARRIER_INBAND, CARRIER_TABLE = 1, 2, 3
NEW, UPDATE, DELETE, COUNTERS, SNAPSHOT, RESET, HEARTBEAT = range(1, 8)
VERDICT, LOAD, RESYNC, ACK = range(16, 20)
OPTIONAL = 0x80
FIRST, LAST = 0x01, 0x02
MAGIC = 0x314C464E
ENTRY_BYTES = 2048

MASK64 = (1 << 64) - 1

# ---- the record, sections 2 to 5 ----------------------------------------------------

Record = namedtuple(
    "Record",
    "abi size flags flow_id l3_off l4_off payload_off flow_gen app_id port vlan_outer"
    " vlan_inner vlan_count action timestamp tenant chain tunnels user",
)
_RECORD = Struct("<BBHI4HI3HBB4xQIBB2x16s")
_EMPTY = bytes(8) + b"\xff" * 6 + bytes(50)  # what is not there: no offsets, else 0


def parse_record(data):
    """A record of 8, 16, 32 or 64 bytes; fields that are not there read as nothing."""
    return Record._make(_RECORD.unpack(data + _EMPTY[len(data) :]))


_FIELD = Struct("<QQHHBB10x")
_WORDS = {n: Struct(f"<{n // 8}Q") for n in (8, 16, 32, 64)}
_TURNS = (0, 7, 13, 19, 29, 37, 43, 53)


class Field(namedtuple("Field", "flag key offset seal_offset placement size")):
    """nfmeta_field: where the records of a link's packets are."""

    __slots__ = ()

    @classmethod
    def parse(cls, data):
        return cls._make(_FIELD.unpack(data))

    def seal(self, place, start, length):
        """The seal that these bytes of record want; start and length: of the packet."""
        if self.placement == HEADROOM:
            place = place[:28] + bytes(4) + place[32:]
        x = self.key
        for word, turn in zip(_WORDS[self.size].unpack(place), _TURNS):
            x ^= (word << turn | word >> (64 - turn)) & MASK64
        x ^= x >> 32
        if self.placement != HEADROOM:
            x ^= x >> 16
        x ^= (start + length * 0x9E36) & 0xFFFF
        return x & (0xFFFFFFFF if self.placement == HEADROOM else 0xFFFF)

    def read(self, present, place, seal, start, length):
        """The record, or None if there is none.

        present: ol_flags has the flag; place: size bytes of record; seal: the number
        that lies in the seal's place.
        """
        if not present or (self.placement == HEADROOM and start < HEADROOM_ROOM):
            return None
        size = place[1]
        if place[0] != ABI or size not in _WORDS or size > self.size:
            return None
        if self.seal(place, start, length) != seal:
            return None
        return parse_record(place[:size])


# ---- the handshake of a link, section 7 ---------------------------------------------

LINK_MAGIC = 0x314B4E4C464E2D31
INBAND = 1  # in features_required

_LINK = Struct("<QHHIQQIIHHHBxII" + 8 * "32s" + "IB67xQ120x")
_Link = namedtuple(
    "_Link",
    "magic abi_major abi_minor size features_required features_offered instance state"
    " queue_count queue_size queue_offset when_full ring_size blanks field name"
    " library_version dpdk_version pool_name pool_ops mbuf_layout flow_table flow_ring"
    " flow_carrier heartbeat",
)
Queue = namedtuple("Queue", "down up blank flow_down flow_up")


class Refused(ValueError):
    """A handshake or table that a reader refuses; the text is the name of the error."""


def _must(possible, error="NFMETA_EFORMAT"):
    if not possible:
        raise Refused(error)


def _name(data):
    _must(b"\0" in data)
    return data.split(b"\0")[0].decode()


class Handshake(_Link):
    """What a primary publishes of a link, with .queues.

    data: the memzone; own_dpdk, own_layout: this side's, if it has an own one.
    Handshake.parse() returns None if there is no link yet.
    """

    @classmethod
    def parse(cls, data, name, own_dpdk=None, own_layout=None):
        _must(len(data) >= 512)
        s = _Link._make(_LINK.unpack_from(data))
        if s.magic == 0:
            return None
        _must(s.magic == LINK_MAGIC)
        _must(s.abi_major == ABI, "NFMETA_EABI")
        _must(512 <= s.size <= len(data))
        _must(s.features_required & ~INBAND == 0, "NFMETA_EFEATURE")
        if s.abi_minor == 0:  # has no flow state
            s = s._replace(flow_table=bytes(32), flow_ring=0, flow_carrier=0)
        names = ("name", "library_version", "dpdk_version", "pool_name", "pool_ops", "flow_table")
        s = s._replace(
            field=Field.parse(s.field),
            mbuf_layout=Struct("<16H").unpack(s.mbuf_layout),
            **{n: _name(getattr(s, n)) for n in names},
        )
        _must(own_dpdk in (None, s.dpdk_version), "NFMETA_EDPDKVERSION")
        _must(own_layout in (None, s.mbuf_layout), "NFMETA_EMBUF")
        _must(s.name == name and s.instance != 0 and 1 <= s.when_full <= 3)
        _must(64 <= s.ring_size <= 65536 and s.ring_size & s.ring_size - 1 == 0)
        _must(s.blanks <= 1024 and s.flow_carrier <= CARRIER_TABLE)
        cls._check_field(s.field, s.mbuf_layout[0])
        if s.flow_carrier in (CARRIER_RING, CARRIER_TABLE):
            _must(512 <= s.flow_ring <= 1 << 20)
        else:
            _must(s.flow_ring == 0)
        _must(s.flow_carrier != CARRIER_INBAND or s.blanks > 0)
        _must(s.flow_carrier != CARRIER_TABLE or s.flow_table)
        _must(1 <= s.queue_count <= 64 and s.queue_offset >= 512)
        _must(s.queue_size >= (512 if s.flow_carrier else 256))
        _must(s.queue_offset % 64 == 0 and s.queue_size % 64 == 0)
        _must(s.queue_offset + s.queue_count * s.queue_size <= s.size)
        self = cls._make(s)
        self.queues = [self._queue(data, i) for i in range(s.queue_count)]
        return self

    def ready(self, queue):
        """May an NF attach to this queue?  False: not yet."""
        _must(queue < self.queue_count, "EINVAL")
        _must(self.state != 2, "NFMETA_ECLOSING")
        _must(self.state <= 1)
        return self.state == 1

    @staticmethod
    def _check_field(f, mbuf_size):
        _must(DYNFIELD <= f.placement <= HEADROOM and f.size in _WORDS and f.offset % 8 == 0)
        room, seal_size = (HEADROOM_ROOM, 4) if f.placement == HEADROOM else (mbuf_size, 2)
        _must(f.offset + f.size <= room and f.seal_offset + seal_size <= room)
        _must(f.flag != 0 and f.flag & f.flag - 1 == 0)

    def _queue(self, data, i):
        at = self.queue_offset + i * self.queue_size
        places = (0, 32, 64, 256, 288) if self.flow_carrier else (0, 32, 64)
        q = Queue._make([_name(data[at + n : at + n + 32]) for n in places] + [""] * (5 - len(places)))
        _must(q.down and q.up and bool(q.blank) == (self.blanks > 0))
        _must(bool(q.flow_down) == (self.flow_carrier == CARRIER_RING))
        _must(bool(q.flow_up) == (self.flow_carrier in (CARRIER_RING, CARRIER_TABLE)))
        return q


# ---- the canonical flow key, section 6 ----------------------------------------------

_EXTENSIONS = {0, 43, 44, 51, 60, 135, 139, 140}
_TAGS = {b"\x81\x00", b"\x88\xa8", b"\x91\x00"}


def _ipv6_protocol(packet, at):
    """Behind all extension headers; of a later fragment what its header names."""
    proto, at = packet[at + 6], at + 40
    for _ in range(16):
        head = packet[at : at + 8]
        if proto not in _EXTENSIONS or len(head) < 8:
            return proto
        if proto == 44:
            size = 8
        elif proto == 51:
            size = (head[1] + 2) * 4
        else:
            size = (head[1] + 1) * 8
        if at + size > len(packet):
            return proto
        later = proto == 44 and head[2] << 8 | head[3] & 0xF8
        proto, at = head[0], at + size
        if later:
            return proto
    return proto


def flow_key(packet, record, vlans=True, stripped=()):
    """The key of a packet, and whether the packet is reverse; the record says where
    the headers are.  vlans: ids belong to the key; stripped: tags a device took off."""
    l3, l4 = record.l3_off, record.l4_off
    if l3 == NONE:
        return bytes(48), False
    version = packet[l3] >> 4
    if version == 4:
        proto = packet[l3 + 9]
        source, target = packet[l3 + 12 : l3 + 16], packet[l3 + 16 : l3 + 20]
    else:
        proto = _ipv6_protocol(packet, l3)
        source, target = packet[l3 + 8 : l3 + 24], packet[l3 + 24 : l3 + 40]
    sport = dport = bytes(2)
    if l4 != NONE and proto in (6, 17, 132):
        sport, dport = packet[l4 : l4 + 2], packet[l4 + 2 : l4 + 4]
    elif l4 != NONE and (proto, packet[l4]) in ((1, 0), (1, 8), (58, 128), (58, 129)):
        sport = dport = packet[l4 + 4 : l4 + 6].ljust(2, b"\0")
    ids = [tci.to_bytes(2, "big") for tci in stripped]
    at = 12
    while packet[at : at + 2] in _TAGS:
        ids.append(packet[at + 2 : at + 4])
        at += 4
    ids = [bytes((tci[0] & 15, tci[1])) for tci in ids[:2]] if vlans else []
    source, target = (source, sport), (target, dport)
    reverse = source > target
    a, b = (target, source) if reverse else (source, target)
    return (
        a[0].ljust(16, b"\0") + b[0].ljust(16, b"\0") + a[1] + b[1]
        + b"".join(ids).ljust(4, b"\0")
        + bytes((proto, version, record.flags & FRAG_LATER != 0, 0)) + bytes(4)
    ), reverse  # fmt: skip


# ---- messages of flow state, section 8 ----------------------------------------------

Header = namedtuple(
    "Header",
    "magic abi type flags count entry_size source ask instance epoch seq barrier",
)
_HEADER = Struct("<IBBBxHHHHIIQQ")

State = namedtuple("State", "flow_id flow_gen action app_id")
Delete = namedtuple("Delete", "flow_id flow_gen reason")
Counters = namedtuple("Counters", "flow_id flow_gen packets bytes")
Verdict = namedtuple(
    "Verdict",
    "flow_id flow_gen verdict flags after ttl who why",
    defaults=(0, 0, 0, 0, 0),
)
Load = namedtuple("Load", "busy flows overload")
Mark = namedtuple("Mark", "seq")
Message = namedtuple("Message", "header entries")

_ENTRIES = {
    State: Struct("<IHBxI4x"),
    Delete: Struct("<IHH"),
    Counters: Struct("<IH2x4Q"),
    Verdict: Struct("<IHBBIIHH4x"),
    Load: Struct("<IIQ"),
    Mark: Struct("<Q"),
}
# type: entry, goes up, fewest and most entries
_TYPES = {
    NEW: (State, 0, 1, 128),
    UPDATE: (State, 0, 1, 128),
    DELETE: (Delete, 0, 1, 256),
    COUNTERS: (Counters, 0, 1, 51),
    SNAPSHOT: (State, 0, 0, 128),
    RESET: (None, 0, 0, 0),
    HEARTBEAT: (None, 0, 0, 0),
    VERDICT: (Verdict, 1, 1, 85),
    LOAD: (Load, 1, 1, 1),
    RESYNC: (Mark, 1, 1, 1),
    ACK: (Mark, 1, 1, 1),
}
TYPES_DOWN = tuple(t for t, (_, up, _, _) in _TYPES.items() if not up)


class Malformed(ValueError):
    """Not a message, or one that must be understood and is not known here."""


def message_length(data):
    """Bytes of the message that begins here; None: the header is not all there."""
    if len(data) < 40:
        return None
    h = Header._make(_HEADER.unpack_from(data))
    if h.magic != MAGIC or h.abi != ABI:
        raise Malformed("magic or ABI")
    if h.entry_size % 8 != 0 or (h.count != 0 and h.entry_size == 0):
        raise Malformed("size of entries")
    if h.count * h.entry_size > ENTRY_BYTES:
        raise Malformed("too long")
    return 40 + h.count * h.entry_size


def _entry(kind, data, at):
    values = _ENTRIES[kind].unpack_from(data, at)
    if kind is Counters:
        return Counters(values[0], values[1], values[2:4], values[4:6])
    return kind._make(values)


def parse_message(data, up=0):
    """The first message in data, as (length, Message).

    (length, None): a message to skip.  (None, None): it is longer than data.
    up: 1 if an NF sent it.
    """
    length = message_length(data)
    if length is None:
        return None, None
    h = Header._make(_HEADER.unpack_from(data))
    if h.type not in _TYPES:
        if not h.type & OPTIONAL:
            raise Malformed(f"type {h.type} is not known")
        return (length, None) if len(data) >= length else (None, None)
    kind, goes_up, fewest, most = _TYPES[h.type]
    if goes_up != up:
        raise Malformed("wrong direction")
    if not fewest <= h.count <= most:
        raise Malformed("number of entries")
    if h.count != 0 and h.entry_size < _ENTRIES[kind].size:
        raise Malformed("entries are too small")
    if h.flags & (FIRST | LAST) and h.type != SNAPSHOT:
        raise Malformed("FIRST or LAST")
    if len(data) < length:
        return None, None
    entries = [_entry(kind, data, 40 + i * h.entry_size) for i in range(h.count)]
    return length, Message(h, entries)


def pack_entries(entries):
    """The bytes of entries of one kind, as they go behind a header."""
    pack = _ENTRIES[type(entries[0])].pack
    return b"".join(pack(*e) for e in entries)


def newer(a, b):
    """Is generation a newer than b?  They count up and wrap."""
    return 0 < (a - b) & 0xFFFF < 0x8000


# ---- the shared table, section 10 ---------------------------------------------------

_TABLE = Struct("<IHBBI2s2s16s16sQQ")
_Table = namedtuple(
    "_Table",
    "seq flow_gen state proto app_id port_a port_b addr_a addr_b from_a from_b",
)


class TableFlow(_Table):
    """An entry that was copied whole."""

    __slots__ = ()

    @classmethod
    def parse(cls, data):
        return cls._make(_TABLE.unpack(data))

    phase = property(lambda self: self.state & 7)
    reverse = property(lambda self: self.state >> 3 & 1)
    action = property(lambda self: self.state >> 4)
    packets_a = property(lambda self: self.from_a >> 36)
    packets_b = property(lambda self: self.from_b >> 36)
    bytes_a = property(lambda self: self.from_a & (1 << 36) - 1)
    bytes_b = property(lambda self: self.from_b & (1 << 36) - 1)

    @property
    def key(self):
        """The flow's canonical key, without VLAN ids and tenant."""
        mapped = bytes(10) + b"\xff\xff"
        v4 = self.addr_a.startswith(mapped) and self.addr_b.startswith(mapped)
        a, b = (
            addr[12:].ljust(16, b"\0") if v4 else addr for addr in (self.addr_a, self.addr_b)
        )
        return (
            a + b + self.port_a + self.port_b + bytes(4)
            + bytes((self.proto, 4 if v4 else 6)) + bytes(6)
        )  # fmt: skip


TableHeader = namedtuple(
    "TableHeader", "magic abi_major abi_minor entry_size entry_offset flows instance"
)
TABLE_MAGIC = 0x314C42544D464E2D


def parse_table_header(data, length):
    """The header of a table in a memzone of so many bytes."""
    _must(length >= 64)
    t = TableHeader._make(Struct("<QHHHHII").unpack_from(data))
    _must(t.magic == TABLE_MAGIC)
    _must(t.abi_major == ABI, "NFMETA_EABI")
    _must(t.entry_size == 64 and t.entry_offset >= 64 and t.entry_offset % 64 == 0)
    _must(1 <= t.flows <= 1 << 26 and t.instance != 0)
    _must(t.entry_offset + t.flows * 64 <= length)
    return t
