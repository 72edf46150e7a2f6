// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors

//! An NF: counts per flow, forgets flows when told, has them shunted, as ../inspector.

use std::os::raw::c_int;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nfmeta::abi::{self, newer, Delete, Message, Record, State, Verdict};
use nfmeta::link::{prefetch, Options, BURST};
use nfmeta::{Burst, Error, Link, Packet};

const USAGE: &str = "usage: nf [options]
Serves one queue of a splitter's link.

  --link NAME         name of the link (ids)
  --queue Q           its queue (0)
  --file-prefix NAME  the splitter's (nfmeta)
  --timeout N         seconds to wait for the splitter and its link (10)
  --drop-every N      have every Nth packet dropped
  --verdict-after N   have a flow shunted after N packets
  --json FILE         write a report

Exit status: 0 ended as asked, 1 could not start, 3 the splitter died.
";

// ---- flows -------------------------------------------------------------------------

const IDS_MAX: u32 = 1 << 24; // ids beyond are not counted per flow

#[derive(Clone, Copy, PartialEq)]
enum Is {
    Never,
    Open,
    /// Its generation tells late messages from those about the next flow.
    Ended,
}

#[derive(Clone, Copy)]
struct Flow {
    packets: u64,
    bytes: u64,
    generation: u16,
    mark: u16,
    is: Is,
    known: bool, // the generation: by a message, or by a record that has one
    said: bool,  // a verdict
}

const NO_FLOW: Flow = Flow {
    packets: 0,
    bytes: 0,
    generation: 0,
    mark: 0,
    is: Is::Never,
    known: false,
    said: false,
};

#[derive(Default)]
struct FlowCounts {
    opened: u64,
    deleted: u64,
    replaced: u64,
    not_in_snapshot: u64,
    reset: u64,
    open: u64,
    deletes_unknown: u64,
    packets_after_delete: u64,
    messages: u64,
    snapshots: u64,
    verdicts_sent: u64,
    verdicts_seen: u64,
}

/// Flows by the upfront NF's id.
#[derive(Default)]
struct Flows {
    by_id: Vec<Flow>,
    mark: u16, // snapshots that began
    count: FlowCounts,
}

impl Flows {
    fn at(&mut self, id: u32) -> Option<usize> {
        if id >= IDS_MAX {
            return None;
        }
        let i = id as usize;
        if i >= self.by_id.len() {
            self.by_id
                .resize((i + 1).next_power_of_two().max(4096), NO_FLOW);
        }
        Some(i)
    }

    fn open(&mut self, i: usize, generation: u16, known: bool) {
        self.by_id[i] = Flow {
            generation,
            known,
            mark: self.mark,
            is: Is::Open,
            ..NO_FLOW
        };
        self.count.opened += 1;
    }

    fn replace(&mut self, i: usize) {
        self.by_id[i].is = Is::Ended;
        self.count.replaced += 1;
    }

    /// The flow of a record; None: it has ended, and this came too late.
    #[inline]
    fn packet(&mut self, r: &Record) -> Option<&mut Flow> {
        let i = r.flow_id() as usize;
        let here = self.by_id.get(i).map_or(false, |f| {
            f.is == Is::Open && (!r.has_core() || f.generation == r.flow_gen())
        });
        if !here && !self.first_packet(r) {
            return None;
        }
        let f = &mut self.by_id[i];
        f.mark = self.mark;
        Some(f)
    }

    #[cold]
    fn first_packet(&mut self, r: &Record) -> bool {
        let i = match self.at(r.flow_id()) {
            Some(i) => i,
            None => return false,
        };
        let f = self.by_id[i];
        // without one in the record, it is that of the flow that was told of
        let generation = if r.has_core() {
            r.flow_gen()
        } else {
            f.generation
        };
        match f.is {
            Is::Open if !f.known => return true,
            Is::Open if newer(f.generation, generation) => {
                self.count.packets_after_delete += 1;
                return false;
            }
            Is::Open => self.replace(i),
            Is::Ended if !newer(generation, f.generation) => {
                self.count.packets_after_delete += 1;
                return false;
            }
            _ => {}
        }
        self.open(i, generation, r.has_core());
        true
    }

