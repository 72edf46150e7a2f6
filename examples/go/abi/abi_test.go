// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors

package abi

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

type vector map[string]any

// The vectors of bindings-spec; their folder is in NFMETA_VECTORS.
func each(t *testing.T, file, kind string, atLeast int, check func(*testing.T, vector)) {
	folder := os.Getenv("NFMETA_VECTORS")
	if folder == "" {
		folder = "../../../bindings-spec/vectors"
	}
	text, err := os.ReadFile(filepath.Join(folder, file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var lists map[string]json.RawMessage
	var vectors []vector
	if err := json.Unmarshal(text, &lists); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(lists[kind], &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < atLeast {
		t.Fatalf("%d vectors, not %d", len(vectors), atLeast)
	}
	for _, v := range vectors {
		t.Run(v["name"].(string), func(t *testing.T) { check(t, v) })
	}
}

// 64-bit numbers are text.
func number(t *testing.T, value any) uint64 {
	switch n := value.(type) {
	case float64:
		return uint64(n)
	case string:
		u, err := strconv.ParseUint(n, 0, 64)
		if err == nil {
			return u
		}
	}
	t.Fatalf("%v is not a number", value)
	return 0
}

func data(t *testing.T, v vector, name string) []byte {
	b, err := hex.DecodeString(v[name].(string))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// same compares the fields that the vector lists; returns how many it does.
func same(t *testing.T, v vector, fields map[string]uint64) (listed int) {
	for name, got := range fields {
		if wanted, there := v[name]; there {
			listed++
			if got != number(t, wanted) {
				t.Errorf("%s: %d, not %v", name, got, wanted)
			}
		}
	}
	return
}

func sameBytes(t *testing.T, what string, got, wanted []byte) {
	if !bytes.Equal(got, wanted) {
		t.Errorf("%s: %x, not %x", what, got, wanted)
	}
}

func TestRecords(t *testing.T) {
	each(t, "records", "records", 12, func(t *testing.T, v vector) {
		r := Record(data(t, v, "bytes"))
		listed := same(t, v, map[string]uint64{
			"abi": uint64(r.ABI()), "size": uint64(r.Size()), "flags": uint64(r.Flags()),
			"flow_id": uint64(r.FlowID()), "l3_off": uint64(r.L3Off()), "l4_off": uint64(r.L4Off()),
			"payload_off": uint64(r.PayloadOff()), "flow_gen": uint64(r.FlowGen()),
			"app_id": uint64(r.AppID()), "port": uint64(r.Port()),
			"vlan_outer": uint64(r.VlanOuter()), "vlan_inner": uint64(r.VlanInner()),
			"vlan_count": uint64(r.VlanCount()), "action": uint64(r.Action()),
			"timestamp": r.Timestamp(), "tenant": uint64(r.Tenant()),
			"chain": uint64(r.Chain()), "tunnels": uint64(r.Tunnels()),
		})
		wanted := map[int]int{8: 4, 16: 8, 32: 14, 64: 18}[len(r)]
		if listed != wanted || int(r.Size()) != len(r) {
			t.Errorf("%d fields, %d bytes", listed, r.Size())
		}
		if len(r) == 64 {
			sameBytes(t, "user", r.User(), data(t, v, "user"))
		}
		if len(r) == 8 && (r.L3Off() != None || r.FlowGen() != 0 || r.Timestamp() != 0) {
			t.Error("fields that are not there")
		}
	})
}

func TestSealed(t *testing.T) {
	good := 0
	each(t, "records", "sealed", 91, func(t *testing.T, v vector) {
		f := Field{
			Key:       number(t, v["key"]),
			Placement: uint8(number(t, v["placement"])),
			Size:      uint8(number(t, v["size"])),
		}
		var seal [4]byte
		copy(seal[:], data(t, v, "seal"))
		place := data(t, v, "record")
		if f.Placement == Headroom { // lies inside
			copy(place[28:], seal[:])
		}
		var r Record
		if number(t, v["present"]) != 0 {
			r = f.Read(place, le.Uint32(seal[:]), uint16(number(t, v["start"])),
				uint32(number(t, v["length"])))
		}
		if uint64(len(r)) != number(t, v["reads"]) {
			t.Errorf("reads %d bytes", len(r))
		}
		if r != nil {
			good++
		}
	})
	if good < 20 {
		t.Errorf("%d good ones", good)
	}
}

func TestHandshakes(t *testing.T) {
	good := map[string][]byte{}
	each(t, "handshakes", "handshakes", 11, func(t *testing.T, v vector) {
		d := data(t, v, "bytes")
		good[v["name"].(string)] = d
		s, err := ParseHandshake(d, v["link"].(string), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		f := s.Field
		listed := same(t, v, map[string]uint64{
			"magic": le.Uint64(d), "abi_major": Major, "abi_minor": uint64(s.AbiMinor),
			"size": uint64(s.Size), "features_required": s.FeaturesRequired,
			"features_offered": s.FeaturesOffered, "instance": uint64(s.Instance),
			"state": uint64(s.State), "queue_count": uint64(len(s.Queues)),
			"queue_size": uint64(s.QueueSize), "queue_offset": uint64(s.QueueOffset),
			"when_full": uint64(s.WhenFull), "ring_size": uint64(s.RingSize),
			"blanks": uint64(s.Blanks), "field_flag": f.Flag, "field_key": f.Key,
			"field_offset": uint64(f.Offset), "field_seal_offset": uint64(f.SealOffset),
			"field_placement": uint64(f.Placement), "field_size": uint64(f.Size),
			"flow_ring": uint64(s.FlowRing), "flow_carrier": uint64(s.FlowCarrier),
			"heartbeat": s.Heartbeat,
		})
		if listed != 23 {
			t.Errorf("%d fields", listed)
		}
		texts := map[string]string{
			"link": s.Name, "library_version": s.LibraryVersion, "dpdk_version": s.DPDKVersion,
			"pool_name": s.PoolName, "pool_ops": s.PoolOps, "flow_table": s.FlowTable,
		}
		for name, got := range texts {
			if got != v[name] {
				t.Errorf("%s: %q, not %q", name, got, v[name])
			}
		}
		for i, q := range v["queues"].([]any) {
			got := s.Queues[i]
			for j, name := range []string{got.Down, got.Up, got.Blank, got.FlowDown, got.FlowUp} {
				if wanted := q.([]any)[j]; name != wanted {
					t.Errorf("queue %d: %q, not %q", i, name, wanted)
				}
			}
		}
	})
	results := map[string]bool{}
	each(t, "handshakes", "judged", 96, func(t *testing.T, v vector) {
		of := good[v["of"].(string)]
		own, err := ParseHandshake(of, "demo", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		d := make([]byte, number(t, v["length"]))
		copy(d, of)
		copy(d[number(t, v["at"]):], data(t, v, "put"))
		s, err := ParseHandshake(d, v["link"].(string), own.DPDKVersion, &own.MbufLayout)
		if err == nil {
			err = s.Ready(int(number(t, v["queue"])))
		}
		result := "accept"
		var refused Refused
		switch {
		case errors.As(err, &refused):
			result = string(refused)
		case err != nil:
			result = "again"
		}
		if result != v["result"] {
			t.Errorf("%s, not %s", result, v["result"])
		}
		results[result] = true
	})
	if len(results) != 9 {
		t.Error(results)
	}
}

func TestTableHeaders(t *testing.T) {
	results := map[string]bool{}
	each(t, "table", "headers", 20, func(t *testing.T, v vector) {
		offset, flows, err := ParseTableHeader(data(t, v, "header"), number(t, v["length"]))
		result := "accept"
		if err == nil {
			same(t, v, map[string]uint64{"entry_offset": uint64(offset), "flows": uint64(flows)})
		} else {
			result = string(err.(Refused))
		}
		if result != v["result"] {
			t.Errorf("%s, not %s", result, v["result"])
		}
		results[result] = true
	})
	if len(results) != 3 {
		t.Error(results)
	}
}

func TestFlowKeys(t *testing.T) {
	each(t, "flow-keys", "vectors", 61, func(t *testing.T, v vector) {
		r := make(Record, 16)
		for name, at := range map[string]int{"flags": 2, "l3_off": 8, "l4_off": 10, "payload_off": 12} {
			le.PutUint16(r[at:], uint16(number(t, v[name])))
		}
		var stripped []uint16
		for _, tci := range v["stripped"].([]any) {
			stripped = append(stripped, uint16(number(t, tci)))
		}
		key, reverse := FlowKey(data(t, v, "packet"), r, number(t, v["policy"])&1 != 0, stripped)
		sameBytes(t, "key", key[:], data(t, v, "key"))
		same(t, v, map[string]uint64{"reverse": flag(reverse)})
	})
}

func entry(t *testing.T, m *Message, i int, wanted vector) (listed, known int) {
	fields := map[string]uint64{}
	put := func(name string, n uint64) { fields[name] = n }
	switch m.Type {
	case New, Update, Snapshot:
		e := m.State(i)
		put("flow_id", uint64(e.FlowID))
		put("flow_gen", uint64(e.FlowGen))
		put("action", uint64(e.Action))
		put("app_id", uint64(e.AppID))
	case Delete:
		e := m.Delete(i)
		put("flow_id", uint64(e.FlowID))
		put("flow_gen", uint64(e.FlowGen))
		put("reason", uint64(e.Reason))
	case Counters:
		e := m.Counters(i)
		put("flow_id", uint64(e.FlowID))
		put("flow_gen", uint64(e.FlowGen))
		for name, pair := range map[string][2]uint64{"packets": e.Packets, "bytes": e.Bytes} {
			for j, wanted := range wanted[name].([]any) {
				if pair[j] != number(t, wanted) {
					t.Errorf("%s: %d, not %v", name, pair[j], wanted)
				}
			}
		}
	case Verdict:
		e := m.Verdict(i)
		put("flow_id", uint64(e.FlowID))
		put("flow_gen", uint64(e.FlowGen))
		put("verdict", uint64(e.Verdict))
		put("flags", uint64(e.Flags))
		put("after", uint64(e.After))
		put("ttl", uint64(e.TTL))
		put("who", uint64(e.Who))
		put("why", uint64(e.Why))
	case Load:
		e := m.Load(i)
		put("busy", uint64(e.Busy))
		put("flows", uint64(e.Flows))
		put("overload", e.Overload)
	default:
		put("seq", m.Mark(i).Seq)
	}
	return same(t, wanted, fields), len(fields)
}

func TestMessages(t *testing.T) {
	types := map[uint8]bool{}
	each(t, "messages", "messages", 46, func(t *testing.T, v vector) {
		d := data(t, v, "message")
		m, length, err := ParseMessage(d, number(t, v["up"]) != 0)
		if err != nil || m == nil {
			t.Fatal(m, err)
		}
		listed := same(t, v, map[string]uint64{
			"length": uint64(length), "magic": uint64(m.Magic), "abi": uint64(m.ABI),
			"type": uint64(m.Type), "flags": uint64(m.Flags), "count": uint64(m.Count),
			"entry_size": uint64(m.EntrySize), "source": uint64(m.Source), "ask": uint64(m.Ask),
			"instance": uint64(m.Instance), "epoch": uint64(m.Epoch), "seq": m.Seq,
			"barrier": m.Barrier,
		})
		entries := v["entries"].([]any)
		if listed != 13 || len(entries) != int(m.Count) {
			t.Fatalf("%d fields, %d entries", listed, m.Count)
		}
		for i, e := range entries {
			if listed, known := entry(t, m, i, e.(map[string]any)); listed != known {
				t.Errorf("%d of %d fields of an entry", listed, known)
			}
		}
		if m.Type == Verdict { // what an NF writes
			var written []byte
			for i := range entries {
				written = m.Verdict(i).Put(written)
			}
			sameBytes(t, "written", written, d[HeaderBytes:])
		}
		types[m.Type] = true
	})
	if len(types) != 11 {
		t.Errorf("%d types", len(types))
	}
}

func TestJudged(t *testing.T) {
	results := map[string]bool{}
	each(t, "messages", "judged", 117, func(t *testing.T, v vector) {
		m, length, err := ParseMessage(data(t, v, "bytes"), number(t, v["up"]) != 0)
		result := "deliver"
		switch {
		case errors.Is(err, ErrMore):
			result = "more"
		case err != nil:
			result = "refuse"
		case m == nil:
			result = "skip"
		}
		if result != v["result"] {
			t.Errorf("%s (%v), not %s", result, err, v["result"])
		}
		if err == nil {
			same(t, v, map[string]uint64{"length": uint64(length)})
		}
		results[result] = true
	})
	if len(results) != 4 {
		t.Error(results)
	}
}

func TestTable(t *testing.T) {
	each(t, "table", "entries", 23, func(t *testing.T, v vector) {
		f := ParseTableFlow(data(t, v, "entry"))
		listed := same(t, v, map[string]uint64{
			"seq": uint64(f.Seq), "flow_gen": uint64(f.FlowGen), "state": uint64(f.State),
			"proto": uint64(f.Proto), "app_id": uint64(f.AppID), "port_a": uint64(f.PortA),
			"port_b": uint64(f.PortB), "from_a": uint64(f.FromA), "from_b": uint64(f.FromB),
			"phase": uint64(f.Phase()), "reverse": flag(f.Reverse()), "action": uint64(f.Action()),
			"packets_a": f.FromA.Packets(), "bytes_a": f.FromA.Bytes(),
			"packets_b": f.FromB.Packets(), "bytes_b": f.FromB.Bytes(),
		})
		if listed != 16 {
			t.Errorf("%d fields", listed)
		}
		key := f.Key()
		sameBytes(t, "addr_a", f.AddrA[:], data(t, v, "addr_a"))
		sameBytes(t, "addr_b", f.AddrB[:], data(t, v, "addr_b"))
		sameBytes(t, "key", key[:], data(t, v, "key"))
	})
}
