// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors

// Package abi reads the bytes that processes share, by bindings-spec/README.md alone.
// Nothing in here calls C or touches memory that it was not handed.
package abi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
)

const (
	Major = 1
	None  = 0xffff // an offset: there is no such header
)

// Flags of a record, section 3.
const (
	L2Valid = 1 << iota
	L3Valid
	L4Valid
	L3CsumGood
	L3CsumBad
	L4CsumGood
	L4CsumBad
	FragFirst
	FragLater
	FlowKnown
	FlowNew
	FlowReverse
	TunnelOuter
)

// Dispositions, section 7.
const (
	Forward  = 0
	Drop     = 1
	Backward = 2
)

// Actions and verdicts.
const (
	ActionNone = iota
	ActionForward
	ActionDrop
	ActionInspect
	ActionShunt
)

// Placements, section 5.
const (
	Dynfield = 1 + iota
	Udata64
	Headroom

	HeadroomRoom = 64
)

// Carriers and messages, section 8.
const (
	CarrierRing = 1 + iota
	CarrierInband
	CarrierTable
)

const (
	New = 1 + iota
	Update
	Delete
	Counters
	Snapshot
	Reset
	Heartbeat
)

const (
	Verdict = 16 + iota
	Load
	Resync
	Ack
)

const (
	Optional = 0x80 // bit of a type: who does not know it skips the message

	First = 0x01
	Last  = 0x02

	Magic       = 0x314c464e
	HeaderBytes = 40
	EntryBytes  = 2048
)

var le = binary.LittleEndian

// ---- the record, sections 2 to 5 ----

// Record is a record where it lies: 8, 16, 32 or 64 bytes; nil: none. Fields that are
// not there read as nothing.
type Record []byte

func (r Record) u8(at int) uint8 {
	if len(r) <= at {
		return 0
	}
	return r[at]
}

func (r Record) u16(at int, none uint16) uint16 {
	if len(r) < at+2 {
		return none
	}
	return le.Uint16(r[at:])
}

func (r Record) u32(at int) uint32 {
	if len(r) < at+4 {
		return 0
	}
	return le.Uint32(r[at:])
}

func (r Record) ABI() uint8         { return r.u8(0) }
func (r Record) Size() uint8        { return r.u8(1) }
func (r Record) Flags() uint16      { return r.u16(2, 0) }
func (r Record) FlowID() uint32     { return r.u32(4) }
func (r Record) L3Off() uint16      { return r.u16(8, None) }
func (r Record) L4Off() uint16      { return r.u16(10, None) }
func (r Record) PayloadOff() uint16 { return r.u16(12, None) }
func (r Record) FlowGen() uint16    { return r.u16(14, 0) }
func (r Record) AppID() uint32      { return r.u32(16) }
func (r Record) Port() uint16       { return r.u16(20, 0) }
func (r Record) VlanOuter() uint16  { return r.u16(22, 0) }
func (r Record) VlanInner() uint16  { return r.u16(24, 0) }
func (r Record) VlanCount() uint8   { return r.u8(26) }
func (r Record) Action() uint8      { return r.u8(27) }
func (r Record) Tenant() uint32     { return r.u32(40) }
func (r Record) Chain() uint8       { return r.u8(44) }
func (r Record) Tunnels() uint8     { return r.u8(45) }

// HasCore says whether there are offsets and the flow's generation.
func (r Record) HasCore() bool { return len(r) >= 16 }

func (r Record) Timestamp() uint64 {
	if len(r) < 40 {
		return 0
	}
	return le.Uint64(r[32:])
}

// User returns the user's own 16 bytes, or nil.
func (r Record) User() []byte {
	if len(r) < 64 {
		return nil
	}
	return r[48:64]
}

// Field says where the records of a link's packets are.
type Field struct {
	Flag, Key          uint64
	Offset, SealOffset uint16
	Placement, Size    uint8
}

// ParseField reads its 32 bytes in the link.
func ParseField(d []byte) Field {
	return Field{le.Uint64(d), le.Uint64(d[8:]), le.Uint16(d[16:]), le.Uint16(d[18:]), d[20], d[21]}
}

var turns = [8]int{0, 7, 13, 19, 29, 37, 43, 53}

