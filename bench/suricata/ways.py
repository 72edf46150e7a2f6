# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""The ways in: a run of Suricata with packets from a file, from AF_PACKET, from a link."""
import json
import os
import shutil
import subprocess
import time

from engine import HERE, OTHER_CORE, PATIENCE, Failed, Suricata, number, pin, read, tail

WINDOW = 1000  # packets on their way through an inline Suricata
AT_ONCE = 20000  # packets for one that only listens; its ring has room for more

AF_PACKET_IDS = """\
  - interface: in1
    threads: 1
    cluster-id: 98
    cluster-type: cluster_flow
    defrag: yes
    tpacket-v3: yes
    ring-size: 30000
    block-size: 1048576
"""
AF_PACKET_IPS = """\
  - interface: in1
    threads: 1
    cluster-id: 98
    cluster-type: cluster_flow
    defrag: yes
    tpacket-v3: no
    ring-size: 8192
    copy-mode: ips
    copy-iface: out0
  - interface: out0
    threads: 1
    cluster-id: 97
    cluster-type: cluster_flow
    defrag: yes
    tpacket-v3: no
    ring-size: 64
    copy-mode: ips
    copy-iface: in1
"""


class Machine:
    """Everything that runs need: options, traces, rules, what was learnt in warm-up."""

    def __init__(self, o):
        self.o = o
        self.work = o.work
        self.traces, self.rules = {}, {}
        self.empty = {}  # by way in: CPU time of a worker that got no packets, ns
        self.nfmeta = ""  # version of the library in the splitter

    def make_traces(self, names):
        for name in names:
            path = f"{self.work}/{name}.pcap"
            made = subprocess.run([f"{HERE}/gen.py", name, path], check=True, capture_output=True, text=True)
            self.traces[name] = json.loads(made.stdout) | {"path": path}
        # one packet: for what a run costs without any
        some = next(iter(self.traces.values()))["path"]
        with open(some, "rb") as f:
            head = f.read(24 + 16)
            packet = f.read(int.from_bytes(head[32:36], "little"))
        with open(f"{self.work}/one.pcap", "wb") as f:
            f.write(head + packet)

    def make_rules(self, counts):
        for count in counts:
            path = f"{self.work}/bench-{count}.rules"
            subprocess.run([f"{HERE}/rules.py", str(count), path], check=True)
            self.rules[count] = path

    def loops(self, trace):
        packets = self.o.packets * (2 if trace == "elephants" else 1)  # most of them pass by
        return max(1, round(packets / self.traces[trace]["packets"]))

    def suricata(self, cell, arguments, values=None):
        rules = self.rules[cell.rules] if cell.rules else None
        return Suricata(self.o, cell.source, rules, arguments, values or {})

    def run(self, cell, empty=False):
        """One run. "empty": with one packet, for what it costs without any."""
        way = {"pcap": self.run_pcap, "afp": self.run_afp, "link": self.run_link}[cell.source.split("-")[0]]
        return way(cell, empty)

    # ---- a capture file: the same one again and again, by its links in a folder ---------

    def run_pcap(self, cell, empty):
        folder = f"{self.work}/in"
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        trace, loops = self.traces[cell.trace], self.loops(cell.trace)
        if empty:
            os.link(f"{self.work}/one.pcap", f"{folder}/one.pcap")
        else:
            for i in range(loops):
                os.link(trace["path"], f"{folder}/{i:04}.pcap")
        s = self.suricata(cell, ["--runmode", "single", "-r", folder])
        try:
            s.watch()
        finally:
            s.stop()
        return s.outcome(offered=1 if empty else loops * trace["packets"])

    # ---- AF_PACKET -----------------------------------------------------------------------

    def send(self, path, count, *how):
        command = ["ip", "netns", "exec", self.o.netns, self.o.send, "in0", path, str(count), *how]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, preexec_fn=pin({OTHER_CORE}))
        if done.returncode != 0:
            raise Failed(f"sending does not work: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def run_afp(self, cell, _empty):
        trace = self.traces[cell.trace]
        count = self.loops(cell.trace) * trace["packets"]
        inline = cell.source == "afp-ips"
        s = self.suricata(
            cell,
            ["--af-packet", "--runmode", "workers"],
            {"AF_PACKET": AF_PACKET_IPS if inline else AF_PACKET_IDS},
        )
        try:
            s.started()
            before = s.quiet()
            if inline:
                sent = self.send(trace["path"], count, "behind", "out1", str(WINDOW))
            else:
                sent = self.send(trace["path"], count, "asleep", next(iter(s.workers)), str(AT_ONCE))
            cpu = s.quiet() - before
        finally:
            s.stop()
        r = s.outcome(cpu_ns=cpu, offered=sent["packets"], seconds=sent["seconds"])
        r["dropped"] = number(r["stats"], "capture.kernel_drops") + sent["lost"]
        return r

    # ---- link ------------------------------------------------------------------------------

    def start_splitter(self, path, count, report, log):
        command = [self.o.splitter, "--in", f"pcap:{path}", "--loop", "0", "--count", str(count), "--link", "bench"]
        command += ["--file-prefix", self.o.file_prefix, "--json", report, "--wait-nf", str(PATIENCE)]
        command += ["--", "--huge-dir", self.o.huge_dir]
        with open(log, "wb") as out:
            proc = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=pin({OTHER_CORE})
            )
        until = time.monotonic() + 20
        while "is ready" not in read(log):
            if proc.poll() is not None or time.monotonic() > until:
                proc.kill()
                proc.wait()
                raise Failed(f"the splitter does not start: {tail(log)}")
            time.sleep(0.02)
        return proc

    def run_link(self, cell, empty):
        trace = self.traces[cell.trace]
        report, mine, log = (f"{self.work}/{name}" for name in ("splitter.json", "nfmeta.json", "splitter.log"))
        for path in (report, mine):
            if os.path.exists(path):
                os.unlink(path)
        args = {"link": f"compare={self.o.compare}", "link-ips": "mode=ips"}.get(cell.source, "mode=ids")
        args = f"link=bench;file-prefix={self.o.file_prefix};stats={mine};wait=20;{args}"
        values = {"PLUGINS": f"plugins: [ {self.o.plugin} ]"}
        if cell.source == "link-shunt":
            values |= {"ENCRYPTED": "bypass", "BYPASS": "yes"}
        count = 1 if empty else self.loops(cell.trace) * trace["packets"]
        splitter = self.start_splitter(trace["path"], count, report, log)
        s = None
        try:
            s = self.suricata(cell, ["--capture-plugin=nfmeta", f"--capture-plugin-args={args}"], values)
            proc_ns = s.watch(lambda: splitter.poll() is not None)
            s.ended()
            splitter.wait(20)
        except subprocess.TimeoutExpired:
            raise Failed(f"the splitter does not end after Suricata: {tail(s.log)}") from None
        finally:
            if s is not None:
                s.stop()
            if splitter.poll() is None:
                splitter.kill()
                splitter.wait()
        if splitter.returncode != 0:
            raise Failed(f"the splitter ended with status {splitter.returncode}: {tail(log)} | {tail(s.log)}")
        if not os.path.exists(mine):
            raise Failed(f"the plug-in wrote no stats: {tail(s.log)}")
        up, plugin = json.loads(read(report)), json.loads(read(mine))
        self.nfmeta = up["version"]
        # The worker's loop ends with the link, and then Suricata lets it poll for its end. So the
        # plug-in's figure is taken, and what was seen until the splitter ended is there to check it.
        # A worker that waits for the splitter polls: what that takes is no packet's.
        total = plugin["total"]
        return s.outcome(
            cpu_ns=total["cpu_ns"] - total["idle_cpu_ns"],
            idle_ns=total["idle_cpu_ns"],
            proc_ns=proc_ns,
            offered=up["packets_in"],
            seconds=up["seconds"],
            lost=up["lost"],
            shunted=up["flow_state"]["packets_shunted"],
            compare=plugin.get("compare"),
        )
