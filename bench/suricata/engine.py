# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Suricata as a process: started, watched, ended, read."""
import json
import os
import shutil
import signal
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OTHER_CORE, WORKER_CORE = 0, 1
PATIENCE = 180  # seconds that a run may take


class Failed(Exception):
    """A run that did not work; the text says why."""


def pin(cores):
    return lambda: os.sched_setaffinity(0, cores)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def tail(path, lines=6):
    return " | ".join(read(path).strip().splitlines()[-lines:])


class Suricata:
    """One run of it. Its worker threads are those with a name W#..."""

    def __init__(self, o, source, rules, arguments, values):
        self.dir = f"{o.work}/suricata"
        shutil.rmtree(self.dir, ignore_errors=True)
        os.mkdir(self.dir)
        conf = read(f"{HERE}/suricata.yaml")
        values = {"PLUGINS": "", "AF_PACKET": "  []", "ENCRYPTED": "default", "BYPASS": "no"} | values
        values |= {"LOG_DIR": self.dir, "WORKER_CORE": WORKER_CORE, "OTHER_CORE": OTHER_CORE}
        values["RULE_FILES"] = f"rule-files: [ {rules} ]" if rules else "rule-files: []"
        for name, value in values.items():
            conf = conf.replace(f"@{name}@", str(value))
        with open(f"{self.dir}/suricata.yaml", "w", encoding="ascii") as f:
            f.write(conf)
        self.log = f"{self.dir}/suricata.log"
        self.err = open(f"{self.dir}/stderr", "wb")
        command = [o.suricata, "-c", f"{self.dir}/suricata.yaml", "-l", self.dir, *arguments]
        if source.startswith("afp"):
            command = ["ip", "netns", "exec", o.netns, *command]
        self.proc = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self.err,
            stderr=self.err,
            preexec_fn=pin({OTHER_CORE, WORKER_CORE}),
        )
        self.cores = set()  # where the busiest worker may run
        self.workers = {}  # thread id: last CPU time seen, ns
        self.until = time.monotonic() + PATIENCE

    def cpu(self):
        """CPU time of the workers, ns; of those that have ended, what was seen last."""
        base = f"/proc/{self.proc.pid}/task"
        if not self.workers:
            try:
                for tid in os.listdir(base):
                    if read(f"{base}/{tid}/comm").startswith("W#"):
                        self.workers[tid] = 0
            except FileNotFoundError:
                pass
        for tid in self.workers:
            seen = read(f"{base}/{tid}/schedstat").split()
            if seen:
                self.workers[tid] = max(self.workers[tid], int(seen[0]))
                if self.workers[tid] > 20_000_000 and not self.cores:  # it is at work, and pinned
                    self.cores = set(read(f"{base}/{tid}/status").split("Cpus_allowed_list:")[-1].split()[:1])
        return sum(self.workers.values())

    def check_time(self, what):
        if time.monotonic() > self.until:
            raise Failed(f"{what} takes longer than {PATIENCE} s: {tail(self.log)}")

    def started(self):
        """Waits until its threads are at work."""
        while "Engine started" not in read(self.log):
            if self.proc.poll() is not None:
                raise Failed(f"Suricata ended: {tail(self.log)} | {tail(f'{self.dir}/stderr')}")
            self.check_time("the start of Suricata")
            time.sleep(0.02)

    def quiet(self):
        """Waits until the workers have had nothing to do for a while."""
        last, since = self.cpu(), time.monotonic()
        while time.monotonic() - since < 0.15:
            time.sleep(0.01)
            now = self.cpu()
            if now - last > 1_000_000:
                last, since = now, time.monotonic()
            self.check_time("what Suricata has to do")
        return self.cpu()

    def watch(self, over=lambda: False):
        """Until it ends by itself, or until over() says so. What is known of its workers
        then is at most 4 ms old."""
        while self.proc.poll() is None and not over():
            self.cpu()
            self.check_time("the run")
            time.sleep(0.004)
        return self.cpu()

    def ended(self):
        while self.proc.poll() is None:
            self.check_time("the end of Suricata")
            time.sleep(0.01)

    def stop(self):
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
            try:
                self.proc.wait(30)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
        self.err.close()

    def outcome(self, **more):
        """What a run has given, if it ended as it should."""
        if self.proc.returncode != 0:
            raise Failed(f"Suricata ended with status {self.proc.returncode}: {tail(self.log)}")
        if self.cores - {str(WORKER_CORE)}:
            raise Failed(f"the worker is not pinned to core {WORKER_CORE}, but to {self.cores}")
        stats, canaries = None, 0
        for line in read(f"{self.dir}/eve.json").splitlines():
            if '"event_type":"stats"' in line:
                stats = line
            # With many rules some other one may match, too.
            elif '"event_type":"alert"' in line and '"signature_id":1,' in line:
                canaries += 1
        if stats is None:
            raise Failed(f"Suricata wrote no stats: {tail(self.log)}")
        return {"cpu_ns": self.cpu(), "stats": json.loads(stats)["stats"], "canaries": canaries} | more


def number(stats, name):
    for part in name.split("."):
        stats = stats.get(part, {})
    return stats if isinstance(stats, int) else 0
