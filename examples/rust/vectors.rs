// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors

//! nfmeta/abi.rs against the vectors of bindings-spec: `rustc --test vectors.rs`. The
//! folder is in NFMETA_VECTORS.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;

use nfmeta::abi::{self, *};

// ---- as much of JSON as the vectors have -------------------------------------------

#[derive(Debug, PartialEq)]
enum Json {
    Number(u64),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    fn parse(text: &str) -> Json {
        let mut p = Parser { rest: text };
        let value = p.value();
        assert_eq!(p.peek(), None);
        value
    }

    fn has(&self, name: &str) -> bool {
        matches!(self, Json::Object(o) if o.contains_key(name))
    }

    fn at(&self, name: &str) -> &Json {
        match self {
            Json::Object(o) => o.get(name).unwrap_or_else(|| panic!("no \"{}\"", name)),
            _ => panic!("not an object"),
        }
    }

    /// 64-bit numbers are text.
    fn number(&self) -> u64 {
        match self {
            Json::Number(n) => *n,
            Json::Text(t) => u64::from_str_radix(t.trim_start_matches("0x"), 16).unwrap(),
            _ => panic!("not a number"),
        }
    }

    fn text(&self) -> &str {
        match self {
            Json::Text(t) => t,
            _ => panic!("not text"),
        }
    }