    fn there_is(&mut self, e: State) {
        let i = match self.at(e.flow_id) {
            Some(i) => i,
            None => return,
        };
        let f = &mut self.by_id[i];
        if f.is == Is::Open && !f.known {
            f.generation = e.flow_gen;
            f.known = true;
        }
        let f = *f;
        let old =
            newer(f.generation, e.flow_gen) || (f.is == Is::Ended && f.generation == e.flow_gen);
        if f.is != Is::Never && f.mark == self.mark && old {
            return; // about one before: changes nothing
        }
        if f.is == Is::Open && f.generation != e.flow_gen {
            self.replace(i);
        }
        if self.by_id[i].is != Is::Open {
            self.open(i, e.flow_gen, true);
        }
        self.by_id[i].mark = self.mark;
    }

    fn update(&mut self, e: State) {
        if let Some(f) = self.by_id.get(e.flow_id as usize) {
            let shunted = matches!(e.action, abi::ACTION_DROP | abi::ACTION_SHUNT);
            self.count.verdicts_seen +=
                u64::from(f.is == Is::Open && f.generation == e.flow_gen && shunted);
        }
    }

    fn delete(&mut self, e: Delete) {
        let i = match self.at(e.flow_id) {
            Some(i) => i,
            None => return,
        };
        let f = self.by_id[i];
        if f.is == Is::Open && (!f.known || f.generation == e.flow_gen) {
            self.count.deleted += 1;
        } else {
            self.count.deletes_unknown += 1;
            if f.is != Is::Never && !newer(e.flow_gen, f.generation) {
                return;
            }
            if f.is == Is::Open {
                self.replace(i);
            }
        }
        self.by_id[i] = Flow {
            generation: e.flow_gen,
            known: true,
            mark: self.mark,
            is: Is::Ended,
            ..f
        };
    }

    /// Ends all flows, or those that the snapshot did not tell of; how many.
    fn forget(&mut self, all: bool) -> u64 {
        let mut n = 0;
        for f in &mut self.by_id {
            if f.is == Is::Open && (all || f.mark != self.mark) {
                f.is = Is::Ended;
                n += 1;
            }
        }
        n
    }

    fn message(&mut self, m: Message) {
        let h = m.header;
        self.count.messages += 1;
        if h.kind == abi::SNAPSHOT && h.flags & abi::FIRST != 0 {
            self.mark = self.mark.wrapping_add(1);
        }
        match h.kind {
            abi::NEW | abi::SNAPSHOT => m.entries().for_each(|e| self.there_is(e)),
            abi::UPDATE => m.entries().for_each(|e| self.update(e)),
            abi::DELETE => m.entries().for_each(|e| self.delete(e)),
            abi::RESET => self.count.reset += self.forget(true),
            _ => {}
        }
        if h.kind == abi::SNAPSHOT && h.flags & abi::LAST != 0 {
            self.count.not_in_snapshot += self.forget(false);
            self.count.snapshots += 1;
        }
    }
}

// ---- packets -----------------------------------------------------------------------

#[derive(Default)]
struct Counts {
    packets: u64,
    bytes: u64,
    bursts: u64,
    no_record: u64,
    no_flow: u64,
    invalid: u64,
    bad_checksum: u64,
    dropped: u64,
    digest: u64,
}

#[derive(Default)]
struct Nf {
    verdict_after: u64, // 0: never
    drop_every: u64,    // 0: none
    flows: Flows,
    count: Counts,
    verdicts: Vec<Verdict>,
    busy: Duration, // from a receive that gave packets to their return
}

impl Nf {
    #[inline]
    fn packet(&mut self, p: Packet, record: Option<Record>) {
        let c = &mut self.count;
        let length = u64::from(p.length());
        c.packets += 1;
        c.bytes += length;
        if self.drop_every != 0 && c.packets % self.drop_every == 0 {
            p.set(abi::DROP);
            c.dropped += 1;
        }
        let r = match record {
            Some(r) => r,
            None => {
                // nothing is known about it: look at its bytes
                c.no_record += 1;
                c.no_flow += 1;
                return;
            }
        };
        let flags = r.flags();
        c.invalid += u64::from(flags & abi::L2_VALID == 0);
        c.bad_checksum += u64::from(flags & (abi::L3_CSUM_BAD | abi::L4_CSUM_BAD) != 0);
        c.digest += u64::from(p.byte(r.l3_off()).unwrap_or(0));
        c.digest += u64::from(p.byte(r.payload_off()).unwrap_or(0));
        if flags & abi::FLOW_KNOWN == 0 {
            c.no_flow += 1;
            return;
        }
        if let Some(f) = self.flows.packet(&r) {
            f.packets += 1;
            f.bytes += length;
            if self.verdict_after != 0 && f.packets >= self.verdict_after && !f.said && f.known {
                f.said = true;
                self.verdicts.push(Verdict {
                    flow_id: r.flow_id(),
                    flow_gen: f.generation,
                    verdict: abi::ACTION_SHUNT,
                    ..Default::default()
                });
            }
        }
    }

