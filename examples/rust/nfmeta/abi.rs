// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors

//! The bytes that processes share, read by bindings-spec/README.md alone. Nothing in
//! here calls C or touches memory that it was not handed.

use std::fmt;
use std::mem::size_of;

#[allow(missing_docs)]
mod numbers {
    pub const ABI: u8 = 1;
    /// An offset: there is no such header.
    pub const NONE: u16 = 0xffff;

    // flags of a record, section 3
    pub const L2_VALID: u16 = 0x0001;
    pub const L3_VALID: u16 = 0x0002;
    pub const L4_VALID: u16 = 0x0004;
    pub const L3_CSUM_GOOD: u16 = 0x0008;
    pub const L3_CSUM_BAD: u16 = 0x0010;
    pub const L4_CSUM_GOOD: u16 = 0x0020;
    pub const L4_CSUM_BAD: u16 = 0x0040;
    pub const FRAG_FIRST: u16 = 0x0080;
    pub const FRAG_LATER: u16 = 0x0100;
    pub const FLOW_KNOWN: u16 = 0x0200;
    pub const FLOW_NEW: u16 = 0x0400;
    pub const FLOW_REVERSE: u16 = 0x0800;
    pub const TUNNEL_OUTER: u16 = 0x1000;

    // dispositions, section 7
    pub const FORWARD: u8 = 0;
    pub const DROP: u8 = 1;
    pub const BACKWARD: u8 = 2;

    // actions and verdicts
    pub const ACTION_NONE: u8 = 0;
    pub const ACTION_FORWARD: u8 = 1;
    pub const ACTION_DROP: u8 = 2;
    pub const ACTION_INSPECT: u8 = 3;
    pub const ACTION_SHUNT: u8 = 4;

    // placements, section 5
    pub const DYNFIELD: u8 = 1;
    pub const UDATA64: u8 = 2;
    pub const HEADROOM: u8 = 3;
    pub const HEADROOM_ROOM: u16 = 64;

    // carriers and messages, section 8
    pub const CARRIER_RING: u8 = 1;
    pub const CARRIER_INBAND: u8 = 2;
    pub const CARRIER_TABLE: u8 = 3;
    pub const NEW: u8 = 1;
    pub const UPDATE: u8 = 2;
    pub const DELETE: u8 = 3;
    pub const COUNTERS: u8 = 4;
    pub const SNAPSHOT: u8 = 5;
    pub const RESET: u8 = 6;
    pub const HEARTBEAT: u8 = 7;
    pub const VERDICT: u8 = 16;
    pub const LOAD: u8 = 17;
    pub const RESYNC: u8 = 18;
    pub const ACK: u8 = 19;
    pub const OPTIONAL: u8 = 0x80;
    pub const FIRST: u8 = 0x01;
    pub const LAST: u8 = 0x02;
    pub const MAGIC: u32 = 0x314c_464e;
    pub const HEADER_BYTES: usize = 40;
    pub const ENTRY_BYTES: usize = 2048;
}
pub use numbers::*;

/// A little-endian number: `get!(data, u16, 4)`. Panics if it is not inside.
macro_rules! get {
    ($data:expr, $type:ty, $at:expr) => {{
        let mut bytes = [0; size_of::<$type>()];
        bytes.copy_from_slice(&$data[$at..$at + size_of::<$type>()]);
        <$type>::from_le_bytes(bytes)
    }};
}

// ---- the record, sections 2 to 5 ---------------------------------------------------

/// A record of 8, 16, 32 or 64 bytes. Word and core are copies, the rest is read where it
/// lies. Fields that are not there read as nothing.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    word: u64,
    core: u64,
    rest: &'a [u8], // from byte 16 on
}

const NO_CORE: u64 = 0x0000_ffff_ffff_ffff; // no offsets, generation 0

macro_rules! fields {
    ($($name:ident: $type:ty, $at:expr;)*) => {$(
        #[allow(missing_docs)]
        pub fn $name(&self) -> $type {
            let at = $at - 16;
            if self.rest.len() < at + size_of::<$type>() {
                return 0;
            }
            get!(self.rest, $type, at)
        }
    )*};
}

