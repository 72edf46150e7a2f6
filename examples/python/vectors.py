#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""usage: vectors.py [FOLDER]: nfmeta/abi.py against the vectors of bindings-spec."""

import json
import pathlib
import sys
import unittest

from nfmeta import abi

folder = pathlib.Path(__file__).resolve().parents[2] / "bindings-spec/vectors"


def number(value):
    """As a vector lists it: 64 bits are text."""
    if isinstance(value, list):
        return tuple(map(number, value))
    return int(value, 0) if isinstance(value, str) else value


class Vectors(unittest.TestCase):
    def each(self, name, kind, check, at_least):
        """What check() says of each vector."""
        vectors = json.loads((folder / f"{name}.json").read_text())[kind]
        self.assertGreaterEqual(len(vectors), at_least)
        said = []
        for v in vectors:
            with self.subTest(v["name"]):
                said.append(check(v))
        return said

    def test_records(self):
        def check(v):
            data = bytes.fromhex(v["bytes"])
            record = abi.parse_record(data)
            self.assertEqual(record.size, len(data))
            for name in v.keys() - {"name", "bytes", "user"}:
                self.assertEqual(getattr(record, name), number(v[name]), name)
            self.assertEqual(record.user.hex(), v.get("user", "00" * 16))

        self.each("records", "records", check, 12)

    def test_sealed(self):
        def check(v):
            field = abi.Field(1, number(v["key"]), 0, 0, v["placement"], v["size"])
            record = place = bytes.fromhex(v["record"])
            if field.placement == abi.HEADROOM:  # the seal lies inside
                place = place[:28] + bytes.fromhex(v["seal"]) + place[32:]
            seal = int.from_bytes(bytes.fromhex(v["seal"]), "little")
            got = field.read(v["present"], place, seal, v["start"], v["length"])
            self.assertEqual(got.size if got else 0, v["reads"])
            if got:
                self.assertEqual(got, abi.parse_record(record[: v["reads"]]))
            return v["reads"]

        read = self.each("records", "sealed", check, 91)
        self.assertGreater(sum(size != 0 for size in read), 20)

    def test_handshakes(self):
        def check(v):
            data = bytes.fromhex(v["bytes"])
            s = abi.Handshake.parse(data, v["link"])
            fields = {f"field_{name}": value for name, value in s.field._asdict().items()}
            fields.update(s._asdict(), link=s.name, queues=tuple(map(tuple, s.queues)))
            for name in v.keys() - {"name", "bytes", "queues"}:
                wanted = v[name] if isinstance(fields[name], str) else number(v[name])
                self.assertEqual(fields[name], wanted, name)
            self.assertEqual(fields["queues"], tuple(map(tuple, v["queues"])))
            return v["name"], data

        good = dict(self.each("handshakes", "handshakes", check, 11))

        def judge(v):
            data = bytearray(good[v["of"]][: v["length"]].ljust(v["length"], b"\0"))
            own = abi.Handshake.parse(good[v["of"]], "demo")
            data[v["at"] : v["at"] + len(v["put"]) // 2] = bytes.fromhex(v["put"])
            try:
                s = abi.Handshake.parse(bytes(data), v["link"], own.dpdk_version, own.mbuf_layout)
                result = "accept" if s and s.ready(v["queue"]) else "again"
            except abi.Refused as refused:
                result = str(refused)
            self.assertEqual(result, v["result"])
            return result

        self.assertEqual(len(set(self.each("handshakes", "judged", judge, 96))), 9)

    def test_table_headers(self):
        def check(v):
            data = bytes.fromhex(v["header"])
            try:
                t = abi.parse_table_header(data, v["length"])
                for name, value in t._asdict().items():
                    self.assertEqual(value, number(v[name]), name)
                result = "accept"
            except abi.Refused as refused:
                result = str(refused)
            self.assertEqual(result, v["result"])
            return result

        self.assertEqual(len(set(self.each("table", "headers", check, 20))), 3)

    def test_flow_keys(self):
        def check(v):
            offsets = {name: v[name] for name in ("flags", "l3_off", "l4_off", "payload_off")}
            record = abi.parse_record(bytes(64))._replace(**offsets)
            packet = bytes.fromhex(v["packet"])
            key, reverse = abi.flow_key(packet, record, v["policy"] & 1, v["stripped"])
            self.assertEqual(key.hex(), v["key"])
            self.assertEqual(reverse, v["reverse"])

        self.each("flow-keys", "vectors", check, 61)

    def test_messages(self):
        def check(v):
            data = bytes.fromhex(v["message"])
            length, message = abi.parse_message(data, v["up"])
            self.assertEqual(length, v["length"])
            for name, value in message.header._asdict().items():
                self.assertEqual(value, number(v[name]), name)
            self.assertEqual(
                [entry._asdict() for entry in message.entries],
                [{name: number(x) for name, x in entry.items()} for entry in v["entries"]],
            )
            if v["up"] and "newer minor" not in v["name"]:  # what an NF writes
                self.assertEqual(abi.pack_entries(message.entries), data[40:])
            return v["type"]

        self.assertEqual(len(set(self.each("messages", "messages", check, 46))), 11)

    def test_judged(self):
        def check(v):
            try:
                length, message = abi.parse_message(bytes.fromhex(v["bytes"]), v["up"])
            except abi.Malformed:
                self.assertEqual("refuse", v["result"])
                return "refuse"
            if length is None:
                self.assertEqual("more", v["result"])
                return "more"
            self.assertEqual("deliver" if message else "skip", v["result"])
            self.assertEqual(length, v["length"])
            return v["result"]

        self.assertEqual(len(set(self.each("messages", "judged", check, 117))), 4)

    def test_table(self):
        def check(v):
            entry = abi.TableFlow.parse(bytes.fromhex(v["entry"]))
            for name in v.keys() - {"name", "entry"}:
                value = getattr(entry, name)
                if name in ("port_a", "port_b"):
                    self.assertEqual(int.from_bytes(value, "big"), v[name], name)
                elif isinstance(value, bytes):
                    self.assertEqual(value.hex(), v[name], name)
                else:
                    self.assertEqual(value, number(v[name]), name)

        self.each("table", "entries", check, 23)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        folder = pathlib.Path(sys.argv.pop(1))
    unittest.main()
