// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors

//! A queue of a link, by the C functions of libnfmeta. C moves packets and messages;
//! what is in them is read from memory here.

use std::cell::Cell;
use std::ffi::{c_void, CStr, CString};
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int};
use std::time::{Duration, Instant};
use std::{fmt, ptr, slice};

use crate::abi::{self, Field, Handshake, Message, Parsed, Record, Verdict};

/// Packets in a burst at most.
pub const BURST: usize = 32;

/// Numbers of errors (bindings-spec, section 11).
#[allow(missing_docs)]
pub mod code {
    pub const EAGAIN: i32 = 11;
    pub const ENOPRIMARY: i32 = 2001;
    pub const EPRIMARYDEAD: i32 = 2002;
    pub const ENOLINK: i32 = 2012;
    pub const ECLOSING: i32 = 2016;
    pub const EPRIMARYGONE: i32 = 2017;
    pub const EMESSAGE: i32 = 2020;
    pub const EFENCED: i32 = 2023;
}

#[repr(C)]
struct EalOpts {
    sz: u32,
    timeout_ms: u32,
    file_prefix: *const c_char,
    log_file: *const c_char,
}

#[repr(C)]
#[derive(Default)]
struct FlowStats {
    sz: u32,
    state: u32,
    sent: u64,
    lost: u64,
    seen: u64,
    acked: u64,
    replies: u64,
    collected: u64,
    gaps: u64,
    stale: u64,
    refused: u64,
    backlog: u32,
    reserved: u32,
}

type Raw = *mut c_void; // struct nfmeta_link
type Mbuf = *mut u8; // struct rte_mbuf

#[link(name = "nfmeta")]
extern "C" {
    fn nfmeta_error() -> *const c_char;
    fn nfmeta_version() -> *const c_char;
    fn nfmeta_eal_attach(opts: *const EalOpts) -> c_int;
    fn nfmeta_eal_detach();
    fn nfmeta_link_attach(
        name: *const c_char,
        queue: u16,
        timeout_ms: u32,
        link: *mut Raw,
    ) -> c_int;
    fn nfmeta_link_check(link: Raw) -> c_int;
    fn nfmeta_link_detach(link: Raw) -> c_int;
    fn nfmeta_link_shared(link: Raw) -> *const u8;
    fn nfmeta_recv_burst(link: Raw, pkts: *mut Mbuf, recs: *mut c_void, n: u16) -> u16;
    fn nfmeta_return_burst(link: Raw, pkts: *const Mbuf, how: *const u8, n: u16) -> u16;
    fn nfmeta_flow_subscribe(link: Raw, types: u64) -> c_int;
    fn nfmeta_flow_next(link: Raw, batch: *mut *const u8) -> c_int;
    fn nfmeta_flow_reply(link: Raw, kind: u8, entries: *const c_void, n: u16) -> c_int;
    fn nfmeta_flow_stats(link: Raw, queue: u16, stats: *mut FlowStats) -> c_int;
}

/// A refusal of the library: its sentence, and the positive number.
#[derive(Debug)]
pub struct Error {
    /// One of `code`, or an errno.
    pub code: i32,
    text: String,
}

impl Error {
    fn last(rc: c_int) -> Self {
        // SAFETY: a string of this thread, valid until the next error
        let text = unsafe { CStr::from_ptr(nfmeta_error()) };
        Error {
            code: -rc,
            text: text.to_string_lossy().into_owned(),
        }
    }