#[allow(missing_docs)]
impl<'a> Record<'a> {
    /// None: not a size that there is.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        match bytes.len() {
            8 => Some(Record {
                word: get!(bytes, u64, 0),
                core: NO_CORE,
                rest: &[],
            }),
            16 | 32 | 64 => Some(Record {
                word: get!(bytes, u64, 0),
                core: get!(bytes, u64, 8),
                rest: &bytes[16..],
            }),
            _ => None,
        }
    }

    #[inline]
    pub fn abi(&self) -> u8 {
        self.word as u8
    }

    #[inline]
    pub fn size(&self) -> u8 {
        (self.word >> 8) as u8
    }

    #[inline]
    pub fn flags(&self) -> u16 {
        (self.word >> 16) as u16
    }

    #[inline]
    pub fn flow_id(&self) -> u32 {
        (self.word >> 32) as u32
    }

    #[inline]
    pub fn l3_off(&self) -> u16 {
        self.core as u16
    }

    #[inline]
    pub fn l4_off(&self) -> u16 {
        (self.core >> 16) as u16
    }

    #[inline]
    pub fn payload_off(&self) -> u16 {
        (self.core >> 32) as u16
    }

    #[inline]
    pub fn flow_gen(&self) -> u16 {
        (self.core >> 48) as u16
    }

    /// Has the generation of its flow (and the offsets).
    #[inline]
    pub fn has_core(&self) -> bool {
        self.size() >= 16
    }

    fields! {
        app_id: u32, 16;
        port: u16, 20;
        vlan_outer: u16, 22;
        vlan_inner: u16, 24;
        vlan_count: u8, 26;
        action: u8, 27;
        timestamp: u64, 32;
        tenant: u32, 40;
        chain: u8, 44;
        tunnels: u8, 45;
    }

    /// The user's own 16 bytes, if they are there.
    pub fn user(&self) -> Option<&'a [u8]> {
        self.rest.get(32..48)
    }
}

/// Where the records of a link's packets are.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Field {
    pub flag: u64,
    pub key: u64,
    pub offset: u16,
    pub seal_offset: u16,
    pub placement: u8,
    pub size: u8,
}

impl Field {
    /// From its 32 bytes in the link.
    pub fn parse(data: &[u8; 32]) -> Self {
        Field {
            flag: get!(data, u64, 0),
            key: get!(data, u64, 8),
            offset: get!(data, u16, 16),
            seal_offset: get!(data, u16, 18),
            placement: data[20],
            size: data[21],
        }
    }

    /// N words of record, mixed into the key.
    #[inline(always)]
    fn mix<const N: usize>(&self, place: &[u8]) -> u64 {
        const TURNS: [u32; 8] = [0, 7, 13, 19, 29, 37, 43, 53];
        let place = &place[..8 * N];
        let mut x = self.key;
        for i in 0..N {
            let mut word = get!(place, u64, 8 * i);
            if i == 3 && self.placement == HEADROOM {
                word &= 0xffff_ffff; // the seal's own place
            }
            x ^= word.rotate_left(TURNS[i]);
        }
        x
    }

    /// The seal that these bytes of record want; start and length: of the packet.
    #[inline]
    fn seal(&self, place: &[u8], start: u16, length: u32) -> u32 {
        let mut x = match place.len() {
            8 => self.mix::<1>(place),
            16 => self.mix::<2>(place),
            32 => self.mix::<4>(place),
            _ => self.mix::<8>(place),
        };
        x ^= x >> 32;
        if self.placement != HEADROOM {
            x ^= x >> 16;
        }
        x ^= u64::from(u32::from(start).wrapping_add(length.wrapping_mul(0x9e36)) & 0xffff);
        if self.placement == HEADROOM {
            x as u32
        } else {
            x as u32 & 0xffff
        }
    }

    /// The record, or None if there is none. place: the bytes of `size`; seal: the
    /// number that lies in the seal's place. (`ol_flags` had the flag: that was asked
    /// before.)
    #[inline]
    pub fn read<'a>(
        &self,
        place: &'a [u8],
        seal: u32,
        start: u16,
        length: u32,
    ) -> Option<Record<'a>> {
        if self.placement == HEADROOM && start < HEADROOM_ROOM {
            return None;
        }
        let size = usize::from(place[1]);
        if place[0] != ABI || size > place.len() || self.seal(place, start, length) != seal {
            return None;
        }
        Record::new(&place[..size])
    }
}

// ---- the handshake of a link, section 7 --------------------------------------------

/// A handshake or table that a reader refuses: the name of the error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refused(pub &'static str);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "the link is refused: {}", self.0)
    }
}

impl std::error::Error for Refused {}

