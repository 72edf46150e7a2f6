// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors

// Package nfmeta serves a queue of a link, by the C functions of libnfmeta. C moves
// packets and messages; what is in them is read from memory here.
package nfmeta

/*
#cgo LDFLAGS: -lnfmeta
#include <stdint.h>
#include <stdlib.h>

// Declared here once more: no header of libnfmeta (or DPDK) is needed.
struct eal_opts {
	uint32_t sz, timeout_ms;
	const char *file_prefix, *log_file;
};
struct flow_stats {
	uint32_t sz, state;
	uint64_t sent, lost, seen, acked, replies, collected, gaps, stale, refused;
	uint32_t backlog, reserved;
};
const char *nfmeta_error(void);
const char *nfmeta_version(void);
int nfmeta_eal_attach(const struct eal_opts *);
void nfmeta_eal_detach(void);
int nfmeta_link_attach(const char *name, uint16_t queue, uint32_t timeout_ms, void **link);
int nfmeta_link_check(void *link);
int nfmeta_link_detach(void *link);
const void *nfmeta_link_shared(const void *link);
uint16_t nfmeta_recv_burst(void *link, void **pkts, void *recs, uint16_t n);
uint16_t nfmeta_return_burst(void *link, void *const *pkts, const uint8_t *how, uint16_t n);
int nfmeta_flow_subscribe(void *link, uint64_t types);
int nfmeta_flow_next(void *link, const void **batch);
int nfmeta_flow_reply(void *link, uint8_t type, const void *entries, uint16_t n);
int nfmeta_flow_stats(const void *link, uint16_t queue, struct flow_stats *);
*/
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"time"
	"unsafe"

	"nfmeta.example/go/abi"
)

// Burst is how many packets come at a time at most.
const Burst = 32

// Error is a refusal of the library: its sentence, and the positive number.
type Error struct {
	Code int
	text string
}

func (e *Error) Error() string { return e.text }

// Numbers of errors (bindings-spec, section 11).
const (
	eagain       = 11
	enoprimary   = 2001
	eprimarydead = 2002
	enolink      = 2012
	eclosing     = 2016
	eprimarygone = 2017
	emessage     = 2020
	efenced      = 2023
)

// IsGone says whether the upfront NF died or has cut this NF off: end the process.
func IsGone(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code == eprimarygone || e.Code == efenced)
}

// The sentence is the calling thread's: Attach has locked the goroutine to it.
func check(rc C.int) error {
	if rc >= 0 {
		return nil
	}
	return &Error{int(-rc), C.GoString(C.nfmeta_error())}
}

// Version of the library.
func Version() string { return C.GoString(C.nfmeta_version()) }

// Where the fields of struct rte_mbuf are, as the link says (section 7).
type layout struct {
	bufAddr, dataOff, olFlags, pktLen, dataLen, next uintptr
}

// Link is a queue of a link: one goroutine, one per process.
type Link struct {
	link    unsafe.Pointer
	queue   uint16
	field   abi.Field
	mbuf    layout
	pkts    [Burst]unsafe.Pointer
	how     [Burst]uint8
	packets [Burst]Packet
	held    int

	Carrier uint8  // of flow state, abi.Carrier…; 0: none
	Refused uint64 // messages that were none; the library asked for a snapshot
}

// Options of Attach.
type Options struct {
	Link       string
	Queue      uint16
	FilePrefix string
	Timeout    time.Duration
}

// Try again in slices until the time is over, or the caller has enough.
func patiently(ctx context.Context, end time.Time, attempt func(ms C.uint32_t) C.int, again ...int) error {
	const slice = 200 * time.Millisecond
	for {
		left := time.Until(end)
		if left < 0 {
			left = 0
		}
		ms := left
		if ms > slice {
			ms = slice
		}
		rc := attempt(C.uint32_t(ms.Milliseconds()))
		if rc >= 0 {
			return nil
		}
		wait := false
		for _, code := range again {
			wait = wait || int(-rc) == code
		}
		if !wait || left == 0 || ctx.Err() != nil {
			return check(rc)
		}
	}
}