    /// The upfront NF is gone, or has cut this NF off: end the process.
    pub fn is_gone(&self) -> bool {
        matches!(self.code, code::EPRIMARYGONE | code::EFENCED)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

fn check(rc: c_int) -> Result<c_int, Error> {
    if rc < 0 {
        return Err(Error::last(rc));
    }
    Ok(rc)
}

/// Version of the library.
pub fn version() -> String {
    // SAFETY: a constant string
    unsafe { CStr::from_ptr(nfmeta_version()) }
        .to_string_lossy()
        .into_owned()
}

/// Where the fields of struct rte_mbuf are, as the link says (section 7).
#[derive(Clone, Copy, Default)]
struct Layout {
    buf_addr: usize,
    data_off: usize,
    ol_flags: usize,
    pkt_len: usize,
    data_len: usize,
    next: usize,
}

/// How to attach; `wanted` is asked between slices of the wait, so that a signal ends it.
#[allow(missing_docs)]
pub struct Options<'a> {
    pub link: &'a str,
    pub queue: u16,
    pub file_prefix: &'a str,
    pub timeout: Duration,
    pub wanted: &'a dyn Fn() -> bool,
}

impl Options<'_> {
    fn patiently(
        &self,
        end: Instant,
        again: &[i32],
        mut attempt: impl FnMut(u32) -> c_int,
    ) -> Result<(), Error> {
        const SLICE: Duration = Duration::from_millis(200);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let rc = attempt(left.min(SLICE).as_millis() as u32);
            if rc >= 0 {
                return Ok(());
            }
            if !again.contains(&-rc) || left.is_zero() || !(self.wanted)() {
                return Err(Error::last(rc));
            }
        }
    }
}

/// EAL, until it is dropped.
struct Eal(());

impl Drop for Eal {
    fn drop(&mut self) {
        // SAFETY: attached, and all links are detached: Link drops this last
        unsafe { nfmeta_eal_detach() }
    }
}

/// A queue of a link; dropped, it is left. One thread, one per process.
pub struct Link {
    raw: Raw,
    queue: u16,
    field: Field,
    mbuf: Layout,
    /// CARRIER_* of flow state, 0: none.
    pub carrier: u8,
    /// Messages that were none; the library asked for a snapshot.
    pub refused: u64,
    _eal: Eal,
    _one_thread: PhantomData<*mut ()>,
}

impl Link {
    /// Attaches to DPDK's primary, then to the queue.
    pub fn attach(o: &Options) -> Result<Link, Error> {
        let text = |s: &str| CString::new(s).unwrap_or_default();
        let (name, prefix) = (text(o.link), text(o.file_prefix));
        let end = Instant::now() + o.timeout;
        o.patiently(end, &[code::ENOPRIMARY, code::EPRIMARYDEAD], |timeout_ms| {
            let opts = EalOpts {
                sz: std::mem::size_of::<EalOpts>() as u32,
                timeout_ms,
                file_prefix: prefix.as_ptr(),
                log_file: ptr::null(),
            };
            // SAFETY: the strings live longer than the call
            unsafe { nfmeta_eal_attach(&opts) }
        })?;
        let eal = Eal(());
        let mut raw: Raw = ptr::null_mut();
        o.patiently(end, &[code::ENOLINK], |ms| {
            // SAFETY: likewise
            unsafe { nfmeta_link_attach(name.as_ptr(), o.queue, ms, &mut raw) }
        })?;
        let mut link = Link {
            raw,
            queue: o.queue,
            field: Field {
                flag: 0,
                key: 0,
                offset: 0,
                seal_offset: 0,
                placement: 0,
                size: 0,
            },
            mbuf: Layout::default(),
            carrier: 0,
            refused: 0,
            _eal: eal,
            _one_thread: PhantomData,
        };
        // SAFETY: it lives as long as the link, and says itself how long it is
        let shared = unsafe {
            let at = nfmeta_link_shared(raw);
            slice::from_raw_parts(at, at.add(12).cast::<u32>().read() as usize)
        };
        let refused = |text: String| Error { code: 0, text };
        let shared = Handshake::parse(shared, o.link, None)
            .map_err(|e| refused(e.to_string()))?
            .ok_or_else(|| refused("the link has gone".into()))?;
        let at = |i: usize| usize::from(shared.mbuf_layout[i]);
        link.mbuf = Layout {
            buf_addr: at(1),
            data_off: at(2),
            ol_flags: at(6),
            pkt_len: at(8),
            data_len: at(9),
            next: at(14),
        };
        link.field = shared.field;
        link.carrier = shared.flow_carrier;
        Ok(link)
    }