const FORMAT: Refused = Refused("NFMETA_EFORMAT");

fn must(possible: bool, error: Refused) -> Result<(), Refused> {
    if possible {
        Ok(())
    } else {
        Err(error)
    }
}

fn name_at(data: &[u8], at: usize) -> Result<String, Refused> {
    let field = &data[at..at + 32];
    let end = field.iter().position(|b| *b == 0).ok_or(FORMAT)?;
    Ok(String::from_utf8_lossy(&field[..end]).into_owned())
}

/// What a primary publishes of a link.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Handshake {
    pub abi_minor: u16,
    pub size: u32,
    pub features_required: u64,
    pub features_offered: u64,
    pub instance: u32,
    pub state: u32,
    pub queue_size: u16,
    pub queue_offset: u16,
    pub when_full: u8,
    pub ring_size: u32,
    pub blanks: u32,
    pub field: Field,
    pub name: String,
    pub library_version: String,
    pub dpdk_version: String,
    pub pool_name: String,
    pub pool_ops: String,
    pub mbuf_layout: [u16; 16],
    pub flow_table: String,
    pub flow_ring: u32,
    pub flow_carrier: u8,
    pub heartbeat: u64,
    pub queues: Vec<Queue>,
}

/// Names of the rings of a queue.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Queue {
    pub down: String,
    pub up: String,
    pub blank: String,
    pub flow_down: String,
    pub flow_up: String,
}

impl Handshake {
    /// data: the memzone; own: DPDK version and mbuf layout of this side, if it has own
    /// ones. Ok(None): there is no link yet.
    pub fn parse(
        d: &[u8],
        name: &str,
        own: Option<(&str, &[u16; 16])>,
    ) -> Result<Option<Self>, Refused> {
        const MAGIC: u64 = 0x314b_4e4c_464e_2d31;
        must(d.len() >= 512, FORMAT)?;
        if get!(d, u64, 0) == 0 {
            return Ok(None);
        }
        must(get!(d, u64, 0) == MAGIC, FORMAT)?;
        must(get!(d, u16, 8) == ABI.into(), Refused("NFMETA_EABI"))?;
        let (abi_minor, size, features_required) =
            (get!(d, u16, 10), get!(d, u32, 12), get!(d, u64, 16));
        must(size >= 512 && size as usize <= d.len(), FORMAT)?;
        must(features_required & !1 == 0, Refused("NFMETA_EFEATURE"))?;
        let flow = abi_minor >= 1;
        let mut mbuf_layout = [0; 16];
        for (i, offset) in mbuf_layout.iter_mut().enumerate() {
            *offset = get!(d, u16, 248 + 2 * i);
        }
        let mut s = Handshake {
            abi_minor,
            size,
            features_required,
            features_offered: get!(d, u64, 24),
            instance: get!(d, u32, 32),
            state: get!(d, u32, 36),
            queue_size: get!(d, u16, 42),
            queue_offset: get!(d, u16, 44),
            when_full: d[46],
            ring_size: get!(d, u32, 48),
            blanks: get!(d, u32, 52),
            field: Field::parse(d[56..88].try_into().map_err(|_| FORMAT)?),
            name: name_at(d, 88)?,
            library_version: name_at(d, 120)?,
            dpdk_version: name_at(d, 152)?,
            pool_name: name_at(d, 184)?,
            pool_ops: name_at(d, 216)?,
            mbuf_layout,
            flow_table: if flow {
                name_at(d, 280)?
            } else {
                String::new()
            },
            flow_ring: if flow { get!(d, u32, 312) } else { 0 },
            flow_carrier: if flow { d[316] } else { 0 },
            heartbeat: get!(d, u64, 384),
            queues: Vec::new(),
        };
        if let Some((dpdk_version, layout)) = own {
            must(
                s.dpdk_version == dpdk_version,
                Refused("NFMETA_EDPDKVERSION"),
            )?;
            must(s.mbuf_layout == *layout, Refused("NFMETA_EMBUF"))?;
        }
        let queue_count = get!(d, u16, 40);
        must(
            s.name == name && s.is_possible() && (1..=64).contains(&queue_count),
            FORMAT,
        )?;
        let end =
            usize::from(s.queue_offset) + usize::from(queue_count) * usize::from(s.queue_size);
        must(end <= size as usize, FORMAT)?;
        for i in 0..queue_count {
            let queue = s.queue(d, i.into())?;
            s.queues.push(queue);
        }
        Ok(Some(s))
    }