    #[inline(never)] // for who profiles
    fn work(&mut self, burst: &Burst) {
        let mut records = [None; BURST];
        for (p, record) in burst.packets().zip(&mut records) {
            *record = p.record();
            prefetch(p.first().as_ptr());
            if let Some(r) = record {
                prefetch(p.first().as_ptr().wrapping_add(r.payload_off().into()));
                prefetch(self.flows.by_id.as_ptr().wrapping_add(r.flow_id() as usize));
            }
        }
        for (p, record) in burst.packets().zip(records) {
            self.packet(p, record);
        }
    }

    /// How many packets there were.
    fn burst(&mut self, link: &Link) -> Result<usize, Error> {
        let start = Instant::now();
        let burst = link.recv_burst();
        if burst.is_empty() {
            return Ok(0);
        }
        self.work(&burst);
        // before they go back: an upfront NF that has them knows the verdict
        self.reply(link)?;
        let n = burst.len();
        drop(burst);
        self.busy += start.elapsed();
        self.count.bursts += 1;
        Ok(n)
    }

    fn reply(&mut self, link: &Link) -> Result<(), Error> {
        let n = self.verdicts.len().min(85); // as many as a message can have
        if n > 0 && link.reply(&self.verdicts[..n])? {
            self.verdicts.drain(..n);
            self.flows.count.verdicts_sent += n as u64;
        }
        Ok(())
    }

    fn run(&mut self, link: &mut Link) -> Result<(), Error> {
        let told = matches!(link.carrier, abi::CARRIER_RING | abi::CARRIER_INBAND);
        if told {
            link.subscribe(&[abi::NEW, abi::UPDATE, abi::DELETE])?;
        }
        let (mut closing, mut idle) = (false, 0);
        let mut next_check = Instant::now();
        while !stop_asked() {
            let n = self.burst(link)?;
            let before = self.flows.count.messages;
            while told {
                match link.flow_next()? {
                    Some(message) => self.flows.message(message),
                    None => break,
                }
            }
            if n != 0 || self.flows.count.messages != before {
                idle = 0;
            } else if closing {
                return Ok(());
            } else {
                wait(&mut idle);
            }
            // the clock costs, too
            if (idle != 0 || self.count.bursts % 64 == 0) && Instant::now() >= next_check {
                next_check = Instant::now() + Duration::from_millis(250);
                self.reply(link)?;
                closing = !link.check()?;
            }
        }
        Ok(())
    }
}

/// Nothing to do: spin, then let others run, then sleep.
fn wait(idle: &mut u32) {
    *idle = idle.saturating_add(1);
    match *idle {
        0..=1024 => std::hint::spin_loop(),
        1025..=2048 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(100)),
    }
}

// ---- the program -------------------------------------------------------------------

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: c_int) {
    STOP.store(true, Ordering::Relaxed);
}

fn stop_asked() -> bool {
    STOP.load(Ordering::Relaxed)
}

extern "C" {
    fn signal(number: c_int, handler: extern "C" fn(c_int)) -> usize; // libc
}

struct Args {
    link: String,
    queue: u16,
    file_prefix: String,
    timeout: u32, // seconds
    verdict_after: u64,
    drop_every: u64,
    json: Option<String>,
}

