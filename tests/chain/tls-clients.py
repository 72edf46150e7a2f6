#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Records real TLS clients.

usage: tls-clients.py FILE NAME...

openssl's s_client asks openssl's s_server, in network namespaces of their own, for a
file of 200 kB, as a client of each server NAME. dumpcap records it on the veth pair
between them, whose offloads are off: the capture has sizes and checksums as on a wire.
Exit status 77: such namespaces cannot be made here.
"""
import fcntl
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
import array

OFF = (0x17, 0x1F, 0x1E, 0x21, 0x24, 0x2C)  # ETHTOOL_STXCSUM, STSO, SSG, ..., SGSO, SGRO


def offloads_off(device):
    """Runs inside a namespace."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for command in OFF:
        value = array.array("I", (command, 0))
        request = struct.pack("16sP", device.encode(), value.buffer_info()[0]) + bytes(16)
        try:
            fcntl.ioctl(s, 0x8946, request)  # SIOCETHTOOL
        except OSError:
            if command == 0x17:
                raise


def run(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, **more)


def inside(space, *command):
    return ("ip", "netns", "exec", space) + command


def ask(space, name):
    for _ in range(50):
        got = subprocess.run(
            inside(space, "openssl", "s_client", "-connect", "192.0.2.2:443", "-servername",
                   name, "-quiet", "-ign_eof"),
            input=b"GET /data HTTP/1.0\r\n\r\n", stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=20, check=False).stdout
        if got:
            break
        time.sleep(0.1)  # the server is not there yet
    if len(got) < 200000:
        sys.exit("tls-clients.py: %s: %u bytes came" % (name, len(got)))


def record(path, names, folder, a, b):
    run("ip", "link", "add", "veth0", "netns", a, "type", "veth", "peer", "name", "veth0",
        "netns", b)
    for space, number in ((a, "192.0.2.1/24"), (b, "192.0.2.2/24")):
        run(*inside(space, "ip", "address", "add", number, "dev", "veth0"))
        run(*inside(space, sys.executable, os.path.abspath(__file__), "--off", "veth0"))
        run(*inside(space, "ip", "link", "set", "veth0", "up"))
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
        "-nodes", "-subj", "/CN=test.example", "-days", "2", "-keyout", folder + "/key",
        "-out", folder + "/cert")
    with open(folder + "/data", "wb") as f:
        f.write(os.urandom(200000))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    serve = subprocess.Popen(inside(b, "openssl", "s_server", "-accept", "443", "-WWW", "-quiet",
                                    "-key", "key", "-cert", "cert"), cwd=folder, **quiet)
    with open(path, "wb") as out:
        dump = subprocess.Popen(inside(a, "dumpcap", "-q", "-i", "veth0", "-f", "tcp", "-P", "-w",
                                       "-"), stdout=out, stderr=subprocess.DEVNULL)
    try:
        while os.path.getsize(path) < 24 and dump.poll() is None:
            time.sleep(0.05)  # it does not listen yet
        for name in names:
            ask(a, name)
        time.sleep(0.5)
    finally:
        dump.terminate()
        dump.wait()
        serve.kill()
        serve.wait()


def main():
    if sys.argv[1:2] == ["--off"]:
        offloads_off(sys.argv[2])
        return
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    a, b = "nfm%u-a" % os.getpid(), "nfm%u-b" % os.getpid()
    made = []
    try:
        for space in (a, b):
            run("ip", "netns", "add", space)
            made.append(space)
    except subprocess.CalledProcessError as e:
        print("tls-clients.py: no network namespaces: %s" % e.stderr.decode().strip(),
              file=sys.stderr)
        for space in made:
            run("ip", "netns", "del", space)
        sys.exit(77)
    try:
        with tempfile.TemporaryDirectory() as folder:
            record(sys.argv[1], sys.argv[2:], folder, a, b)
    except subprocess.CalledProcessError as e:
        sys.exit("tls-clients.py: %s: %s" % (" ".join(e.cmd), e.stderr.decode().strip()))
    finally:
        for space in made:
            run("ip", "netns", "del", space)


if __name__ == "__main__":
    main()