    fn is_possible(&self) -> bool {
        let f = &self.field;
        let (room, seal_size) = match f.placement {
            DYNFIELD | UDATA64 => (self.mbuf_layout[0], 2),
            HEADROOM => (HEADROOM_ROOM, 4),
            _ => return false,
        };
        let inside = |offset: u16, size: u32| u32::from(offset) + size <= room.into();
        let flow_possible = match self.flow_carrier {
            0 => self.flow_ring == 0,
            CARRIER_RING => (512..=1 << 20).contains(&self.flow_ring),
            CARRIER_INBAND => self.flow_ring == 0 && self.blanks > 0,
            CARRIER_TABLE => {
                (512..=1 << 20).contains(&self.flow_ring) && !self.flow_table.is_empty()
            }
            _ => false,
        };
        flow_possible
            && matches!(f.size, 8 | 16 | 32 | 64)
            && f.offset % 8 == 0
            && inside(f.offset, f.size.into())
            && inside(f.seal_offset, seal_size)
            && f.flag.is_power_of_two()
            && self.instance != 0
            && (1..=3).contains(&self.when_full)
            && (64..=65536).contains(&self.ring_size)
            && self.ring_size.is_power_of_two()
            && self.blanks <= 1024
            && self.queue_offset >= 512
            && self.queue_size >= if self.flow_carrier != 0 { 512 } else { 256 }
            && self.queue_offset % 64 == 0
            && self.queue_size % 64 == 0
    }

    fn queue(&self, d: &[u8], i: usize) -> Result<Queue, Refused> {
        let at = usize::from(self.queue_offset) + i * usize::from(self.queue_size);
        let mut q = Queue {
            down: name_at(d, at)?,
            up: name_at(d, at + 32)?,
            blank: name_at(d, at + 64)?,
            ..Default::default()
        };
        if self.flow_carrier != 0 {
            q.flow_down = name_at(d, at + 256)?;
            q.flow_up = name_at(d, at + 288)?;
        }
        let there = !q.down.is_empty() && !q.up.is_empty();
        let ring_down = self.flow_carrier == CARRIER_RING;
        let ring_up = matches!(self.flow_carrier, CARRIER_RING | CARRIER_TABLE);
        must(there && q.blank.is_empty() == (self.blanks == 0), FORMAT)?;
        must(
            q.flow_down.is_empty() != ring_down && q.flow_up.is_empty() != ring_up,
            FORMAT,
        )?;
        Ok(q)
    }

    /// May an NF attach to this queue? Ok(false): not yet.
    pub fn ready(&self, queue: usize) -> Result<bool, Refused> {
        must(queue < self.queues.len(), Refused("EINVAL"))?;
        match self.state {
            0 => Ok(false),
            1 => Ok(true),
            2 => Err(Refused("NFMETA_ECLOSING")),
            _ => Err(FORMAT),
        }
    }
}

// ---- the canonical flow key, section 6 ---------------------------------------------

/// Behind all extension headers; of a later fragment what its header names.
fn ipv6_protocol(packet: &[u8], l3: usize) -> u8 {
    let (mut proto, mut at) = (packet[l3 + 6], l3 + 40);
    for _ in 0..16 {
        let head = match (proto, packet.get(at..at + 8)) {
            (0 | 43 | 44 | 51 | 60 | 135 | 139 | 140, Some(head)) => head,
            _ => return proto,
        };
        at += match proto {
            44 => 8,
            51 => (usize::from(head[1]) + 2) * 4,
            _ => (usize::from(head[1]) + 1) * 8,
        };
        if at > packet.len() {
            return proto;
        }
        let later = proto == 44 && (head[2] != 0 || head[3] & 0xf8 != 0);
        proto = head[0];
        if later {
            return proto;
        }
    }
    proto
}

