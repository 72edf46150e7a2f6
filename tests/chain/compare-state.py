#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Do splitter and inspector agree about every flow at its end?

usage: compare-state.py SPLITTER.csv INSPECTOR.csv

Flows are named by id and generation.  What the inspector saw of a flow and what
it was told to have passed by it have to be the flow's packets and bytes.
"""
import csv
import sys


def rows(path):
    with open(path, newline="", encoding="ascii") as f:
        return list(csv.DictReader(f))


def by_name(path):
    flows = {}
    for row in rows(path):
        name = int(row["id"]), int(row["generation"])
        if name in flows:
            sys.exit("%s: flow %d.%d ends twice" % (path, *name))
        flows[name] = row
    return flows


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    theirs, ours = by_name(sys.argv[1]), by_name(sys.argv[2])
    bad = 0
    for name in sorted(set(theirs) | set(ours)):
        a, b = theirs.get(name), ours.get(name)
        if a is None or b is None:
            bad += 1
            print("flow %d.%d: only the %s had it" % (*name, "splitter" if a else "inspector"))
            continue
        want = (int(a["packets_a"]) + int(a["packets_b"]), int(a["bytes_a"]) + int(a["bytes_b"]))
        have = int(b["packets_seen"]) + int(b["packets_passed"]), int(b["bytes"])
        if want != have:
            bad += 1
            print("flow %d.%d: packets, bytes: splitter %d, %d, inspector %d, %d (%s)"
                  % (*name, *want, *have, b["reason"]))
    passed = sum(int(b["packets_passed"]) for b in ours.values())
    print("flows: splitter %d, inspector %d; %d packets passed by"
          % (len(theirs), len(ours), passed))
    sys.exit(1 if bad or not theirs else 0)


if __name__ == "__main__":
    main()