// Attach attaches to DPDK's primary, then to the queue. It locks the goroutine to its
// thread: the library knows threads, and keeps each one's last error.
func Attach(ctx context.Context, o Options) (*Link, error) {
	runtime.LockOSThread()
	l := &Link{queue: o.Queue}
	end := time.Now().Add(o.Timeout)
	opts := C.struct_eal_opts{sz: C.sizeof_struct_eal_opts, file_prefix: C.CString(o.FilePrefix)}
	name := C.CString(o.Link)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(opts.file_prefix))
	err := patiently(ctx, end, func(ms C.uint32_t) C.int {
		opts.timeout_ms = ms
		return C.nfmeta_eal_attach(&opts)
	}, enoprimary, eprimarydead)
	if err != nil {
		return nil, err
	}
	err = patiently(ctx, end, func(ms C.uint32_t) C.int {
		return C.nfmeta_link_attach(name, C.uint16_t(o.Queue), ms, &l.link)
	}, enolink)
	if err != nil {
		C.nfmeta_eal_detach()
		return nil, err
	}
	at := (*byte)(C.nfmeta_link_shared(l.link))
	size := binary.LittleEndian.Uint32(unsafe.Slice(at, 16)[12:])
	shared, err := abi.ParseHandshake(unsafe.Slice(at, size), o.Link, "", nil)
	if err != nil {
		l.Close()
		return nil, err
	}
	m := &shared.MbufLayout
	l.mbuf = layout{
		uintptr(m[1]), uintptr(m[2]), uintptr(m[6]), uintptr(m[8]), uintptr(m[9]), uintptr(m[14]),
	}
	l.field, l.Carrier = shared.Field, shared.FlowCarrier
	return l, nil
}

// Close gives back what is held, and leaves the queue.
func (l *Link) Close() error {
	if l.link == nil {
		return nil
	}
	if _, err := l.Check(); err == nil {
		l.ReturnBurst(l.packets[:l.held])
	}
	err := check(C.nfmeta_link_detach(l.link))
	l.link = nil
	C.nfmeta_eal_detach()
	runtime.UnlockOSThread()
	return err
}

// Check says whether the link stands: false when it closes. A system call: not per burst.
func (l *Link) Check() (bool, error) {
	rc := C.nfmeta_link_check(l.link)
	if rc == -eclosing {
		return false, nil
	}
	return rc == 0, check(rc)
}

// ---- packets ----

// RecvBurst returns packets, up to Burst of them; give them back with ReturnBurst before
// the next call.
func (l *Link) RecvBurst() []Packet {
	l.held = int(C.nfmeta_recv_burst(l.link, &l.pkts[0], nil, Burst))
	for i := range l.packets[:l.held] {
		l.packets[i] = Packet{mbuf: l.pkts[i], link: l, How: abi.Forward}
	}
	return l.packets[:l.held]
}

// ReturnBurst gives packets back, each as its How says.
func (l *Link) ReturnBurst(packets []Packet) {
	for i := range packets {
		l.pkts[i], l.how[i] = packets[i].mbuf, packets[i].How
	}
	C.nfmeta_return_burst(l.link, &l.pkts[0], (*C.uint8_t)(&l.how[0]), C.uint16_t(len(packets)))
	l.held = 0
}

// Packet is a packet that this NF holds.
type Packet struct {
	mbuf unsafe.Pointer
	link *Link
	How  uint8 // what is to happen to it
}

func (p *Packet) u16(at uintptr) uint16 { return *(*uint16)(unsafe.Add(p.mbuf, at)) }
func (p *Packet) ptr(at uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Add(p.mbuf, at))
}

// Length returns the bytes in all segments.
func (p *Packet) Length() uint32 { return *(*uint32)(unsafe.Add(p.mbuf, p.link.mbuf.pktLen)) }