/// The key of a packet, and whether the packet is reverse; the record says where the
/// headers are. vlans: ids belong to the key; stripped: tags that a device took off.
pub fn flow_key(packet: &[u8], record: &Record, vlans: bool, stripped: &[u16]) -> ([u8; 48], bool) {
    let mut key = [0; 48];
    let (l3, l4) = (usize::from(record.l3_off()), usize::from(record.l4_off()));
    if record.l3_off() == NONE {
        return (key, false);
    }
    let version = packet[l3] >> 4;
    let (proto, first, size) = match version {
        4 => (packet[l3 + 9], l3 + 12, 4),
        _ => (ipv6_protocol(packet, l3), l3 + 8, 16),
    };
    let mut source = (&packet[first..first + size], [0, 0]);
    let mut target = (&packet[first + size..first + 2 * size], [0, 0]);
    if record.l4_off() != NONE {
        match (proto, packet[l4]) {
            (6 | 17 | 132, _) => {
                source.1.copy_from_slice(&packet[l4..l4 + 2]);
                target.1.copy_from_slice(&packet[l4 + 2..l4 + 4]);
            }
            (1, 0 | 8) | (58, 128 | 129) => {
                if let Some(id) = packet.get(l4 + 4..l4 + 6) {
                    source.1.copy_from_slice(id);
                    target.1.copy_from_slice(id);
                }
            }
            _ => {}
        }
    }
    let reverse = source > target;
    let (a, b) = if reverse {
        (target, source)
    } else {
        (source, target)
    };
    key[..size].copy_from_slice(a.0);
    key[16..16 + size].copy_from_slice(b.0);
    key[32..34].copy_from_slice(&a.1);
    key[34..36].copy_from_slice(&b.1);
    if vlans {
        let inside = packet[12..]
            .chunks_exact(4)
            .take_while(|tag| matches!(tag[..2], [0x81, 0] | [0x88, 0xa8] | [0x91, 0]))
            .map(|tag| u16::from_be_bytes([tag[2], tag[3]]));
        for (i, tci) in stripped.iter().copied().chain(inside).take(2).enumerate() {
            key[36 + 2 * i..38 + 2 * i].copy_from_slice(&(tci & 0xfff).to_be_bytes());
        }
    }
    key[40] = proto;
    key[41] = version;
    key[42] = u8::from(record.flags() & FRAG_LATER != 0);
    (key, reverse)
}

// ---- messages of flow state, section 8 ---------------------------------------------

#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Header {
    pub magic: u32,
    pub abi: u8,
    pub kind: u8,
    pub flags: u8,
    pub count: u16,
    pub entry_size: u16,
    pub source: u16,
    pub ask: u16,
    pub instance: u32,
    pub epoch: u32,
    pub seq: u64,
    pub barrier: u64,
}

/// An entry of a message.
pub trait Entry: Sized {
    /// Bytes that are known here; there may be more.
    const SIZE: usize;
    /// From at least SIZE bytes.
    fn parse(data: &[u8]) -> Self;
}

/// NEW, UPDATE, SNAPSHOT
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct State {
    pub flow_id: u32,
    pub flow_gen: u16,
    pub action: u8,
    pub app_id: u32,
}

impl Entry for State {
    const SIZE: usize = 16;
    fn parse(d: &[u8]) -> Self {
        State {
            flow_id: get!(d, u32, 0),
            flow_gen: get!(d, u16, 4),
            action: d[6],
            app_id: get!(d, u32, 8),
        }
    }
}

/// DELETE
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Delete {
    pub flow_id: u32,
    pub flow_gen: u16,
    pub reason: u16,
}

impl Entry for Delete {
    const SIZE: usize = 8;
    fn parse(d: &[u8]) -> Self {
        Delete {
            flow_id: get!(d, u32, 0),
            flow_gen: get!(d, u16, 4),
            reason: get!(d, u16, 6),
        }
    }
}

/// COUNTERS: along the direction of the flow's first packet, against it
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Counters {
    pub flow_id: u32,
    pub flow_gen: u16,
    pub packets: [u64; 2],
    pub bytes: [u64; 2],
}

impl Entry for Counters {
    const SIZE: usize = 40;
    fn parse(d: &[u8]) -> Self {
        Counters {
            flow_id: get!(d, u32, 0),
            flow_gen: get!(d, u16, 4),
            packets: [get!(d, u64, 8), get!(d, u64, 16)],
            bytes: [get!(d, u64, 24), get!(d, u64, 32)],
        }
    }
}

/// VERDICT
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Verdict {
    pub flow_id: u32,
    pub flow_gen: u16,
    pub verdict: u8,
    pub flags: u8,
    pub after: u32,
    pub ttl: u32,
    pub who: u16,
    pub why: u16,
}