// The seal that these bytes of record want; start and length: of the packet.
func (f *Field) seal(place []byte, start uint16, length uint32) uint32 {
	x := f.Key
	for i := 0; i < len(place)/8; i++ {
		word := le.Uint64(place[8*i:])
		if f.Placement == Headroom && i == 3 {
			word &= 0xffffffff // the seal's own place
		}
		x ^= bits.RotateLeft64(word, turns[i])
	}
	x ^= x >> 32
	if f.Placement != Headroom {
		x ^= x >> 16
	}
	x ^= uint64((uint32(start) + length*0x9e36) & 0xffff)
	if f.Placement != Headroom {
		x &= 0xffff
	}
	return uint32(x)
}

// Read returns the record, or nil if there is none. place: the bytes of Size; seal: the
// number that lies in the seal's place. (ol_flags had the flag: that was asked before.)
func (f *Field) Read(place []byte, seal uint32, start uint16, length uint32) Record {
	if f.Placement == Headroom && start < HeadroomRoom {
		return nil
	}
	size := int(place[1])
	if place[0] != Major || size > len(place) || f.seal(place, start, length) != seal {
		return nil
	}
	switch size {
	case 8, 16, 32, 64:
		return place[:size:size]
	}
	return nil
}

// ---- the handshake of a link, section 7 ----

// Refused says why a reader refuses a handshake or a table: the name of the error.
type Refused string

func (r Refused) Error() string { return "the link is refused: " + string(r) }

const (
	EInval       Refused = "EINVAL"
	EDPDKVersion Refused = "NFMETA_EDPDKVERSION"
	EABI         Refused = "NFMETA_EABI"
	EMbuf        Refused = "NFMETA_EMBUF"
	EFeature     Refused = "NFMETA_EFEATURE"
	EFormat      Refused = "NFMETA_EFORMAT"
	EClosing     Refused = "NFMETA_ECLOSING"
)

// ErrAgain: the link is not ready yet.
var ErrAgain = errors.New("the link is not ready yet")

// Handshake is what a primary publishes of a link.
type Handshake struct {
	AbiMinor                                             uint16
	Size                                                 uint32
	FeaturesRequired, FeaturesOffered                    uint64
	Instance, State                                      uint32
	QueueSize, QueueOffset                               uint16
	WhenFull                                             uint8
	RingSize, Blanks                                     uint32
	Field                                                Field
	Name, LibraryVersion, DPDKVersion, PoolName, PoolOps string
	MbufLayout                                           [16]uint16
	FlowTable                                            string
	FlowRing                                             uint32
	FlowCarrier                                          uint8
	Heartbeat                                            uint64
	Queues                                               []Queue
}

// Queue has the names of the rings of a queue.
type Queue struct{ Down, Up, Blank, FlowDown, FlowUp string }

// names reads names; ok turns false at one without end.
type names struct {
	data []byte
	ok   bool
}

func (n *names) at(i int) string {
	end := bytes.IndexByte(n.data[i:i+32], 0)
	if end < 0 {
		n.ok = false
		return ""
	}
	return string(n.data[i : i+end])
}

