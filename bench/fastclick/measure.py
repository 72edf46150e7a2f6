#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""The runs of bench/fastclick/run, which makes what they need.

measure.py FASTCLICK BUILD HUGE-DIR WORK ROUNDS SECONDS PACKETS SIZES JSON
"""
import json
import os
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ("ring-pass", "link-pass", "ring-redo", "link-trust")


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(i, size):
    """TCP, one of 512 flows, size bytes without FCS; all checksums right."""
    src = socket.inet_aton(f"10.0.{i % 4}.{i % 128 + 1}")
    dst = socket.inet_aton("192.0.2.1")
    payload = bytes((i + k) & 0xFF for k in range(size - 54))
    tcp = struct.pack(">HHIIBBHHH", 1024 + i % 512, 80, i, 0, 5 << 4, 16, 8192, 0, 0)
    pseudo = src + dst + struct.pack(">BBH", 0, 6, len(tcp) + len(payload))
    tcp = tcp[:16] + struct.pack(">H", checksum(pseudo + tcp + payload)) + tcp[18:]
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(payload), i, 0, 64, 6, 0) + src + dst
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    return bytes(12) + b"\x08\x00" + ip + tcp + payload


def capture(path, n, size):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for i in range(n):
            p = frame(i, size)
            f.write(struct.pack("<IIII", i // 1000000, i % 1000000, len(p), len(p)) + p)


class Click:
    """A FastClick that runs."""

    def __init__(self, fastclick, build, huge, work, config, pcap):
        self.prefix = os.path.basename(work)
        self.huge = huge
        ctl = os.path.join(work, "ctl")
        if os.path.exists(ctl):
            os.unlink(ctl)
        self.log = open(os.path.join(work, "click.err"), "wb")
        self.process = subprocess.Popen(
            [f"{fastclick}/bin/click", "--dpdk", "-l", "0", "--file-prefix", self.prefix, "--no-pci",
             "--huge-dir", huge, "-m", "256", "--log-level", "error",
             "--vdev", f"net_pcap0,rx_pcap={pcap},infinite_rx=1", "--", "-u", ctl,
             f"{HERE}/{config}.click"],
            env=dict(os.environ, CLICKPATH=f"{build}/examples/fastclick"),
            stdout=self.log, stderr=self.log)
        end = time.monotonic() + 20
        while True:
            s = socket.socket(socket.AF_UNIX)
            try:
                s.connect(ctl)
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.stop()
                    sys.exit(f"run: FastClick does not start: {open(self.log.name).read()}")
                time.sleep(0.1)
        self.f = s.makefile("rwb")
        self.f.readline()

    def read(self, handler):
        self.f.write(f"READ {handler}\r\n".encode())
        self.f.flush()
        if not self.f.readline().startswith(b"200"):
            sys.exit(f"run: no handler {handler}")
        return int(self.f.read(int(self.f.readline().split()[1])))

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        for name in os.listdir(self.huge):
            if name.startswith(self.prefix + "map_"):
                os.unlink(os.path.join(self.huge, name))
        subprocess.run(["rm", "-rf", f"/var/run/dpdk/{self.prefix}"], check=False)


def run(kind, seconds, pcap, fastclick, build, huge, work):
    click = Click(fastclick, build, huge, work, kind.split("-")[0], pcap)
    nf = subprocess.Popen(
        [f"{build}/bench/fastclick-nf", "--proc-type=secondary", "--file-prefix", click.prefix,
         "--no-pci", "--lcores=9@1", "--log-level", "error", "--", kind],
        stdout=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 20
        while click.read("done.count") < 50000:
            if nf.poll() is not None or time.monotonic() > end:
                sys.exit(f"run: {kind}: nothing comes back")
            time.sleep(0.1)
        a, t = click.read("done.count"), time.monotonic()
        time.sleep(seconds)
        b, t = click.read("done.count"), time.monotonic() - t
        nf.send_signal(signal.SIGTERM)
        packets, ns, unknown, _ = nf.communicate(timeout=10)[0].split()
    finally:
        if nf.poll() is None:
            nf.kill()
            nf.wait()
        click.stop()
    if int(unknown) != 0:
        sys.exit(f"run: {kind}: {unknown} of {packets} packets without what the NF needs")
    return {"pps": (b - a) / t, "nf_ns_per_packet": float(ns), "packets": int(packets)}


def main():
    fastclick, build, huge, work, rounds, seconds, packets, sizes, out = sys.argv[1:]
    result = {"bar": "link-pass : ring-pass >= 1.0", "sizes": {}}
    for size in map(int, sizes.split(",")):
        pcap = f"{work}/{size}.pcap"
        capture(pcap, int(packets), size)
        runs = {kind: [] for kind in KINDS}
        for _ in range(int(rounds)):
            for kind in KINDS:
                runs[kind].append(run(kind, float(seconds), pcap, fastclick, build, huge, work))
        ratio = {}
        for a, b in (("link-pass", "ring-pass"), ("link-trust", "ring-redo")):
            each = [x["pps"] / y["pps"] for x, y in zip(runs[a], runs[b])]
            ratio[f"{a} : {b}"] = {"median": statistics.median(each), "min": min(each), "max": max(each)}
        print(f"{size} bytes, {rounds} rounds of {seconds} s: medians")
        for kind in KINDS:
            print(f"  {kind:10}  {statistics.median(r['pps'] for r in runs[kind]) / 1e6:7.3f} Mpps back   "
                  f"NF {statistics.median(r['nf_ns_per_packet'] for r in runs[kind]):7.1f} ns per packet")
        for name, r in ratio.items():
            print(f"  {name}: {r['median']:.2f} ({r['min']:.2f} to {r['max']:.2f})")
        sys.stdout.flush()
        result["sizes"][size] = {"runs": runs, "ratio": ratio}
    if out:
        with open(out, "w") as f:
            json.dump(result, f, indent=1)


main()