impl Entry for Verdict {
    const SIZE: usize = 24;
    fn parse(d: &[u8]) -> Self {
        Verdict {
            flow_id: get!(d, u32, 0),
            flow_gen: get!(d, u16, 4),
            verdict: d[6],
            flags: d[7],
            after: get!(d, u32, 8),
            ttl: get!(d, u32, 12),
            who: get!(d, u16, 16),
            why: get!(d, u16, 18),
        }
    }
}

impl Verdict {
    /// The bytes of the entry.
    pub fn put(&self) -> [u8; Self::SIZE] {
        let mut d = [0; Self::SIZE];
        d[..4].copy_from_slice(&self.flow_id.to_le_bytes());
        d[4..6].copy_from_slice(&self.flow_gen.to_le_bytes());
        d[6] = self.verdict;
        d[7] = self.flags;
        d[8..12].copy_from_slice(&self.after.to_le_bytes());
        d[12..16].copy_from_slice(&self.ttl.to_le_bytes());
        d[16..18].copy_from_slice(&self.who.to_le_bytes());
        d[18..20].copy_from_slice(&self.why.to_le_bytes());
        d
    }
}

/// LOAD
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Load {
    pub busy: u32,
    pub flows: u32,
    pub overload: u64,
}

impl Entry for Load {
    const SIZE: usize = 16;
    fn parse(d: &[u8]) -> Self {
        Load {
            busy: get!(d, u32, 0),
            flows: get!(d, u32, 4),
            overload: get!(d, u64, 8),
        }
    }
}

/// RESYNC, ACK
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Mark {
    pub seq: u64,
}

impl Entry for Mark {
    const SIZE: usize = 8;
    fn parse(d: &[u8]) -> Self {
        Mark {
            seq: get!(d, u64, 0),
        }
    }
}

/// A message where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its header.
    pub header: Header,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Its entries; T is the one of the message's kind.
    pub fn entries<T: Entry + 'a>(&self) -> impl Iterator<Item = T> + 'a {
        let step = usize::from(self.header.entry_size).max(1);
        self.body.chunks_exact(step).map(T::parse)
    }
}

/// Not a message, or one that must be understood and is not known here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "malformed message: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// What begins with some bytes; the numbers are bytes of the message.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Parsed<'a> {
    /// Longer than what is there.
    More,
    /// Of a kind that is not known and need not be.
    Skip(usize),
    Deliver(usize, Message<'a>),
}

fn parse_header(d: &[u8]) -> Header {
    Header {
        magic: get!(d, u32, 0),
        abi: d[4],
        kind: d[5],
        flags: d[6],
        count: get!(d, u16, 8),
        entry_size: get!(d, u16, 10),
        source: get!(d, u16, 12),
        ask: get!(d, u16, 14),
        instance: get!(d, u32, 16),
        epoch: get!(d, u32, 20),
        seq: get!(d, u64, 24),
        barrier: get!(d, u64, 32),
    }
}

/// Bytes of the message with this header of 40 bytes.
pub fn message_length(header: &[u8]) -> Result<usize, Malformed> {
    let h = parse_header(header);
    let (count, size) = (usize::from(h.count), usize::from(h.entry_size));
    if h.magic != MAGIC || h.abi != ABI {
        return Err(Malformed("magic or ABI"));
    }
    if size % 8 != 0 || (count != 0 && size == 0) {
        return Err(Malformed("size of entries"));
    }
    if count * size > ENTRY_BYTES {
        return Err(Malformed("too long"));
    }
    Ok(HEADER_BYTES + count * size)
}

/// The first message in data. up: an NF sent it.
pub fn parse_message(data: &[u8], up: bool) -> Result<Parsed<'_>, Malformed> {
    if data.len() < HEADER_BYTES {
        return Ok(Parsed::More);
    }
    let length = message_length(data)?;
    let header = parse_header(data);
    let (goes_up, size, count) = match header.kind {
        NEW | UPDATE => (false, State::SIZE, 1..=128),
        DELETE => (false, Delete::SIZE, 1..=256),
        COUNTERS => (false, Counters::SIZE, 1..=51),
        SNAPSHOT => (false, State::SIZE, 0..=128),
        RESET | HEARTBEAT => (false, 0, 0..=0),
        VERDICT => (true, Verdict::SIZE, 1..=85),
        LOAD => (true, Load::SIZE, 1..=1),
        RESYNC | ACK => (true, Mark::SIZE, 1..=1),
        kind if kind & OPTIONAL == 0 => return Err(Malformed("its type is not known")),
        _ if data.len() < length => return Ok(Parsed::More),
        _ => return Ok(Parsed::Skip(length)),
    };
    if goes_up != up {
        return Err(Malformed("wrong direction"));
    }
    if !count.contains(&header.count) {
        return Err(Malformed("number of entries"));
    }
    if header.count != 0 && usize::from(header.entry_size) < size {
        return Err(Malformed("entries are too small"));
    }
    if header.flags & (FIRST | LAST) != 0 && header.kind != SNAPSHOT {
        return Err(Malformed("FIRST or LAST"));
    }
    match data.get(HEADER_BYTES..length) {
        Some(body) => Ok(Parsed::Deliver(length, Message { header, body })),
        None => Ok(Parsed::More),
    }
}