// Record returns the record, read where it lies; nil: there is none.
func (p *Packet) Record() abi.Record {
	f, at := &p.link.field, &p.link.mbuf
	if *(*uint64)(unsafe.Add(p.mbuf, at.olFlags))&f.Flag == 0 {
		return nil
	}
	base := p.mbuf
	if f.Placement == abi.Headroom {
		base = p.ptr(at.bufAddr)
	}
	place := unsafe.Slice((*byte)(unsafe.Add(base, f.Offset)), f.Size)
	var seal uint32
	if sealAt := unsafe.Add(base, f.SealOffset); f.Placement == abi.Headroom {
		seal = *(*uint32)(sealAt)
	} else {
		seal = uint32(*(*uint16)(sealAt))
	}
	return f.Read(place, seal, p.u16(at.dataOff), p.Length())
}

// First returns the data of the first segment.
func (p *Packet) First() []byte {
	at := &p.link.mbuf
	return unsafe.Slice((*byte)(unsafe.Add(p.ptr(at.bufAddr), p.u16(at.dataOff))), p.u16(at.dataLen))
}

// Bytes returns a copy of the whole packet.
func (p *Packet) Bytes() []byte {
	data := make([]byte, 0, p.Length())
	for s := *p; s.mbuf != nil; s.mbuf = s.ptr(p.link.mbuf.next) {
		data = append(data, s.First()...)
	}
	return data
}

// Byte returns one byte; 0: the packet does not have it.
func (p *Packet) Byte(at uint16) uint8 {
	i := int(at)
	for s := *p; s.mbuf != nil && uint32(at) < p.Length(); s.mbuf = s.ptr(p.link.mbuf.next) {
		first := s.First()
		if i < len(first) {
			return first[i]
		}
		i -= len(first)
	}
	return 0
}

// ---- flow state ----

// Subscribe says which messages this NF wants; SNAPSHOT and RESET come with any.
func (l *Link) Subscribe(types ...uint8) error {
	var mask uint64
	for _, t := range types {
		mask |= 1 << (t & 63)
	}
	return check(C.nfmeta_flow_subscribe(l.link, C.uint64_t(mask)))
}

// FlowNext returns the next message whose turn it is, valid until the next call; nil:
// there is none. After every burst, until there is none.
func (l *Link) FlowNext() (*abi.Message, error) {
	for {
		var batch unsafe.Pointer
		rc := C.nfmeta_flow_next(l.link, &batch)
		if rc == -emessage {
			l.Refused++
			continue
		}
		if rc <= 0 {
			return nil, check(rc)
		}
		length, err := abi.MessageLength(unsafe.Slice((*byte)(batch), abi.HeaderBytes))
		var m *abi.Message
		if err == nil {
			m, _, err = abi.ParseMessage(unsafe.Slice((*byte)(batch), length), false)
		}
		if err != nil {
			l.Refused++
		} else if m != nil {
			return m, nil
		}
	}
}

// Reply sends verdicts, up to 85. False: there is no room now, try again later.
func (l *Link) Reply(verdicts []abi.VerdictEntry) (bool, error) {
	entries := make([]byte, 0, len(verdicts)*abi.VerdictSize)
	for _, v := range verdicts {
		entries = v.Put(entries)
	}
	rc := C.nfmeta_flow_reply(l.link, abi.Verdict, unsafe.Pointer(&entries[0]), C.uint16_t(len(verdicts)))
	if rc == -eagain {
		return false, nil
	}
	return rc == 0, check(rc)
}

// FlowStats is what the library counted.
type FlowStats struct {
	Sync        string // off, lost, loading or synced
	Gaps, Stale uint64
}

// FlowStats asks for it.
func (l *Link) FlowStats() (FlowStats, error) {
	s := C.struct_flow_stats{sz: C.sizeof_struct_flow_stats}
	err := check(C.nfmeta_flow_stats(l.link, C.uint16_t(l.queue), &s))
	sync := []string{"off", "lost", "loading", "synced"}
	if err != nil || int(s.state) >= len(sync) {
		return FlowStats{Sync: "unknown"}, err
	}
	return FlowStats{sync[s.state], uint64(s.gaps), uint64(s.stale)}, nil
}