    /// Whether the link stands: Ok(false) when it closes. A system call: not per burst.
    pub fn check(&self) -> Result<bool, Error> {
        // SAFETY: raw is a link
        let rc = unsafe { nfmeta_link_check(self.raw) };
        if rc == -code::ECLOSING {
            return Ok(false);
        }
        check(rc).map(|_| true)
    }

    /// Packets, up to BURST; they go back when the burst is dropped.
    #[inline]
    pub fn recv_burst(&self) -> Burst<'_> {
        let mut burst = Burst {
            link: self,
            mbufs: [ptr::null_mut(); BURST],
            how: Default::default(),
            n: 0,
        };
        // SAFETY: there is room for BURST; NULL: no records wanted
        let n = unsafe {
            nfmeta_recv_burst(
                self.raw,
                burst.mbufs.as_mut_ptr(),
                ptr::null_mut(),
                BURST as u16,
            )
        };
        burst.n = usize::from(n);
        if self.field.placement != abi::HEADROOM {
            for m in &burst.mbufs[..burst.n] {
                prefetch(m.wrapping_add(self.field.offset.into()));
            }
        }
        burst
    }

    /// Says which messages this NF wants; SNAPSHOT and RESET come with any.
    pub fn subscribe(&self, kinds: &[u8]) -> Result<(), Error> {
        let types = kinds.iter().fold(0, |types, kind| types | 1 << (kind & 63));
        // SAFETY: raw is a link
        check(unsafe { nfmeta_flow_subscribe(self.raw, types) }).map(|_| ())
    }

    /// The next message whose turn it is. After every burst, until there is none.
    pub fn flow_next(&mut self) -> Result<Option<Message<'_>>, Error> {
        let mut batch = ptr::null();
        loop {
            // SAFETY: raw is a link
            let rc = unsafe { nfmeta_flow_next(self.raw, &mut batch) };
            if rc == -code::EMESSAGE {
                self.refused += 1;
                continue;
            }
            if check(rc)? == 0 {
                return Ok(None);
            }
            // SAFETY: a message has a header, and what that says behind it; it stays
            // until the next call, which the borrow of self forbids
            let data = unsafe {
                let header = slice::from_raw_parts(batch, abi::HEADER_BYTES);
                abi::message_length(header).map(|length| slice::from_raw_parts(batch, length))
            };
            match data.and_then(|data| abi::parse_message(data, false)) {
                Ok(Parsed::Deliver(_, message)) => return Ok(Some(message)),
                Ok(_) => {}
                Err(_) => self.refused += 1,
            }
        }
    }

    /// Sends verdicts, up to 85. Ok(false): there is no room now, try again later.
    pub fn reply(&self, verdicts: &[Verdict]) -> Result<bool, Error> {
        let entries: Vec<u8> = verdicts.iter().flat_map(|v| v.put()).collect();
        // SAFETY: so many entries are there
        let rc = unsafe {
            nfmeta_flow_reply(
                self.raw,
                abi::VERDICT,
                entries.as_ptr().cast(),
                verdicts.len() as u16,
            )
        };
        if rc == -code::EAGAIN {
            return Ok(false);
        }
        check(rc).map(|_| true)
    }

    /// What the library counted: name of the state, gaps, stale messages.
    pub fn flow_stats(&self) -> Result<(&'static str, u64, u64), Error> {
        let mut s = FlowStats {
            sz: std::mem::size_of::<FlowStats>() as u32,
            ..Default::default()
        };
        // SAFETY: sz says how much room there is
        check(unsafe { nfmeta_flow_stats(self.raw, self.queue, &mut s) })?;
        let sync = ["off", "lost", "loading", "synced"].get(s.state as usize);
        Ok((sync.unwrap_or(&"unknown"), s.gaps, s.stale))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // SAFETY: no burst is left, they borrow the link
        unsafe { nfmeta_link_detach(self.raw) };
    }
}

