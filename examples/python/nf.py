#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""An NF: counts per flow, forgets flows when told, has them shunted, as ../inspector."""

import argparse
import json
import signal
import sys

import nfmeta
from nfmeta import abi

REPORT = "packets bytes bursts flows packets_without_record packets_without_flow packets_invalid packets_bad_checksum drops_asked digest"
FLOW_STATE = "opened deleted replaced not_in_snapshot reset open deletes_unknown packets_after_delete messages snapshots verdicts_sent verdicts_seen"


class Flow:
    """generation is None until a message or a record says it."""

    __slots__ = ("generation", "open", "mark", "packets", "bytes", "said")

    def __init__(self, generation, mark):
        self.generation, self.mark = generation, mark
        self.open, self.said = True, False
        self.packets = self.bytes = 0


class Flows:
    """Flows by the upfront NF's id.  One that ended stays, closed: its generation tells
    late messages from those about the next flow."""

    def __init__(self):
        self.by_id = {}
        self.mark = 0  # snapshots that began
        self.count = dict.fromkeys(FLOW_STATE.split(), 0)

    def _open(self, flow_id, generation):
        f = self.by_id[flow_id] = Flow(generation, self.mark)
        self.count["opened"] += 1
        return f

    def _close(self, f, why):
        f.open = False
        self.count[why] += 1

    def packet(self, r):
        """The flow of a record; None: it has ended, and this came too late."""
        f = self.by_id.get(r.flow_id)
        generation = r.flow_gen if r.size >= 16 else f and f.generation
        if f and f.open:
            if f.generation is None or f.generation == generation:
                f.mark = self.mark
                return f
            if abi.newer(f.generation, generation):
                self.count["packets_after_delete"] += 1
                return None
            self._close(f, "replaced")
        elif f and generation is not None and not abi.newer(generation, f.generation):
            self.count["packets_after_delete"] += 1
            return None
        return self._open(r.flow_id, generation)

    def there_is(self, e):
        f = self.by_id.get(e.flow_id)
        if f and f.open and f.generation is None:
            f.generation = e.flow_gen
        if f and f.mark == self.mark:  # a message about one before changes nothing
            if abi.newer(f.generation, e.flow_gen) or (not f.open and f.generation == e.flow_gen):
                return
        if f and f.open and f.generation != e.flow_gen:
            self._close(f, "replaced")
        if not (f and f.open):
            f = self._open(e.flow_id, e.flow_gen)
        f.mark = self.mark

    def update(self, e):
        f = self.by_id.get(e.flow_id)
        if f and f.open and f.generation == e.flow_gen:
            self.count["verdicts_seen"] += e.action in (abi.ACTION_DROP, abi.ACTION_SHUNT)

    def delete(self, e):
        f = self.by_id.get(e.flow_id)
        if f and f.open and f.generation in (None, e.flow_gen):
            f.generation, f.mark = e.flow_gen, self.mark
            self._close(f, "deleted")
            return
        self.count["deletes_unknown"] += 1
        if f and not abi.newer(e.flow_gen, f.generation):
            return
        if f and f.open:
            self._close(f, "replaced")
        f = self.by_id[e.flow_id] = Flow(e.flow_gen, self.mark)
        f.open = False

    def forget(self, why, all=True):
        for f in self.by_id.values():
            if f.open and (all or f.mark != self.mark):
                self._close(f, why)

    def message(self, m):
        h = m.header
        self.count["messages"] += 1
        if h.type == abi.SNAPSHOT and h.flags & abi.FIRST:
            self.mark += 1
        what = {abi.NEW: self.there_is, abi.SNAPSHOT: self.there_is, abi.UPDATE: self.update, abi.DELETE: self.delete}
        if h.type in what:
            for e in m.entries:
                what[h.type](e)
        if h.type == abi.RESET:
            self.forget("reset")
        if h.type == abi.SNAPSHOT and h.flags & abi.LAST:
            self.forget("not_in_snapshot", all=False)
            self.count["snapshots"] += 1


