# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""What comes out: figures, tables, bars."""
import os
import re
import statistics
import subprocess

from engine import read

SOURCES = {
    "pcap": "capture file",
    "afp-ids": "AF_PACKET, IDS",
    "afp-ips": "AF_PACKET, inline",
    "link-ignore": "link, records=ignore *",
    "link-use": "link, records=use *",
    "link-ips": "link, inline",
    "link-noshunt": "link, no bypass",
    "link-shunt": "link, bypass",
}


def three(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "runs": values}


def rows_of(cells):
    """(source, cell, ns per packet): a cell "link" has two kinds of packets in its runs."""
    for c in cells:
        if c.source == "link":
            yield "link-ignore", c, c.ignore_ns
            yield "link-use", c, c.use_ns
        else:
            yield c.source, c, c.ns


def find(cells, source, trace, rules):
    for c in cells:
        if (c.source, c.trace, c.rules) == (source, trace, rules):
            return c
    return None


def over(cells, source, base, trace, rules):
    """How many times as many packets as from another source, round by round."""
    a, b = find(cells, source, trace, rules), find(cells, base, trace, rules)
    return [y / x for x, y in zip(a.ns, b.ns)] if a and b else []


def compared(cells, trace, rules):
    c = find(cells, "link", trace, rules)
    return c.ratio if c else []


def bars(o, cells):
    """What was aimed at, and what came out."""
    wanted = [
        ("records, 660 bytes, no rules", 1.08, compared(cells, "660", 0)),
        ("records, 1300 bytes, no rules", 1.10, compared(cells, "1300", 0)),
        ("records, 64 bytes, no rules", 1.00, compared(cells, "64", 0)),
        ("shunting, elephants, no rules", 1.40, over(cells, "link-shunt", "link-noshunt", "elephants", 0)),
    ]
    for size in ("64", "660", "1300"):
        runs = over(cells, "link-ips", "afp-ips", size, 0)
        wanted.append((f"link inline over AF_PACKET inline, {size} bytes", 2.00, runs))
    if o.rules == 1000:
        wanted.insert(2, ("records, 660 bytes, 1000 rules", 1.04, compared(cells, "660", 1000)))
    out = []
    for what, least, runs in wanted:
        if runs:
            out.append({"what": what, "at_least": least, "met": statistics.median(runs) >= least, **three(runs)})
    return out


def table(cells):
    rows = [("source", "trace", "rules", "packets/CPU s", "from ... to", "ns/packet", "busy", "dropped")]
    for source, c, ns in rows_of(cells):
        mid, low, high = (f"{1e9 / v:,.0f}" for v in (statistics.median(ns), max(ns), min(ns)))
        busy = f"{statistics.median(c.busy):.0%}" if c.busy else "-"
        ns = f"{statistics.median(ns):.0f}"
        rows.append((SOURCES[source], c.trace, str(c.rules), mid, f"{low} ... {high}", ns, busy, str(c.dropped)))
    return rows


def compare_table(cells):
    rows = [("trace", "rules", "use ns", "ignore ns", "x", "from ... to", "median chunks")]
    for c in cells:
        if c.ratio:
            use, ignore = (f"{statistics.median(v):.0f}" for v in (c.use_ns, c.ignore_ns))
            mid, low, high = (f"{three(c.ratio)[k]:.3f}" for k in ("median", "min", "max"))
            chunks = f"{statistics.median(c.ratio_of_medians):.3f}"
            rows.append((c.trace, str(c.rules), use, ignore, mid, f"{low} ... {high}", chunks))
    return rows


def show(title, rows):
    if len(rows) < 2:
        return
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    print(f"\n{title}\n")
    for r in rows:
        print("  " + "  ".join(v.ljust(w) if i == 0 else v.rjust(w) for i, (v, w) in enumerate(zip(r, widths))))


def surroundings(o):
    cpu = re.search(r"model name\s*:\s*(.*)", read("/proc/cpuinfo"))
    version = subprocess.run([o.suricata, "-V"], capture_output=True, text=True, check=True).stdout
    dpdk = subprocess.run(["pkg-config", "--modversion", "libdpdk"], capture_output=True, text=True, check=False)
    return {
        "suricata": re.search(r"version (\S+)", version).group(1),
        "dpdk": dpdk.stdout.strip(),
        "kernel": os.uname().release,
        "cpu": cpu.group(1) if cpu else "",
        "cores": os.cpu_count(),
    }


def result(m, cells):
    out = surroundings(m.o) | {"nfmeta": m.nfmeta, "rounds": m.o.rounds, "empty_cpu_ns": m.empty}
    out |= {"traces": {}, "cells": [], "compare": []}
    for name, t in m.traces.items():
        out["traces"][name] = {k: v for k, v in t.items() if k != "path"} | {"loops": m.loops(name)}
    for source, c, ns in rows_of(cells):
        one = {"source": source, "trace": c.trace, "rules": c.rules}
        one |= {"packets": c.offered, "dropped": c.dropped, "shunted": c.shunted}
        one["packets_per_cpu_second"] = three([1e9 / v for v in ns])
        one["ns"] = three(ns)
        if c.busy:
            one["busy"] = three(c.busy)
        if c.plugin_over_proc:
            one["plugin_cpu_over_proc"] = three(c.plugin_over_proc)
        out["cells"].append(one)
    for c in cells:
        if c.ratio:
            one = {"trace": c.trace, "rules": c.rules, "chunk": m.o.compare}
            one |= {"use_ns": three(c.use_ns), "ignore_ns": three(c.ignore_ns), "ratio": three(c.ratio)}
            one["ratio_of_median_chunks"] = three(c.ratio_of_medians)
            out["compare"].append(one)
    out["bars"] = bars(m.o, cells)
    return out