/// Is generation a newer than b? They count up and wrap.
#[inline]
pub fn newer(a: u16, b: u16) -> bool {
    a.wrapping_sub(b) as i16 > 0
}

// ---- the shared table, section 10 --------------------------------------------------

/// An entry that was copied whole. from_a, from_b: packets << 36 | bytes.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct TableFlow {
    pub seq: u32,
    pub flow_gen: u16,
    pub state: u8,
    pub proto: u8,
    pub app_id: u32,
    pub port_a: u16,
    pub port_b: u16,
    pub addr_a: [u8; 16],
    pub addr_b: [u8; 16],
    pub from_a: u64,
    pub from_b: u64,
}

#[allow(missing_docs)]
impl TableFlow {
    pub fn parse(d: &[u8; 64]) -> Self {
        let addr = |at| {
            let mut a = [0; 16];
            a.copy_from_slice(&d[at..at + 16]);
            a
        };
        TableFlow {
            seq: get!(d, u32, 0),
            flow_gen: get!(d, u16, 4),
            state: d[6],
            proto: d[7],
            app_id: get!(d, u32, 8),
            port_a: u16::from_be_bytes([d[12], d[13]]),
            port_b: u16::from_be_bytes([d[14], d[15]]),
            addr_a: addr(16),
            addr_b: addr(32),
            from_a: get!(d, u64, 48),
            from_b: get!(d, u64, 56),
        }
    }

    pub fn phase(&self) -> u8 {
        self.state & 7
    }

    pub fn reverse(&self) -> bool {
        self.state & 8 != 0
    }

    pub fn action(&self) -> u8 {
        self.state >> 4
    }

    pub fn packets(counter: u64) -> u64 {
        counter >> 36
    }

    pub fn bytes(counter: u64) -> u64 {
        counter & ((1 << 36) - 1)
    }

    /// The flow's canonical key, without VLAN ids and tenant.
    pub fn key(&self) -> [u8; 48] {
        let v4 = |addr: &[u8; 16]| addr[..10] == [0; 10] && addr[10..12] == [0xff; 2];
        let mut key = [0; 48];
        key[41] = if v4(&self.addr_a) && v4(&self.addr_b) {
            4
        } else {
            6
        };
        let skip = if key[41] == 4 { 12 } else { 0 };
        key[..16 - skip].copy_from_slice(&self.addr_a[skip..]);
        key[16..32 - skip].copy_from_slice(&self.addr_b[skip..]);
        key[32..34].copy_from_slice(&self.port_a.to_be_bytes());
        key[34..36].copy_from_slice(&self.port_b.to_be_bytes());
        key[40] = self.proto;
        key
    }
}

/// Checks the header of a table in a memzone of so many bytes; where the entries begin,
/// and how many there are.
pub fn parse_table_header(d: &[u8], length: u64) -> Result<(u16, u32), Refused> {
    const MAGIC: u64 = 0x314c_4254_4d46_4e2d;
    must(
        length >= 64 && d.len() >= 64 && get!(d, u64, 0) == MAGIC,
        FORMAT,
    )?;
    must(get!(d, u16, 8) == ABI.into(), Refused("NFMETA_EABI"))?;
    let (entry_size, entry_offset) = (get!(d, u16, 12), get!(d, u16, 14));
    let (flows, instance) = (get!(d, u32, 16), get!(d, u32, 20));
    must(
        entry_size == 64 && entry_offset >= 64 && entry_offset % 64 == 0,
        FORMAT,
    )?;
    must((1..=1 << 26).contains(&flows) && instance != 0, FORMAT)?;
    must(
        u64::from(entry_offset) + u64::from(flows) * 64 <= length,
        FORMAT,
    )?;
    Ok((entry_offset, flows))
}
