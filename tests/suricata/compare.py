#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Did Suricata see the same at the link as in the file?

usage: compare.py [option]... FILE-RUN/eve.json LINK-RUN/eve.json

Every record of every kind is compared as a whole (alerts with all bytes of the packet), as a
multiset: the order of records is not, it depends on threads.  What is left out of a record
is in DROPPED below, with the reason.  The last record of statistics is compared counter by
counter, without those in COUNTERS.

  --times            time stamps of what packets caused, start, end and age of flows have to be
                     the same, too; not when a flow that ended was written down
  --forced           flows of the link run have to have ended by order (reason "forced"), for the
                     upfront NF ends them, and those of the file run with the run; without it,
                     the reason has to be the same
  --let-run N        ... but N flows, which the upfront NF does not know as flows (datagrams
                     that come in pieces only, what is in a tunnel), end with the run
  --not KIND         leave this kind of record out: alert, drop, flow, http, dns, ... stats
  --not-sid N        leave the alerts of this rule out
  --not-counter RE   leave these counters out
  --bypass           flows may be bypassed: only the flows are compared, their ends, application,
                     packets and bytes (Suricata's are with those that passed by it)
  --workers N        the link run had N workers: what each of them counts for itself is left out
Exit status: 0 the same, 1 not, 2 unreadable.
"""
import argparse
import collections
import json
import re
import sys

# A run's own.
DROPPED = {
    "timestamp": "packets of a record without a time get the time they came",
    "flow_id": "holds a random number of the run",
    "pcap_cnt": "of the file only",
    "pcap_filename": "of the file only",
    "in_iface": "of the link only",
    "nfmeta.flow_id": "of the link only (flows.py looks at it)",
    "nfmeta.generation": "likewise",
    "nfmeta.app_id": "likewise",
}
TIMES = ("timestamp", "start", "end", "age")

COUNTERS = (
    (r"^uptime$", "of the run"),
    (r"^capture\.", "of the capture source"),
    (r"^nfmeta\.", "of the capture source"),
    (r"memuse|memcap|^memory", "depends on when flows are freed"),
    (r"^flow\.(mgr|wrk|recycler|end)\.", "which thread ends flows, and why"),
    (r"^defrag\.(mgr|wrk)\.", "which thread forgets datagrams in pieces, and when"),
    (r"^flow\.(spare|emerg|active|total_pool|get_used)", "of the pool of flows"),
    (r"^tcp\.(active_sessions|ssn_from_pool|ssn_from_cache|segment_from_pool|segment_from_cache"
     r"|.*_pool_)", "of the pools"),
    (r"^detect\.engines", "reloads"),
    (r"^file_store\.", "not used"),
    (r"^app_layer\.expectations$", "of the moment"),
)


def options():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--times", action="store_true")
    p.add_argument("--forced", action="store_true")
    p.add_argument("--let-run", type=int, default=0)
    p.add_argument("--not", dest="kinds", action="append", default=[])
    p.add_argument("--not-sid", type=int, action="append", default=[])
    p.add_argument("--not-counter", action="append", default=[])
    p.add_argument("--bypass", action="store_true")
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("file")
    p.add_argument("link")
    return p.parse_args()


def read(path):
    records = []
    try:
        with open(path, encoding="utf-8") as f:
            for n, line in enumerate(f, 1):
                try:
                    records.append(json.loads(line))
                except ValueError as e:
                    sys.exit("compare.py: %s, line %d: %s" % (path, n, e))
    except OSError as e:
        print("compare.py: %s" % e, file=sys.stderr)
        sys.exit(2)
    return records


def strip(value, dropped):
    if isinstance(value, dict):
        stripped = ((k, strip(v, dropped)) for k, v in value.items() if k not in dropped)
        return {k: v for k, v in stripped if v != {}}
    if isinstance(value, list):
        return [strip(v, dropped) for v in value]
    return value


def key(record, o, dropped):
    r = strip(record, dropped)
    if o.times and record.get("pkt_src") != "wire/pcap":
        r.pop("timestamp", None)
    if record["event_type"] == "flow":
        if o.forced or o.bypass:
            r["flow"].pop("reason", None)
        if o.bypass:
            r["flow"].pop("state", None)
            for name in ("bypass", "bypassed", "alerted"):
                r["flow"].pop(name, None)
            r.pop("tcp", None)  # state and flags of the packets that were seen
    return json.dumps(r, sort_keys=True)


def flat(value, path=""):
    for k, v in value.items():
        name = path + "." + k if path else k
        if isinstance(v, dict):
            yield from flat(v, name)
        else:
            yield name, v


def counters(records, o):
    last = None
    for r in records:
        if r["event_type"] == "stats":
            last = r["stats"]
    if last is None:
        return {}
    skip = [re.compile(p) for p, _ in COUNTERS] + [re.compile(p) for p in o.not_counter]
    # what is 0 may be missing
    return {k: v for k, v in flat(last) if v != 0 and not any(s.search(k) for s in skip)}


class Judge:
    def __init__(self):
        self.bad = 0

    def say(self, text):
        self.bad += 1
        print(text)


def name(r):
    sid = r.get("alert", {}).get("signature_id", "")
    return " ".join(str(r.get(k, "-")) for k in
                    ("proto", "src_ip", "src_port", "dest_ip", "dest_port")) + " %s" % sid


def show(judge, kind, a, b):
    """What only one side has; what belongs together by name with the fields that differ."""
    if not a and not b:
        return
    judge.say("kind %s: %d only in the file run, %d only at the link"
              % (kind, sum(a.values()), sum(b.values())))
    left, right = ([json.loads(k) for k in sorted(side.elements())] for side in (a, b))
    lines = []
    for x in left:
        y = next((y for y in right if name(y) == name(x)), None)
        if y is None:
            lines.append("only in the file run: " + json.dumps(x)[:400])
            continue
        right.remove(y)
        p, q = dict(flat(x)), dict(flat(y))
        lines.append("%s: %s" % (name(x), ", ".join(
            "%s %s | %s" % (k, str(p.get(k, "-"))[:80], str(q.get(k, "-"))[:80])
            for k in sorted(set(p) | set(q)) if p.get(k) != q.get(k))))
    lines += ["only at the link: " + json.dumps(y)[:400] for y in right]
    for line in lines[:6]:
        print("  " + line)


def compare_records(o, judge, ref, link):
    dropped = set(DROPPED) | (set() if o.times else set(TIMES))
    if o.times:
        dropped -= set(TIMES)
    kinds = collections.defaultdict(lambda: (collections.Counter(), collections.Counter()))
    for side, records in enumerate((ref, link)):
        for r in records:
            kind = r["event_type"]
            if kind == "stats" or kind in o.kinds or (o.bypass and kind != "flow"):
                continue
            if kind == "alert" and r["alert"]["signature_id"] in o.not_sid:
                continue
            kinds[kind][side][key(r, o, dropped)] += 1
    said = []
    for kind in sorted(kinds):
        a, b = kinds[kind]
        said.append("%d %s" % (sum(b.values()), kind))
        show(judge, kind, a - b, b - a)
    if not kinds:
        judge.say("there is nothing to compare")
    return said


def check_ends(o, judge, link):
    others = []
    for r in link:
        if r["event_type"] != "flow":
            continue
        f = r["flow"]
        if f["reason"] != "forced":
            others.append("%s %s %s -> %s %s, %s/%s" % (
                r.get("proto"), r.get("src_ip"), r.get("src_port"), r.get("dest_ip"),
                r.get("dest_port"), f["state"], f["reason"]))
    if len(others) != o.let_run:
        judge.say("%d flows did not end by order, %d expected:" % (len(others), o.let_run))
        for line in sorted(others)[:5]:
            print("  " + line)


def compare_counters(o, judge, ref, link):
    a, b = counters(ref, o), counters(link, o)
    if not a or not b:
        judge.say("no statistics in %s run" % ("the file" if not a else "the link"))
    for name in sorted(set(a) | set(b)):
        if o.workers > 1 and re.search(r"max_|avg_", name):
            continue
        if a.get(name, 0) != b.get(name, 0):
            judge.say("counter %s: %s in the file run, %s at the link"
                      % (name, a.get(name, 0), b.get(name, 0)))
    return len(a)


def main():
    o = options()
    ref, link = read(o.file), read(o.link)
    judge = Judge()
    said = compare_records(o, judge, ref, link)
    if o.forced:
        check_ends(o, judge, link)
    if "stats" not in o.kinds and not o.bypass:
        said.append("%d counters" % compare_counters(o, judge, ref, link))
    if judge.bad:
        print("compare.py: %d differences (%s)" % (judge.bad, ", ".join(said)))
        sys.exit(1)
    print("equal: " + ", ".join(said))


if __name__ == "__main__":
    main()
