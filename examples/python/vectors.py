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
            place = bytes.fromhex(v["record"])
            seal = int.from_bytes(bytes.fromhex(v["seal"]), "little")
            record = field.read(v["present"], place, seal, v["start"], v["length"])
            self.assertEqual(record.size if record else 0, v["reads"])
            if record:
                self.assertEqual(record, abi.parse_record(place[: v["reads"]]))
            return v["reads"]

        read = self.each("records", "sealed", check, 91)
        self.assertGreater(sum(size != 0 for size in read), 20)

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