    fn list(&self) -> &[Json] {
        match self {
            Json::List(l) => l,
            _ => panic!("not a list"),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let hex = self.text().as_bytes().chunks(2);
        hex.map(|h| u8::from_str_radix(std::str::from_utf8(h).unwrap(), 16).unwrap())
            .collect()
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        if there {
            self.rest = &self.rest[1..];
        }
        there
    }

    fn string(&mut self) -> String {
        assert!(self.take('"'));
        let end = self.rest.find('"').unwrap();
        let text = &self.rest[..end];
        assert!(!text.contains('\\'));
        self.rest = &self.rest[end + 1..];
        text.to_string()
    }

    fn value(&mut self) -> Json {
        match self.peek() {
            Some('"') => Json::Text(self.string()),
            Some('[') => {
                let mut list = Vec::new();
                self.take('[');
                while !self.take(']') {
                    list.push(self.value());
                    self.take(',');
                }
                Json::List(list)
            }
            Some('{') => {
                let mut object = BTreeMap::new();
                self.take('{');
                while !self.take('}') {
                    let name = self.string();
                    assert!(self.take(':'));
                    object.insert(name, self.value());
                    self.take(',');
                }
                Json::Object(object)
            }
            _ => {
                let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap();
                let (number, rest) = self.rest.split_at(end);
                self.rest = rest;
                Json::Number(number.parse().unwrap())
            }
        }
    }
}

fn vectors(name: &str, kind: &str, at_least: usize) -> Vec<Json> {
    let folder = std::env::var("NFMETA_VECTORS")
        .unwrap_or_else(|_| "../../bindings-spec/vectors".to_string());
    let text = std::fs::read_to_string(format!("{}/{}.json", folder, name)).expect(name);
    match Json::parse(&text) {
        Json::Object(mut o) => match o.remove(kind) {
            Some(Json::List(list)) if list.len() >= at_least => list,
            _ => panic!("{}: too few", kind),
        },
        _ => panic!("{}: not an object", name),
    }
}

#[track_caller]
fn same<T: PartialEq + Debug>(v: &Json, what: &str, got: T, wanted: T) {
    assert_eq!(got, wanted, "{}: {}", v.at("name").text(), what);
}

/// All fields that the vector lists.
macro_rules! same_fields {
    ($v:expr, $list:expr, $($name:literal: $got:expr,)*) => {{
        let mut listed = 0;
        $(if $list.has($name) {
            same($v, $name, u64::from($got), $list.at($name).number());
            listed += 1;
        })*
        listed
    }};
}

// ---- the tests ---------------------------------------------------------------------

#[test]
fn records() {
    for v in &vectors("records", "records", 12) {
        let bytes = v.at("bytes").bytes();
        let r = Record::new(&bytes).unwrap();
        same(v, "size", r.size().into(), bytes.len());
        let listed = same_fields!(v, v,
            "abi": r.abi(), "size": r.size(), "flags": r.flags(), "flow_id": r.flow_id(),
            "l3_off": r.l3_off(), "l4_off": r.l4_off(), "payload_off": r.payload_off(),
            "flow_gen": r.flow_gen(), "app_id": r.app_id(), "port": r.port(),
            "vlan_outer": r.vlan_outer(), "vlan_inner": r.vlan_inner(),
            "vlan_count": r.vlan_count(), "action": r.action(), "timestamp": r.timestamp(),
            "tenant": r.tenant(), "chain": r.chain(), "tunnels": r.tunnels(),
        );
        let wanted = match bytes.len() {
            8 => 4,
            16 => 8,
            32 => 14,
            _ => 18,
        };
        same(v, "fields", listed, wanted);
        same(v, "user", r.user().is_some(), v.has("user"));
        if let Some(user) = r.user() {
            same(v, "user", user, &v.at("user").bytes());
        }
        if bytes.len() == 8 {
            same(
                v,
                "what is not there",
                (r.l3_off(), r.flow_gen(), r.timestamp()),
                (NONE, 0, 0),
            );
        }
    }
}

#[test]
fn sealed() {
    let mut good = 0;
    for v in &vectors("records", "sealed", 91) {
        let field = Field {
            flag: 1,
            key: v.at("key").number(),
            offset: 0,
            seal_offset: 0,
            placement: v.at("placement").number() as u8,
            size: v.at("size").number() as u8,
        };
        let mut seal = v.at("seal").bytes();
        seal.resize(4, 0);
        let mut place = v.at("record").bytes();
        if field.placement == HEADROOM {
            place[28..32].copy_from_slice(&seal); // lies inside
        }
        let seal = u32::from_le_bytes([seal[0], seal[1], seal[2], seal[3]]);
        let (start, length) = (
            v.at("start").number() as u16,
            v.at("length").number() as u32,
        );
        let present = v.at("present").number() != 0;
        let record = if present {
            field.read(&place, seal, start, length)
        } else {
            None
        };
        same(
            v,
            "reads",
            record.map_or(0, |r| r.size().into()),
            v.at("reads").number(),
        );
        good += usize::from(record.is_some());
    }
    assert!(good > 20);
}

#[test]
fn handshakes() {
    let mut good = BTreeMap::new();
    for v in &vectors("handshakes", "handshakes", 11) {
        let bytes = v.at("bytes").bytes();
        let s = Handshake::parse(&bytes, v.at("link").text(), None)
            .unwrap()
            .unwrap();
        let f = s.field;
        let listed = same_fields!(v, v,
            "magic": get_u64(&bytes), "abi_major": ABI, "abi_minor": s.abi_minor, "size": s.size,
            "features_required": s.features_required, "features_offered": s.features_offered,
            "instance": s.instance, "state": s.state, "queue_count": s.queues.len() as u16,
            "queue_size": s.queue_size, "queue_offset": s.queue_offset, "when_full": s.when_full,
            "ring_size": s.ring_size, "blanks": s.blanks, "field_flag": f.flag, "field_key": f.key,
            "field_offset": f.offset, "field_seal_offset": f.seal_offset,
            "field_placement": f.placement, "field_size": f.size, "flow_ring": s.flow_ring,
            "flow_carrier": s.flow_carrier, "heartbeat": s.heartbeat,
        );
        same(v, "fields", listed, 23);
        for (name, got) in [
            ("link", &s.name),
            ("library_version", &s.library_version),
            ("dpdk_version", &s.dpdk_version),
            ("pool_name", &s.pool_name),
            ("pool_ops", &s.pool_ops),
            ("flow_table", &s.flow_table),
        ] {
            same(v, name, got.as_str(), v.at(name).text());
        }
        let wanted = v.at("queues").list();
        same(v, "queues", s.queues.len(), wanted.len());
        for (q, wanted) in s.queues.iter().zip(wanted) {
            let names = [&q.down, &q.up, &q.blank, &q.flow_down, &q.flow_up];
            for (name, wanted) in names.iter().zip(wanted.list()) {
                same(v, "queue", name.as_str(), wanted.text());
            }
        }
        good.insert(v.at("name").text().to_string(), (bytes, s));
    }
    let mut results = HashSet::new();
    for v in &vectors("handshakes", "judged", 96) {
        let (bytes, own) = &good[v.at("of").text()];
        let mut bytes = bytes.clone();
        bytes.resize(v.at("length").number() as usize, 0);
        let (at, put) = (v.at("at").number() as usize, v.at("put").bytes());
        bytes[at..at + put.len()].copy_from_slice(&put);
        let own = Some((own.dpdk_version.as_str(), &own.mbuf_layout));
        let result = Handshake::parse(&bytes, v.at("link").text(), own)
            .and_then(|s| s.map_or(Ok(false), |s| s.ready(v.at("queue").number() as usize)));
        let result = match result {
            Ok(ready) => {
                if ready {
                    "accept"
                } else {
                    "again"
                }
            }
            Err(Refused(name)) => name,
        };
        same(v, "result", result, v.at("result").text());
        results.insert(result);
    }
    assert_eq!(results.len(), 9);
}

fn get_u64(bytes: &[u8]) -> u64 {
    bytes[..8]
        .iter()
        .rev()
        .fold(0, |n, b| n << 8 | u64::from(*b))
}

#[test]
fn table_headers() {
    let mut results = HashSet::new();
    for v in &vectors("table", "headers", 20) {
        let result = match parse_table_header(&v.at("header").bytes(), v.at("length").number()) {
            Ok((entry_offset, flows)) => {
                let listed = same_fields!(v, v, "entry_offset": entry_offset, "flows": flows,);
                same(v, "fields", listed, 2);
                "accept"
            }
            Err(Refused(name)) => name,
        };
        same(v, "result", result, v.at("result").text());
        results.insert(result);
    }
    assert_eq!(results.len(), 3);
}

#[test]
fn flow_keys() {
    for v in &vectors("flow-keys", "vectors", 61) {
        let mut record = [1, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (name, at) in [
            ("flags", 2),
            ("l3_off", 8),
            ("l4_off", 10),
            ("payload_off", 12),
        ] {
            record[at..at + 2].copy_from_slice(&(v.at(name).number() as u16).to_le_bytes());
        }
        let stripped: Vec<u16> = v
            .at("stripped")
            .list()
            .iter()
            .map(|tci| tci.number() as u16)
            .collect();
        let vlans = v.at("policy").number() & 1 != 0;
        let (key, reverse) = flow_key(
            &v.at("packet").bytes(),
            &Record::new(&record).unwrap(),
            vlans,
            &stripped,
        );
        same(v, "key", &key[..], &v.at("key").bytes());
        same(v, "reverse", reverse.into(), v.at("reverse").number());
    }
}

fn same_entries<T: Entry>(v: &Json, m: &Message, fields: usize, check: impl Fn(T, &Json) -> usize) {
    let wanted = v.at("entries").list();
    let entries: Vec<T> = m.entries().collect();
    same(v, "entries", entries.len(), wanted.len());
    for (entry, wanted) in entries.into_iter().zip(wanted) {
        same(v, "fields", check(entry, wanted), fields);
    }
}

#[test]
fn messages() {
    let mut kinds = HashSet::new();
    for v in &vectors("messages", "messages", 46) {
        let bytes = v.at("message").bytes();
        let (length, m) = match abi::parse_message(&bytes, v.at("up").number() != 0) {
            Ok(Parsed::Deliver(length, m)) => (length, m),
            other => panic!("{}: {:?}", v.at("name").text(), other),
        };
        same(v, "length", length as u64, v.at("length").number());
        let h = m.header;
        let listed = same_fields!(v, v,
            "magic": h.magic, "abi": h.abi, "type": h.kind, "flags": h.flags, "count": h.count,
            "entry_size": h.entry_size, "source": h.source, "ask": h.ask, "instance": h.instance,
            "epoch": h.epoch, "seq": h.seq, "barrier": h.barrier,
        );
        same(v, "fields", listed, 12);
        match h.kind {
            NEW | UPDATE | SNAPSHOT => same_entries(v, &m, 4, |e: State, w| {
                same_fields!(v, w, "flow_id": e.flow_id, "flow_gen": e.flow_gen, "action": e.action,
                    "app_id": e.app_id,)
            }),
            DELETE => same_entries(
                v,
                &m,
                3,
                |e: Delete, w| same_fields!(v, w, "flow_id": e.flow_id, "flow_gen": e.flow_gen, "reason": e.reason,),
            ),
            COUNTERS => same_entries(v, &m, 4, |e: Counters, w| {
                let list = |name: &str| -> Vec<u64> {
                    w.at(name).list().iter().map(Json::number).collect()
                };
                same(v, "packets", e.packets.to_vec(), list("packets"));
                same(v, "bytes", e.bytes.to_vec(), list("bytes"));
                2 + same_fields!(v, w, "flow_id": e.flow_id, "flow_gen": e.flow_gen,)
            }),
            VERDICT => {
                same_entries(v, &m, 8, |e: Verdict, w| {
                    same_fields!(v, w, "flow_id": e.flow_id, "flow_gen": e.flow_gen, "verdict": e.verdict,
                        "flags": e.flags, "after": e.after, "ttl": e.ttl, "who": e.who, "why": e.why,)
                });
                // what an NF writes
                let written: Vec<u8> = m.entries().flat_map(|e: Verdict| e.put()).collect();
                same(v, "written", &written[..], &bytes[HEADER_BYTES..]);
            }
            LOAD => same_entries(
                v,
                &m,
                3,
                |e: Load, w| same_fields!(v, w, "busy": e.busy, "flows": e.flows, "overload": e.overload,),
            ),
            RESYNC | ACK => same_entries(v, &m, 1, |e: Mark, w| same_fields!(v, w, "seq": e.seq,)),
            _ => same(v, "entries", v.at("entries").list().len(), 0),
        }
        kinds.insert(h.kind);
    }
    assert_eq!(kinds.len(), 11);
}

#[test]
fn judged() {
    let mut results = HashSet::new();
    for v in &vectors("messages", "judged", 117) {
        let bytes = v.at("bytes").bytes();
        let (result, length) = match abi::parse_message(&bytes, v.at("up").number() != 0) {
            Ok(Parsed::Deliver(length, _)) => ("deliver", Some(length)),
            Ok(Parsed::Skip(length)) => ("skip", Some(length)),
            Ok(Parsed::More) => ("more", None),
            Err(Malformed(_)) => ("refuse", None),
        };
        same(v, "result", result, v.at("result").text());
        if let Some(length) = length {
            same(v, "length", length as u64, v.at("length").number());
        }
        results.insert(result);
    }
    assert_eq!(results.len(), 4);
}

#[test]
fn table() {
    for v in &vectors("table", "entries", 23) {
        let mut bytes = [0; 64];
        bytes.copy_from_slice(&v.at("entry").bytes());
        let e = TableFlow::parse(&bytes);
        let listed = same_fields!(v, v,
            "seq": e.seq, "flow_gen": e.flow_gen, "state": e.state, "proto": e.proto,
            "app_id": e.app_id, "port_a": e.port_a, "port_b": e.port_b, "from_a": e.from_a,
            "from_b": e.from_b, "phase": e.phase(), "reverse": u8::from(e.reverse()),
            "action": e.action(), "packets_a": TableFlow::packets(e.from_a),
            "bytes_a": TableFlow::bytes(e.from_a), "packets_b": TableFlow::packets(e.from_b),
            "bytes_b": TableFlow::bytes(e.from_b),
        );
        same(v, "fields", listed, 16);
        same(v, "addr_a", &e.addr_a[..], &v.at("addr_a").bytes());
        same(v, "addr_b", &e.addr_b[..], &v.at("addr_b").bytes());
        same(v, "key", &e.key()[..], &v.at("key").bytes());
    }
}