// ParseHandshake reads the memzone of a link. ownDPDK and ownLayout are this side's; ""
// and nil if it has no own ones.
func ParseHandshake(d []byte, name, ownDPDK string, ownLayout *[16]uint16) (*Handshake, error) {
	const magic = 0x314b4e4c464e2d31
	if len(d) < 512 {
		return nil, EFormat
	}
	s := &Handshake{AbiMinor: le.Uint16(d[10:]), Size: le.Uint32(d[12:]), FeaturesRequired: le.Uint64(d[16:])}
	switch {
	case le.Uint64(d) == 0:
		return nil, ErrAgain
	case le.Uint64(d) != magic:
		return nil, EFormat
	case le.Uint16(d[8:]) != Major:
		return nil, EABI
	case s.Size < 512 || uint64(s.Size) > uint64(len(d)):
		return nil, EFormat
	case s.FeaturesRequired&^1 != 0:
		return nil, EFeature
	}
	n := names{d, true}
	s.Name, s.LibraryVersion, s.DPDKVersion = n.at(88), n.at(120), n.at(152)
	s.PoolName, s.PoolOps = n.at(184), n.at(216)
	if s.AbiMinor >= 1 {
		s.FlowTable, s.FlowRing, s.FlowCarrier = n.at(280), le.Uint32(d[312:]), d[316]
	}
	for i := range s.MbufLayout {
		s.MbufLayout[i] = le.Uint16(d[248+2*i:])
	}
	switch {
	case !n.ok:
		return nil, EFormat
	case ownDPDK != "" && s.DPDKVersion != ownDPDK:
		return nil, EDPDKVersion
	case ownLayout != nil && s.MbufLayout != *ownLayout:
		return nil, EMbuf
	}
	s.FeaturesOffered, s.Instance, s.State = le.Uint64(d[24:]), le.Uint32(d[32:]), le.Uint32(d[36:])
	count := int(le.Uint16(d[40:]))
	s.QueueSize, s.QueueOffset, s.WhenFull = le.Uint16(d[42:]), le.Uint16(d[44:]), d[46]
	s.RingSize, s.Blanks, s.Field = le.Uint32(d[48:]), le.Uint32(d[52:]), ParseField(d[56:])
	s.Heartbeat = le.Uint64(d[384:])
	if s.Name != name || !s.isPossible() || count < 1 || count > 64 ||
		int(s.QueueOffset)+count*int(s.QueueSize) > int(s.Size) {
		return nil, EFormat
	}
	for i := 0; i < count; i++ {
		at := int(s.QueueOffset) + i*int(s.QueueSize)
		q := Queue{Down: n.at(at), Up: n.at(at + 32), Blank: n.at(at + 64)}
		if s.FlowCarrier != 0 {
			q.FlowDown, q.FlowUp = n.at(at+256), n.at(at+288)
		}
		ringUp := s.FlowCarrier == CarrierRing || s.FlowCarrier == CarrierTable
		if !n.ok || q.Down == "" || q.Up == "" || (q.Blank != "") != (s.Blanks != 0) ||
			(q.FlowDown != "") != (s.FlowCarrier == CarrierRing) || (q.FlowUp != "") != ringUp {
			return nil, EFormat
		}
		s.Queues = append(s.Queues, q)
	}
	return s, nil
}

func (s *Handshake) isPossible() bool {
	f := &s.Field
	room, sealSize := int(s.MbufLayout[0]), 2
	if f.Placement == Headroom {
		room, sealSize = HeadroomRoom, 4
	}
	least := uint16(256)
	if s.FlowCarrier != 0 {
		least = 512
	}
	ring := s.FlowCarrier == CarrierRing || s.FlowCarrier == CarrierTable
	return f.Placement >= Dynfield && f.Placement <= Headroom &&
		f.Size >= 8 && f.Size <= 64 && f.Size&(f.Size-1) == 0 && f.Offset%8 == 0 &&
		int(f.Offset)+int(f.Size) <= room && int(f.SealOffset)+sealSize <= room &&
		bits.OnesCount64(f.Flag) == 1 &&
		s.Instance != 0 && s.WhenFull >= 1 && s.WhenFull <= 3 &&
		s.RingSize >= 64 && s.RingSize <= 65536 && s.RingSize&(s.RingSize-1) == 0 &&
		s.Blanks <= 1024 && s.FlowCarrier <= CarrierTable &&
		(!ring || (s.FlowRing >= 512 && s.FlowRing <= 1<<20)) && (ring || s.FlowRing == 0) &&
		(s.FlowCarrier != CarrierInband || s.Blanks != 0) &&
		(s.FlowCarrier != CarrierTable || s.FlowTable != "") &&
		s.QueueOffset >= 512 && s.QueueOffset%64 == 0 && s.QueueSize >= least && s.QueueSize%64 == 0
}

// Ready says whether an NF may attach to this queue; ErrAgain: not yet.
func (s *Handshake) Ready(queue int) error {
	switch {
	case queue >= len(s.Queues):
		return EInval
	case s.State == 0:
		return ErrAgain
	case s.State == 2:
		return EClosing
	case s.State != 1:
		return EFormat
	}
	return nil
}

// ---- the canonical flow key, section 6 ----