/// Asks for memory, to be there soon. Any address will do.
#[inline]
pub fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which never faults
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Packets that this NF holds; dropped, they are given back, each as was said.
pub struct Burst<'a> {
    link: &'a Link,
    mbufs: [Mbuf; BURST],
    how: [Cell<u8>; BURST], // FORWARD, which is 0, until it is set
    n: usize,
}

impl Burst<'_> {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.n
    }

    /// There are none now.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The packets, in the order received.
    #[inline]
    pub fn packets(&self) -> impl Iterator<Item = Packet<'_>> + '_ {
        let packets = self.mbufs[..self.n].iter().zip(&self.how);
        packets.map(move |(m, how)| Packet {
            mbuf: *m,
            how,
            link: self.link,
        })
    }
}

impl Drop for Burst<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: n packets that are held
        unsafe {
            nfmeta_return_burst(
                self.link.raw,
                self.mbufs.as_ptr(),
                self.how.as_ptr().cast(),
                self.n as u16,
            )
        };
    }
}

/// One packet of a burst.
#[derive(Clone, Copy)]
pub struct Packet<'a> {
    mbuf: Mbuf,
    how: &'a Cell<u8>,
    link: &'a Link,
}

impl<'a> Packet<'a> {
    /// What is to happen to it: FORWARD, if nothing is said.
    pub fn set(&self, how: u8) {
        self.how.set(how);
    }

    /// A field of the mbuf.
    #[inline]
    fn get<T>(&self, at: usize) -> T {
        // SAFETY: the link says that this field is there; the packet is held
        unsafe { self.mbuf.add(at).cast::<T>().read_unaligned() }
    }

    /// Bytes in all segments.
    #[inline]
    pub fn length(&self) -> u32 {
        self.get(self.link.mbuf.pkt_len)
    }

    /// The record, read where it lies.
    #[inline]
    pub fn record(&self) -> Option<Record<'a>> {
        let f = &self.link.field;
        let layout = &self.link.mbuf;
        if self.get::<u64>(layout.ol_flags) & f.flag == 0 {
            return None;
        }
        let base = if f.placement == abi::HEADROOM {
            self.get::<Mbuf>(layout.buf_addr)
        } else {
            self.mbuf
        };
        // SAFETY: the link says that record and seal are there
        let (place, seal) = unsafe {
            let seal = base.add(f.seal_offset.into());
            (
                slice::from_raw_parts(base.add(f.offset.into()), f.size.into()),
                match f.placement {
                    abi::HEADROOM => seal.cast::<u32>().read_unaligned(),
                    _ => seal.cast::<u16>().read_unaligned().into(),
                },
            )
        };
        f.read(place, seal, self.get(layout.data_off), self.length())
    }

    /// Data of the first segment.
    #[inline]
    pub fn first(&self) -> &'a [u8] {
        let layout = &self.link.mbuf;
        let data = self
            .get::<Mbuf>(layout.buf_addr)
            .wrapping_add(self.get::<u16>(layout.data_off).into());
        // SAFETY: so DPDK says where a segment's bytes are
        unsafe { slice::from_raw_parts(data, self.get::<u16>(layout.data_len).into()) }
    }

    /// The segments' bytes, one after the other.
    pub fn segments(&self) -> impl Iterator<Item = &'a [u8]> + 'a {
        let next = self.link.mbuf.next;
        let after = move |p: &Packet<'a>| {
            let mbuf: Mbuf = p.get(next);
            (!mbuf.is_null()).then(|| Packet { mbuf, ..*p })
        };
        std::iter::successors(Some(*self), after).map(|p| p.first())
    }

    /// One byte, if the packet has it.
    #[inline]
    pub fn byte(&self, at: u16) -> Option<u8> {
        let at = usize::from(at);
        match self.first().get(at) {
            Some(byte) => Some(*byte),
            None if at >= self.length() as usize => None,
            None => self.later_byte(at),
        }
    }

    #[cold]
    fn later_byte(&self, mut at: usize) -> Option<u8> {
        for segment in self.segments() {
            match segment.get(at) {
                Some(byte) => return Some(*byte),
                None => at -= segment.len(),
            }
        }
        None
    }
}
