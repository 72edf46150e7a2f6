#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Have data flows the control sessions that tshark finds, and the NF of these?

usage: compare-masters.py CAPTURE FLOWS.csv SEEN.csv...

tshark says of a packet of FTP's data, of RTP and RTCP, in which frame its address and port
were announced; of EPRT it says what it has, but does not look for that (4.0).  FLOWS.csv: the splitter's; SEEN.csv: one of each inspector.  Says how many
data flows there are, how many of them the splitter knows the right control session of, and
how many are at another NF than their control session.
"""
import csv
import ipaddress
import subprocess
import sys

FIELDS = ["frame.number", "ip.proto", "ipv6.nxt", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst",
          "tcp.srcport", "udp.srcport", "tcp.dstport", "udp.dstport",
          "ftp.eprt.ip", "ftp.eprt.ipv6", "ftp.eprt.port",
          "ftp-data.setup-frame", "rtp.setup-frame", "rtcp.setup-frame"]


def flow(proto, a, x, b, y):
    ends = sorted([(ipaddress.ip_address(a), int(x)), (ipaddress.ip_address(b), int(y))],
                  key=lambda e: (e[0].version, e[0], e[1]))
    return int(proto), *ends


def of_tshark(capture):
    """The control session of every data flow."""
    command = ["tshark", "-n", "-r", capture, "-T", "fields", "-E", "occurrence=f",
               "-Y", "(tcp || udp) && !icmp && !icmpv6", "-d", "tcp.port==20,data"]
    for field in FIELDS:
        command += ["-e", field]
    text = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                          text=True).stdout
    frames, said, eprt = {}, [], {}
    for line in text.splitlines():
        w = line.split("\t")
        proto, src, dst, x, y = (w[i] or w[i + 1] for i in (1, 3, 5, 7, 9))
        frames[int(w[0])] = flow(proto, src, x, dst, y)
        for frame in filter(None, w[14:]):
            said.append((int(w[0]), int(frame)))
        if w[13]:
            eprt[ipaddress.ip_address(w[11] or w[12]), int(w[13])] = frames[int(w[0])]
    masters = {f: {eprt[end]} for f in frames.values() for end in f[1:] if end in eprt}
    for frame, setup in said:
        masters.setdefault(frames[frame], set()).add(frames[setup])
    return masters


def rows(path):
    with open(path, newline="", encoding="ascii") as f:
        return list(csv.DictReader(f))


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    masters = of_tshark(sys.argv[1])
    of_id, ids, said, nf = {}, {}, {}, {}
    for r in rows(sys.argv[2]):
        if r["proto"] not in ("6", "17") or r["fragment"] == "1":
            continue
        name = int(r["id"]), int(r["generation"])
        of_id[name] = flow(r["proto"], r["addr_a"], r["port_a"], r["addr_b"], r["port_b"])
        ids.setdefault(of_id[name], []).append(name)
        if r["master"]:
            said[name] = int(r["master"]), int(r["master_generation"])
    for i, path in enumerate(sys.argv[3:]):
        for r in rows(path):
            nf.setdefault((int(r["id"]), int(r["generation"])), set()).add(i)
    data = right = wrong = elsewhere = split = 0
    for kind, controls in sorted(masters.items(), key=str):
        homes = set().union(*(nf[name] for c in controls for name in ids[c]))
        for name in ids[kind]:
            data += 1
            split += len(nf[name]) != 1
            elsewhere += not nf[name] <= homes
            right += name in said and of_id[said[name]] in controls
            wrong += name in said and of_id[said[name]] not in controls
    others = sum(1 for name in said if of_id[name] not in masters)
    print("data %d right %d wrong %d others %d elsewhere %d split %d"
          % (data, right, wrong, others, elsewhere, split))


if __name__ == "__main__":
    main()