// Behind all extension headers; of a later fragment what its header names.
func ipv6Protocol(packet []byte, l3 int) uint8 {
	proto, at := packet[l3+6], l3+40
	for i := 0; i < 16; i++ {
		if len(packet) < at+8 {
			return proto
		}
		head := packet[at : at+8]
		switch proto {
		case 44:
			at += 8
		case 51:
			at += (int(head[1]) + 2) * 4
		case 0, 43, 60, 135, 139, 140:
			at += (int(head[1]) + 1) * 8
		default:
			return proto
		}
		if len(packet) < at {
			return proto
		}
		later := proto == 44 && (head[2] != 0 || head[3]&0xf8 != 0)
		proto = head[0]
		if later {
			return proto
		}
	}
	return proto
}

// FlowKey returns the key of a packet, and whether the packet is reverse; the record says
// where the headers are. vlans: ids belong to the key; stripped: tags that a device took
// off.
func FlowKey(packet []byte, r Record, vlans bool, stripped []uint16) (key [48]byte, reverse bool) {
	if r.L3Off() == None {
		return
	}
	l3, l4 := int(r.L3Off()), int(r.L4Off())
	version := packet[l3] >> 4
	first, size := l3+12, 4
	proto := packet[l3+9]
	if version == 6 {
		first, size = l3+8, 16
		proto = ipv6Protocol(packet, l3)
	}
	ports := make([]byte, 4)
	if l4 != None {
		switch proto {
		case 6, 17, 132:
			copy(ports, packet[l4:])
		case 1, 58:
			t := packet[l4]
			if (proto == 1 && (t == 0 || t == 8)) || (proto == 58 && (t == 128 || t == 129)) {
				if id := packet[l4+4:]; len(id) >= 2 {
					copy(ports, id[:2])
					copy(ports[2:], id[:2])
				}
			}
		}
	}
	a := append(packet[first:first+size:first+size], ports[:2]...)
	b := append(packet[first+size:first+2*size:first+2*size], ports[2:]...)
	if reverse = bytes.Compare(a, b) > 0; reverse {
		a, b = b, a
	}
	copy(key[:16], a[:size])
	copy(key[16:32], b[:size])
	copy(key[32:], a[size:])
	copy(key[34:], b[size:])
	if vlans {
		tags := stripped[:len(stripped):len(stripped)]
		for at := 12; ; at += 4 {
			tpid := binary.BigEndian.Uint16(packet[at:])
			if tpid != 0x8100 && tpid != 0x88a8 && tpid != 0x9100 {
				break
			}
			tags = append(tags, binary.BigEndian.Uint16(packet[at+2:]))
		}
		for i := 0; i < len(tags) && i < 2; i++ {
			binary.BigEndian.PutUint16(key[36+2*i:], tags[i]&0xfff)
		}
	}
	key[40], key[41] = proto, version
	if r.Flags()&FragLater != 0 {
		key[42] = 1
	}
	return
}

// ---- messages of flow state, section 8 ----

type Header struct {
	Magic                         uint32
	ABI, Type, Flags              uint8
	Count, EntrySize, Source, Ask uint16
	Instance, Epoch               uint32
	Seq, Barrier                  uint64
}

type StateEntry struct {
	FlowID  uint32
	FlowGen uint16
	Action  uint8
	AppID   uint32
}

type DeleteEntry struct {
	FlowID          uint32
	FlowGen, Reason uint16
}

// CountersEntry: along the direction of the flow's first packet, against it.
type CountersEntry struct {
	FlowID         uint32
	FlowGen        uint16
	Packets, Bytes [2]uint64
}

type VerdictEntry struct {
	FlowID         uint32
	FlowGen        uint16
	Verdict, Flags uint8
	After, TTL     uint32
	Who, Why       uint16
}

type LoadEntry struct {
	Busy, Flows uint32
	Overload    uint64
}

type MarkEntry struct{ Seq uint64 }

// Bytes that are known here; there may be more.
const (
	stateSize, deleteSize, countersSize = 16, 8, 40
	VerdictSize, loadSize, markSize     = 24, 16, 8
)

// Message is a message where it lies.
type Message struct {
	Header
	body []byte
}

func (m *Message) entry(i int) []byte { return m.body[i*int(m.EntrySize):] }

// State returns entry i of NEW, UPDATE or SNAPSHOT.
func (m *Message) State(i int) StateEntry {
	d := m.entry(i)
	return StateEntry{le.Uint32(d), le.Uint16(d[4:]), d[6], le.Uint32(d[8:])}
}

