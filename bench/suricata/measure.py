#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Measures what a packet costs Suricata's worker, by where it comes from.

Is started by bench/suricata/run, which makes the surroundings: hugepages, a network
namespace with two veth pairs, the programs.
"""
import argparse
import json
import os
import signal
import statistics
import sys
import time

from engine import OTHER_CORE, Failed, number
from report import compare_table, result, show, table
from ways import Machine

TRACES = ("64", "660", "1300", "elephants")
MICE = ("pcap", "afp-ids", "afp-ips", "link", "link-ips")
ELEPHANTS = ("link-noshunt", "link-shunt")


class Cell:
    """What is run again and again."""

    def __init__(self, source, trace, rules):
        self.source, self.trace, self.rules = source, trace, rules
        # by round; "link" has the second line instead of ns
        self.ns, self.busy, self.plugin_over_proc = [], [], []
        self.use_ns, self.ignore_ns, self.ratio, self.ratio_of_medians = [], [], [], []
        self.dropped = self.shunted = self.offered = 0

    def __str__(self):
        return f"{self.source} {self.trace} {self.rules} rules"


def verify(m, cell, r):
    """A figure counts only if Suricata did the work that was meant."""
    st, trace = r["stats"], m.traces[cell.trace]
    loops = r["offered"] / trace["packets"]
    seen, shunted, dropped = number(st, "decoder.pkts"), r.get("shunted", 0), r.get("dropped", 0)
    wrong = []

    def equal(what, is_, wanted):
        if is_ != wanted:
            wrong.append(f"{what} {is_}, not {wanted:g}")

    equal("packets that Suricata decoded", seen + shunted + dropped, r["offered"])
    equal("packets found invalid", number(st, "tcp.invalid_checksum") + number(st, "decoder.invalid"), 0)
    equal("packets lost on the link", r.get("lost", 0), 0)
    thread_ns = r["cpu_ns"] + r.get("idle_ns", 0)
    if r.get("proc_ns", thread_ns) < 0.98 * thread_ns:
        wrong.append(f"CPU time by the plug-in {thread_ns} ns, by /proc only {r['proc_ns']} ns")
    if dropped > r["offered"] / 1000:
        wrong.append(f"{dropped} of {r['offered']} packets were dropped on their way to Suricata")
    if dropped == 0:
        equal("flows", number(st, "flow.tcp"), loops * trace["connections"])
        if shunted == 0:
            equal("gaps in streams", number(st, "tcp.reassembly_gap"), 0)
    if cell.rules and dropped == 0:
        equal("alerts of the canary rule", r["canaries"], loops * trace["canaries"])
    if wrong:
        raise Failed("; ".join(wrong))


def empty_ns(m, cell):
    """CPU time of a worker that starts, gets no packets, and ends: where that is in its figure."""
    way = cell.source.split("-")[0]
    if way == "afp" or cell.source == "link":
        return 0
    if way not in m.empty:
        m.empty[way] = min(m.run(cell, empty=True)["cpu_ns"] for _ in range(2))
    return m.empty[way]


def measure(m, cell):
    empty = empty_ns(m, cell)
    r = m.run(cell)
    verify(m, cell, r)
    cpu, packets = r["cpu_ns"] - empty, r["offered"] - r.get("dropped", 0)
    if cpu < empty:
        raise Failed(f"{packets} packets are too few: {cpu / 1e6:.0f} ms of CPU, and {empty / 1e6:.0f} ms without any")
    cell.offered = r["offered"]
    cell.dropped += r.get("dropped", 0)
    cell.shunted += r.get("shunted", 0)
    if "proc_ns" in r:
        cell.plugin_over_proc.append((r["cpu_ns"] + r["idle_ns"]) / r["proc_ns"])
    if "seconds" in r:
        cell.busy.append(cpu / 1e9 / r["seconds"])
    if cell.source != "link":
        cell.ns.append(cpu / packets)
        return
    # What the trace costs the first time (cold caches, no flow seen yet) is left out.
    skip = -(-m.traces[cell.trace]["packets"] // (2 * m.o.compare))
    use, ignore = ([ns / m.o.compare for ns in r["compare"][k]["chunks_cpu_ns"][skip:]] for k in ("use", "ignore"))
    if min(len(use), len(ignore)) < 5:
        raise Failed(f"{packets} packets are too few to compare chunks of {m.o.compare}")
    cell.use_ns.append(statistics.mean(use))
    cell.ignore_ns.append(statistics.mean(ignore))
    cell.ratio.append(cell.ignore_ns[-1] / cell.use_ns[-1])
    cell.ratio_of_medians.append(statistics.median(ignore) / statistics.median(use))


def plan(o):
    """The cells, in the order of a round."""
    cells = []
    for trace in o.traces:
        if trace == "elephants":
            cells += [Cell(s, trace, r) for r in sorted({0, o.rules}) for s in ELEPHANTS]
            continue
        cells += [Cell(s, trace, 0) for s in MICE]
        if o.rules:
            cells += [Cell(s, trace, o.rules) for s in (MICE if trace == "660" else ("link",))]
    return [c for c in cells if c.source in o.sources]


def options():
    p = argparse.ArgumentParser(prog="bench/suricata/run", add_help=False)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--packets", type=int, default=600000)
    p.add_argument("--rules", type=int, default=1000)
    p.add_argument("--compare", type=int, default=2048)
    p.add_argument("--traces", default=",".join(TRACES))
    p.add_argument("--sources", default=",".join(MICE + ELEPHANTS))
    p.add_argument("--json")
    for name in ("suricata", "plugin", "splitter", "send", "netns", "huge-dir", "file-prefix", "work"):
        p.add_argument("--" + name, default="")
    o = p.parse_args()
    for name, known in (("traces", TRACES), ("sources", MICE + ELEPHANTS)):
        chosen = getattr(o, name).split(",")
        for c in chosen:
            if c not in known:
                sys.exit(f'bench/suricata/run: --{name} "{c}": known are {", ".join(known)}')
        setattr(o, name, [k for k in known if k in chosen])
    for name, least in (("rounds", 1), ("packets", 1), ("rules", 0), ("compare", 32)):
        if getattr(o, name) < least:
            sys.exit(f'bench/suricata/run: --{name} "{getattr(o, name)}": at least {least} is wanted')
    return o


def main():
    o = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of all that cleans up
    os.sched_setaffinity(0, {OTHER_CORE})
    m = Machine(o)
    cells = plan(o)
    if not cells:
        sys.exit("bench/suricata/run: nothing to measure with these traces and sources")
    m.make_traces(sorted({c.trace for c in cells}))
    m.make_rules(sorted({c.rules for c in cells if c.rules}))
    begin = time.monotonic()
    failed = 0
    for n in range(o.rounds):
        for c in list(cells):
            for left in (1, 0):  # a run may be disturbed: once more then
                try:
                    measure(m, c)
                    break
                except Failed as e:
                    print(f"run: {'again' if left else 'left out'}: {c}: {e}", file=sys.stderr, flush=True)
            else:
                failed += 1
                cells.remove(c)
        after = time.monotonic() - begin
        print(f"run: round {n + 1} of {o.rounds} done after {after:.0f} s", file=sys.stderr, flush=True)
    data = result(m, cells)
    show(f"Packets per CPU second of Suricata's worker, medians of {o.rounds} runs", table(cells))
    show("Records used against records ignored, in turn inside one run", compare_table(cells))
    if data["bars"]:
        print()
    for b in data["bars"]:
        met = "met   " if b["met"] else "MISSED"
        print(f"  {met}  {b['what']}: {b['median']:.3f} x, at least {b['at_least']:.2f} wanted")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump(data, f, indent=1)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