fn parse_args() -> Result<Args, String> {
    let mut a = Args {
        link: "ids".into(),
        queue: 0,
        file_prefix: "nfmeta".into(),
        timeout: 10,
        verdict_after: 0,
        drop_every: 0,
        json: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        if name == "--help" {
            print!("{USAGE}");
            exit(0);
        }
        let value = args.next().ok_or(format!(
            "\"{name}\" wants a value, or is not an option (see --help)"
        ))?;
        let bad = |e: std::num::ParseIntError| format!("{name}: \"{value}\": {e}");
        match name.as_str() {
            "--link" => a.link = value,
            "--queue" => a.queue = value.parse().map_err(bad)?,
            "--file-prefix" => a.file_prefix = value,
            "--timeout" => a.timeout = value.parse().map_err(bad)?,
            "--verdict-after" => a.verdict_after = value.parse().map_err(bad)?,
            "--drop-every" => a.drop_every = value.parse().map_err(bad)?,
            "--json" => a.json = Some(value),
            _ => return Err(format!("\"{name}\" is not an option (see --help)")),
        }
    }
    Ok(a)
}

fn report(a: &Args, nf: &Nf, link: &Link) -> Result<String, Error> {
    let (c, f) = (&nf.count, &nf.flows.count);
    let (sync, gaps, stale) = if link.carrier == 0 {
        ("off", 0, 0)
    } else {
        link.flow_stats()?
    };
    let ns = nf.busy.as_nanos() as f64 / c.packets.max(1) as f64;
    let numbers = |list: &[(&str, u64)]| -> String {
        list.iter()
            .map(|(name, n)| format!("\"{name}\": {n}"))
            .collect::<Vec<_>>()
            .join(",\n  ")
    };
    Ok(format!(
        "{{\"program\": \"nf\",\n  \"version\": \"{}\",\n  {},\n  \"ns_per_packet\": {:.3},\n\
         \x20 \"flow_state\": {{\"sync\": \"{}\",\n  {}}}\n}}\n",
        nfmeta::link::version(),
        numbers(&[
            ("queue", a.queue.into()),
            ("packets", c.packets),
            ("bytes", c.bytes),
            ("bursts", c.bursts),
            ("flows", f.opened),
            ("packets_without_record", c.no_record),
            ("packets_without_flow", c.no_flow),
            ("packets_invalid", c.invalid),
            ("packets_bad_checksum", c.bad_checksum),
            ("drops_asked", c.dropped),
            ("digest", c.digest),
        ]),
        ns,
        sync,
        numbers(&[
            ("opened", f.opened),
            ("deleted", f.deleted),
            ("replaced", f.replaced),
            ("not_in_snapshot", f.not_in_snapshot),
            ("reset", f.reset),
            ("open", f.open),
            ("deletes_unknown", f.deletes_unknown),
            ("packets_after_delete", f.packets_after_delete),
            ("messages", f.messages),
            ("snapshots", f.snapshots),
            ("gaps", gaps),
            ("stale", stale),
            ("refused", link.refused),
            ("verdicts_sent", f.verdicts_sent),
            ("verdicts_seen", f.verdicts_seen),
        ]),
    ))
}

/// The exit status.
fn serve(a: &Args) -> Result<i32, Box<dyn std::error::Error>> {
    let mut link = Link::attach(&Options {
        link: &a.link,
        queue: a.queue,
        file_prefix: &a.file_prefix,
        timeout: Duration::from_secs(a.timeout.into()),
        wanted: &|| !stop_asked(),
    })?;
    let mut nf = Nf {
        verdict_after: a.verdict_after,
        drop_every: a.drop_every,
        ..Default::default()
    };
    let ended = nf.run(&mut link);
    nf.flows.count.open = nf.flows.forget(true);
    if let Some(path) = &a.json {
        let text = report(a, &nf, &link)?;
        std::fs::write(path, text).map_err(|e| format!("--json: cannot write \"{path}\": {e}"))?;
    }
    let (c, f) = (&nf.count, &nf.flows.count);
    println!(
        "nf: {} packets, {} with a record; flows: opened {}, deleted {}; verdicts {}",
        c.packets,
        c.packets - c.no_record,
        f.opened,
        f.deleted,
        f.verdicts_sent
    );
    match ended {
        Err(e) if e.is_gone() => {
            eprintln!("nf: {e}");
            Ok(3)
        }
        ended => Ok(ended.map(|()| 0)?),
    }
}

fn main() {
    // SAFETY: the handler does nothing but store
    unsafe {
        signal(2, on_signal); // SIGINT
        signal(15, on_signal); // SIGTERM
    }
    let ended = parse_args().map_err(Into::into).and_then(|a| serve(&a));
    exit(ended.unwrap_or_else(|e| {
        eprintln!("nf: {e}");
        1
    }))
}