// Delete returns entry i of DELETE.
func (m *Message) Delete(i int) DeleteEntry {
	d := m.entry(i)
	return DeleteEntry{le.Uint32(d), le.Uint16(d[4:]), le.Uint16(d[6:])}
}

// Counters returns entry i of COUNTERS.
func (m *Message) Counters(i int) CountersEntry {
	d := m.entry(i)
	return CountersEntry{
		le.Uint32(d), le.Uint16(d[4:]),
		[2]uint64{le.Uint64(d[8:]), le.Uint64(d[16:])},
		[2]uint64{le.Uint64(d[24:]), le.Uint64(d[32:])},
	}
}

// Verdict returns entry i of VERDICT.
func (m *Message) Verdict(i int) VerdictEntry {
	d := m.entry(i)
	return VerdictEntry{
		le.Uint32(d), le.Uint16(d[4:]), d[6], d[7], le.Uint32(d[8:]), le.Uint32(d[12:]),
		le.Uint16(d[16:]), le.Uint16(d[18:]),
	}
}

// Load returns entry i of LOAD.
func (m *Message) Load(i int) LoadEntry {
	d := m.entry(i)
	return LoadEntry{le.Uint32(d), le.Uint32(d[4:]), le.Uint64(d[8:])}
}

// Mark returns entry i of RESYNC or ACK.
func (m *Message) Mark(i int) MarkEntry { return MarkEntry{le.Uint64(m.entry(i))} }

// Put appends the bytes of the entry.
func (v VerdictEntry) Put(to []byte) []byte {
	var d [VerdictSize]byte
	le.PutUint32(d[0:], v.FlowID)
	le.PutUint16(d[4:], v.FlowGen)
	d[6], d[7] = v.Verdict, v.Flags
	le.PutUint32(d[8:], v.After)
	le.PutUint32(d[12:], v.TTL)
	le.PutUint16(d[16:], v.Who)
	le.PutUint16(d[18:], v.Why)
	return append(to, d[:]...)
}

// Not a message, or one that must be understood and is not known here.
var (
	ErrMagic     = errors.New("malformed message: magic or ABI")
	ErrEntrySize = errors.New("malformed message: size of entries")
	ErrTooLong   = errors.New("malformed message: too long")
	ErrType      = errors.New("malformed message: its type is not known")
	ErrDirection = errors.New("malformed message: wrong direction")
	ErrCount     = errors.New("malformed message: number of entries")
	ErrFlags     = errors.New("malformed message: FIRST or LAST")
)

// ErrMore: the message is longer than what is there.
var ErrMore = errors.New("the rest of the message is not there")

func parseHeader(d []byte) Header {
	return Header{
		le.Uint32(d), d[4], d[5], d[6], le.Uint16(d[8:]), le.Uint16(d[10:]), le.Uint16(d[12:]),
		le.Uint16(d[14:]), le.Uint32(d[16:]), le.Uint32(d[20:]), le.Uint64(d[24:]), le.Uint64(d[32:]),
	}
}

// MessageLength returns the bytes of the message with this header.
func MessageLength(header []byte) (int, error) {
	if len(header) < HeaderBytes {
		return 0, ErrMore
	}
	h := parseHeader(header)
	length := int(h.Count) * int(h.EntrySize)
	switch {
	case h.Magic != Magic || h.ABI != Major:
		return 0, ErrMagic
	case h.EntrySize%8 != 0 || (h.Count != 0 && h.EntrySize == 0):
		return 0, ErrEntrySize
	case length > EntryBytes:
		return 0, ErrTooLong
	}
	return HeaderBytes + length, nil
}

type kind struct {
	up          bool
	size        uint16
	least, most uint16
}

var kinds = map[uint8]kind{
	New:       {false, stateSize, 1, 128},
	Update:    {false, stateSize, 1, 128},
	Delete:    {false, deleteSize, 1, 256},
	Counters:  {false, countersSize, 1, 51},
	Snapshot:  {false, stateSize, 0, 128},
	Reset:     {},
	Heartbeat: {},
	Verdict:   {true, VerdictSize, 1, 85},
	Load:      {true, loadSize, 1, 1},
	Resync:    {true, markSize, 1, 1},
	Ack:       {true, markSize, 1, 1},
}

