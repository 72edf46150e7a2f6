#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Reads and writes handlers of a Click that listens on a Unix socket (click -u).

ask.py SOCKET read HANDLER...    prints one line each
ask.py SOCKET write HANDLER [VALUE]
ask.py SOCKET until HANDLER VALUE SECONDS    waits; status 1: it is another one still
"""
import socket
import sys
import time


def connect(path, seconds=10):
    end = time.monotonic() + seconds
    while True:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(path)
            return s.makefile("rwb")
        except OSError:
            if time.monotonic() > end:
                sys.exit(f"ask.py: nobody listens at {path}")
            time.sleep(0.05)


def line(f):
    text = f.readline().decode().rstrip("\r\n")
    if not text:
        sys.exit("ask.py: Click has gone")
    return text


def status(f):
    text = line(f)
    while text[3:4] == "-":
        text = line(f)
    return text


def read(f, handler):
    f.write(f"READ {handler}\r\n".encode())
    f.flush()
    text = status(f)
    if not text.startswith("200"):
        sys.exit(f"ask.py: {handler}: {text}")
    return f.read(int(line(f).split()[1])).decode().strip()


def main():
    path, verb, *rest = sys.argv[1:]
    f = connect(path)
    line(f)
    if verb == "read":
        for handler in rest:
            print(read(f, handler))
    elif verb == "write":
        f.write(f"WRITE {' '.join(rest)}\r\n".encode())
        f.flush()
        text = status(f)
        if not text.startswith("200"):
            sys.exit(f"ask.py: {rest[0]}: {text}")
    else:
        handler, value, seconds = rest
        end = time.monotonic() + float(seconds)
        while read(f, handler) != value:
            if time.monotonic() > end:
                sys.exit(f"ask.py: {handler} is {read(f, handler)}, not {value}, after {seconds} s")
            time.sleep(0.02)


main()
