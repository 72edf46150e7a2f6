#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Was every flow at one NF only, with all its packets?

usage: compare-queues.py [--pairs] SPLITTER.csv INSPECTOR.csv...

The first is what the splitter wrote of its flows, the others what its NFs did, each of
one queue.  Prints the number of flows that more than one NF saw packets of ("split"), and of those
whose packets, seen and passed by, are not all the splitter had ("short").  With --pairs also the
pairs of addresses whose flows were not all at one NF.  With none of these the exit status is 0.  Not for runs in which NFs died or sessions were moved.
"""
import csv
import sys


def main():
    args = [a for a in sys.argv[1:] if a != "--pairs"]
    if len(args) < 2:
        sys.exit(__doc__)
    nfs, pairs = {}, {}
    for path in args[1:]:
        with open(path, encoding="ascii") as f:
            for r in csv.DictReader(f):
                nfs.setdefault((r["id"], r["generation"]), []).append(
                    (path, int(r["packets_seen"]), int(r["packets_passed"])))
    split = short = flows = 0
    with open(args[0], encoding="ascii") as f:
        for r in csv.DictReader(f):
            flows += 1
            seen = nfs.get((r["id"], r["generation"]), [])
            split += len(seen) > 1
            pairs.setdefault((r["addr_a"], r["addr_b"]), set()).update(s[0] for s in seen)
            short += sum(s + p for _, s, p in seen) != int(r["packets_a"]) + int(r["packets_b"])
    apart = sum(len(p) > 1 for p in pairs.values())
    print("flows %d split %d short %d pairs %d apart %d" % (flows, split, short, len(pairs), apart))
    sys.exit(1 if split or short or flows == 0 or (apart and len(args) < len(sys.argv) - 1) else 0)


if __name__ == "__main__":
    main()