class Nf:
    def __init__(self, link, verdict_after, drop_every):
        self.link, self.verdict_after, self.drop_every = link, verdict_after, drop_every
        self.flows, self.verdicts = Flows(), []
        self.count = dict.fromkeys(REPORT.split(), 0)

    def packet(self, p):
        c, r = self.count, p.record
        c["packets"] += 1
        c["bytes"] += p.length
        if self.drop_every and c["packets"] % self.drop_every == 0:
            p.how = abi.DROP
            c["drops_asked"] += 1
        if r is None:  # nothing is known about it: look at its bytes
            c["packets_without_record"] += 1
            c["packets_without_flow"] += 1
            return
        c["packets_invalid"] += not r.flags & abi.L2_VALID
        c["packets_bad_checksum"] += r.flags & (abi.L3_CSUM_BAD | abi.L4_CSUM_BAD) != 0
        c["digest"] += sum(p.read(r.l3_off, 1)) + sum(p.read(r.payload_off, 1))
        if not r.flags & abi.FLOW_KNOWN:
            c["packets_without_flow"] += 1
            return
        f = self.flows.packet(r)
        if f is None:
            return
        f.packets += 1
        f.bytes += p.length
        if self.verdict_after and f.packets >= self.verdict_after and not f.said and f.generation is not None:
            f.said = True
            self.verdicts.append(abi.Verdict(r.flow_id, f.generation, abi.ACTION_SHUNT))

    def reply(self):
        """Before the packets go back: an upfront NF that has them knows the verdict."""
        some = self.verdicts[:85]  # as many as a message can have
        if some and self.link.flow_reply(abi.VERDICT, some):
            del self.verdicts[:85]
            self.flows.count["verdicts_sent"] += len(some)

    def run(self, stop):
        told = self.link.carrier in (abi.CARRIER_RING, abi.CARRIER_INBAND)
        if told:
            self.link.subscribe(abi.NEW, abi.UPDATE, abi.DELETE)
        for packets in self.link.bursts(stop):
            self.count["bursts"] += bool(packets)
            for p in packets:
                self.packet(p)
            self.reply()
            if told:
                for m in self.link.messages():
                    self.flows.message(m)

    def report(self):
        self.flows.forget("open")
        self.count["flows"] = self.flows.count["opened"]
        state = {"sync": "off", "gaps": 0, "stale": 0}
        if self.link.carrier != 0:
            state = self.link.flow_stats()
        return {
            "program": "nf.py", "version": nfmeta.version(), "queue": self.link.queue, **self.count,
            "ns_per_packet": self.link.busy * 1e9 / max(self.count["packets"], 1),
            "flow_state": {**self.flows.count, "refused": self.link.refused, **state},
        }  # fmt: skip


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--link", default="ids", help="name of the link (ids)")
    args.add_argument("--queue", type=int, default=0, help="its queue (0)")
    args.add_argument("--file-prefix", default="nfmeta", help="the splitter's (nfmeta)")
    args.add_argument("--timeout", type=float, default=10, help="seconds to wait for the link (10)")
    args.add_argument("--drop-every", type=int, default=0, help="have every Nth packet dropped")
    args.add_argument("--verdict-after", type=int, default=0, help="have a flow shunted after N packets")
    args.add_argument("--json", help="write a report")
    args.error = lambda text: args.exit(1, f"nf.py: {text} (see --help)\n")
    args = args.parse_args()

    signals = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: signals.append(number))
    try:
        with nfmeta.Link(args.link, args.queue, args.file_prefix, args.timeout) as link:
            nf = Nf(link, args.verdict_after, args.drop_every)
            try:
                nf.run(lambda: signals)
            finally:
                report = nf.report()
                if args.json:
                    with open(args.json, "w") as file:
                        json.dump(report, file, indent=2)
    except nfmeta.Error as error:
        print(f"nf.py: {error}", file=sys.stderr)
        return 3 if error.is_gone else 1
    except (OSError, ValueError) as error:
        print(f"nf.py: {error}", file=sys.stderr)
        return 1
    state = report["flow_state"]
    print(
        f"nf.py: {report['packets']} packets,"
        f" {report['packets'] - report['packets_without_record']} with a record;"
        f" flows: opened {state['opened']}, deleted {state['deleted']}; verdicts {state['verdicts_sent']}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
