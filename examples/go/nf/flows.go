// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors

package main

import "nfmeta.example/go/abi"

const idsMax = 1 << 24 // ids beyond are not counted per flow

const (
	never = iota
	open
	ended // its generation tells late messages from those about the next flow
)

type flow struct {
	packets, bytes uint64
	generation     uint16
	mark           uint16
	state          uint8
	known          bool // the generation: by a message, or by a record that has one
	said           bool // a verdict
}

type flowCounts struct {
	Opened             uint64 `json:"opened"`
	Deleted            uint64 `json:"deleted"`
	Replaced           uint64 `json:"replaced"`
	NotInSnapshot      uint64 `json:"not_in_snapshot"`
	Reset              uint64 `json:"reset"`
	Open               uint64 `json:"open"`
	DeletesUnknown     uint64 `json:"deletes_unknown"`
	PacketsAfterDelete uint64 `json:"packets_after_delete"`
	Messages           uint64 `json:"messages"`
	Snapshots          uint64 `json:"snapshots"`
	Gaps               uint64 `json:"gaps"`
	Stale              uint64 `json:"stale"`
	Refused            uint64 `json:"refused"`
	VerdictsSent       uint64 `json:"verdicts_sent"`
	VerdictsSeen       uint64 `json:"verdicts_seen"`
	Sync               string `json:"sync"`
}

// flows by the upfront NF's id
type flows struct {
	byID  []flow
	mark  uint16 // snapshots that began
	count flowCounts
}

// nil: there is no room for such an id
func (s *flows) at(id uint32) *flow {
	if id >= idsMax {
		return nil
	}
	if n := int(id) + 1; n > len(s.byID) {
		s.byID = append(s.byID, make([]flow, n+4096-len(s.byID))...)
	}
	return &s.byID[id]
}

func (s *flows) open(f *flow, generation uint16, known bool) {
	*f = flow{generation: generation, known: known, mark: s.mark, state: open}
	s.count.Opened++
}

func (s *flows) replace(f *flow) {
	f.state = ended
	s.count.Replaced++
}

// packet returns the flow of a record; nil: it has ended, and this came too late.
func (s *flows) packet(r abi.Record) *flow {
	f := s.at(r.FlowID())
	if f == nil {
		return nil
	}
	// without one in the record, it is that of the flow that was told of
	generation := f.generation
	if r.HasCore() {
		generation = r.FlowGen()
	}
	switch {
	case f.state == open && (!f.known || f.generation == generation):
		f.mark = s.mark
		return f
	case f.state == open && abi.Newer(f.generation, generation),
		f.state == ended && !abi.Newer(generation, f.generation):
		s.count.PacketsAfterDelete++
		return nil
	case f.state == open:
		s.replace(f)
	}
	s.open(f, generation, r.HasCore())
	return f
}

func (s *flows) thereIs(e abi.StateEntry) {
	f := s.at(e.FlowID)
	if f == nil {
		return
	}
	if f.state == open && !f.known {
		f.generation, f.known = e.FlowGen, true
	}
	old := abi.Newer(f.generation, e.FlowGen) || (f.state == ended && f.generation == e.FlowGen)
	if f.state != never && f.mark == s.mark && old {
		return // about one before: changes nothing
	}
	if f.state == open && f.generation != e.FlowGen {
		s.replace(f)
	}
	if f.state != open {
		s.open(f, e.FlowGen, true)
	}
	f.mark = s.mark
}

func (s *flows) update(e abi.StateEntry) {
	f := s.at(e.FlowID)
	if f != nil && f.state == open && f.generation == e.FlowGen &&
		(e.Action == abi.ActionDrop || e.Action == abi.ActionShunt) {
		s.count.VerdictsSeen++
	}
}

func (s *flows) delete(e abi.DeleteEntry) {
	f := s.at(e.FlowID)
	if f == nil {
		return
	}
	if f.state == open && (!f.known || f.generation == e.FlowGen) {
		s.count.Deleted++
	} else {
		s.count.DeletesUnknown++
		if f.state != never && !abi.Newer(e.FlowGen, f.generation) {
			return
		}
		if f.state == open {
			s.replace(f)
		}
	}
	f.state, f.generation, f.known, f.mark = ended, e.FlowGen, true, s.mark
}

// forget ends all flows, or those that the snapshot did not tell of; how many.
func (s *flows) forget(all bool) (n uint64) {
	for i := range s.byID {
		if f := &s.byID[i]; f.state == open && (all || f.mark != s.mark) {
			f.state = ended
			n++
		}
	}
	return
}

func (s *flows) message(m *abi.Message) {
	s.count.Messages++
	if m.Type == abi.Snapshot && m.Flags&abi.First != 0 {
		s.mark++
	}
	for i := 0; i < int(m.Count); i++ {
		switch m.Type {
		case abi.New, abi.Snapshot:
			s.thereIs(m.State(i))
		case abi.Update:
			s.update(m.State(i))
		case abi.Delete:
			s.delete(m.Delete(i))
		}
	}
	if m.Type == abi.Reset {
		s.count.Reset += s.forget(true)
	}
	if m.Type == abi.Snapshot && m.Flags&abi.Last != 0 {
		s.count.NotInSnapshot += s.forget(false)
		s.count.Snapshots++
	}
}