// ParseMessage reads the first message in data, and says how long it is; nil without an
// error: a message to skip. up: an NF sent it.
func ParseMessage(data []byte, up bool) (*Message, int, error) {
	length, err := MessageLength(data)
	if err != nil {
		return nil, 0, err
	}
	h := parseHeader(data)
	k, known := kinds[h.Type]
	switch {
	case !known && h.Type&Optional == 0:
		return nil, 0, ErrType
	case !known:
	case k.up != up:
		return nil, 0, ErrDirection
	case h.Count < k.least || h.Count > k.most:
		return nil, 0, ErrCount
	case h.Count != 0 && h.EntrySize < k.size:
		return nil, 0, ErrEntrySize
	case h.Flags&(First|Last) != 0 && h.Type != Snapshot:
		return nil, 0, ErrFlags
	}
	if len(data) < length {
		return nil, 0, ErrMore
	}
	if !known {
		return nil, length, nil
	}
	return &Message{h, data[HeaderBytes:length]}, length, nil
}

// Newer says whether generation a is newer than b. They count up and wrap.
func Newer(a, b uint16) bool { return int16(a-b) > 0 }

// ---- the shared table, section 10 ----

// TableFlow is an entry that was copied whole.
type TableFlow struct {
	Seq          uint32
	FlowGen      uint16
	State, Proto uint8
	AppID        uint32
	PortA, PortB uint16
	AddrA, AddrB [16]byte
	FromA, FromB Counter
}

// Counter is packets << 36 | bytes.
type Counter uint64

func (c Counter) Packets() uint64 { return uint64(c) >> 36 }
func (c Counter) Bytes() uint64   { return uint64(c) & (1<<36 - 1) }

// ParseTableFlow reads an entry of 64 bytes.
func ParseTableFlow(d []byte) (f TableFlow) {
	f.Seq, f.FlowGen, f.State, f.Proto = le.Uint32(d), le.Uint16(d[4:]), d[6], d[7]
	f.AppID = le.Uint32(d[8:])
	f.PortA, f.PortB = binary.BigEndian.Uint16(d[12:]), binary.BigEndian.Uint16(d[14:])
	copy(f.AddrA[:], d[16:])
	copy(f.AddrB[:], d[32:])
	f.FromA, f.FromB = Counter(le.Uint64(d[48:])), Counter(le.Uint64(d[56:]))
	return
}

func (f *TableFlow) Phase() uint8  { return f.State & 7 }
func (f *TableFlow) Reverse() bool { return f.State&8 != 0 }
func (f *TableFlow) Action() uint8 { return f.State >> 4 }

// Key returns the flow's canonical key, without VLAN ids and tenant.
func (f *TableFlow) Key() (key [48]byte) {
	mapped := [12]byte{10: 0xff, 11: 0xff}
	key[41] = 6
	a, b := f.AddrA[:], f.AddrB[:]
	if bytes.HasPrefix(a, mapped[:]) && bytes.HasPrefix(b, mapped[:]) {
		key[41] = 4
		a, b = a[12:], b[12:]
	}
	copy(key[:], a)
	copy(key[16:], b)
	binary.BigEndian.PutUint16(key[32:], f.PortA)
	binary.BigEndian.PutUint16(key[34:], f.PortB)
	key[40] = f.Proto
	return
}

// ParseTableHeader checks the header of a table in a memzone of so many bytes; where the
// entries begin, and how many there are.
func ParseTableHeader(d []byte, length uint64) (entryOffset uint16, flows uint32, err error) {
	const magic = 0x314c42544d464e2d
	if length < 64 || len(d) < 64 || le.Uint64(d) != magic {
		return 0, 0, EFormat
	}
	if le.Uint16(d[8:]) != Major {
		return 0, 0, EABI
	}
	entryOffset, flows = le.Uint16(d[14:]), le.Uint32(d[16:])
	if le.Uint16(d[12:]) != 64 || entryOffset < 64 || entryOffset%64 != 0 || flows < 1 ||
		flows > 1<<26 || le.Uint32(d[20:]) == 0 || uint64(entryOffset)+uint64(flows)*64 > length {
		return 0, 0, EFormat
	}
	return
}
