# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""A queue of a link, by the C functions of libnfmeta.

C moves packets and messages; what is in them Python reads from memory itself (abi.py).
"""

import ctypes
import signal
import time
from ctypes import c_char_p, c_int, c_uint16, c_uint32, c_uint64, c_uint8, c_void_p, string_at
from struct import Struct

from . import abi

# The version this was written for; LD_LIBRARY_PATH says where, if it is not installed.
_lib = ctypes.CDLL("libnfmeta.so.0.1")

BURST = 32
CHECK_EVERY = 0.25  # seconds

EAGAIN = 11
ENOPRIMARY, EPRIMARYDEAD, ENOLINK = 2001, 2002, 2012
ECLOSING, EPRIMARYGONE, EMESSAGE, EFENCED = 2016, 2017, 2020, 2023


class _EalOpts(ctypes.Structure):
    _fields_ = (("sz", c_uint32), ("timeout_ms", c_uint32), ("file_prefix", c_char_p), ("log_file", c_char_p))


def _function(name, result, *arguments):
    function = getattr(_lib, name)
    function.restype, function.argtypes = result, arguments
    return function


_error = _function("nfmeta_error", c_char_p)
_strerror = _function("nfmeta_strerror", c_char_p, c_int)
_eal_attach = _function("nfmeta_eal_attach", c_int, c_void_p)
_eal_detach = _function("nfmeta_eal_detach", None)
_link_attach = _function("nfmeta_link_attach", c_int, c_char_p, c_uint16, c_uint32, c_void_p)
_link_check = _function("nfmeta_link_check", c_int, c_void_p)
_link_detach = _function("nfmeta_link_detach", c_int, c_void_p)
_link_shared = _function("nfmeta_link_shared", c_void_p, c_void_p)
_recv_burst = _function("nfmeta_recv_burst", c_uint16, c_void_p, c_void_p, c_void_p, c_uint16)
_return_burst = _function("nfmeta_return_burst", c_uint16, c_void_p, c_void_p, c_char_p, c_uint16)
_flow_subscribe = _function("nfmeta_flow_subscribe", c_int, c_void_p, c_uint64)
_flow_next = _function("nfmeta_flow_next", c_int, c_void_p, c_void_p)
_flow_reply = _function("nfmeta_flow_reply", c_int, c_void_p, c_uint8, c_char_p, c_uint16)
_flow_stats = _function("nfmeta_flow_stats", c_int, c_void_p, c_uint16, c_void_p)


class Error(Exception):
    """A refusal of the library: its sentence, and the positive number in .code."""

    def __init__(self, rc):
        super().__init__(_error().decode())
        self.code = -rc
        self.name = _strerror(rc).decode()

    @property
    def is_gone(self):
        """The upfront NF died, or has cut this NF off: end the process."""
        return self.code in (EPRIMARYGONE, EFENCED)


def _try(rc):
    if rc < 0:
        raise Error(rc)
    return rc


def _patiently(attempt, timeout, again):
    """attempt(milliseconds), in slices: Python hears no signal while it is in C."""
    end = time.monotonic() + timeout
    while True:
        left = end - time.monotonic()
        rc = attempt(int(max(0, min(left, 0.2)) * 1000))
        if rc >= 0:
            return
        if -rc not in again or left <= 0:
            raise Error(rc)


class _Undisturbed:
    """No signal comes in between, and so no exception of a handler."""

    ALL = signal.valid_signals()

    def __enter__(self):
        self.before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, self.ALL)
        except BaseException:  # of one that came before
            signal.pthread_sigmask(signal.SIG_SETMASK, self.before)
            raise

    def __exit__(self, *_):
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)


class _Mbuf:
    """Where the fields of struct rte_mbuf are, as the link says (section 7)."""

    NAMES = (
        "buf_addr data_off refcnt nb_segs port ol_flags packet_type pkt_len data_len"
        " vlan_tci vlan_tci_outer buf_len pool next tx_offload"
    ).split()
    WANTED = {"buf_addr": "Q", "data_off": "H", "ol_flags": "Q", "pkt_len": "I", "data_len": "H", "next": "Q"}

    def __init__(self, layout):
        self.size = layout[0]
        at = dict(zip(self.NAMES, layout[1:]))
        form, end = "<", 0
        self.order = sorted(self.WANTED, key=at.get)
        for name in self.order:
            form += f"{at[name] - end}x{self.WANTED[name]}"
            end = at[name] + Struct("<" + self.WANTED[name]).size
        if self.order != list(self.WANTED):
            raise ValueError(f"the fields of the mbuf are in another order: {self.order}")
        self.unpack_from = Struct(form).unpack_from


class Packet:
    """A packet that this NF holds: .record (or None), .length, and what is to happen
    to it, .how, which is FORWARD until it is set."""

    __slots__ = ("mbuf", "record", "length", "how", "_start", "_data_len", "_next", "_link")

    def read(self, offset, size):
        """So many bytes of the packet from there on, less at its end."""
        if offset < 0 or size < 0:
            raise ValueError(f"offset {offset}, size {size}: both are 0 or more")
        if offset + size <= self._data_len:
            return string_at(self._start + offset, size)
        return self.data[offset : offset + size] if offset < self.length else b""

    @property
    def data(self):
        """A copy of the whole packet, over all segments."""
        data, after = string_at(self._start, self._data_len), self._next
        while after:
            buf_addr, data_off, _, _, data_len, after = self._link.mbuf(after)
            data += string_at(buf_addr + data_off, data_len)
        return data


class Link:
    """A queue of a link, as a context manager.  One per process, one thread."""

    def __init__(self, name, queue=0, file_prefix=None, timeout=10.0, log_file=None):
        if not 0 <= queue < 64:
            raise ValueError(f"queue {queue}: a link has 0 to 63")
        if not timeout >= 0:
            raise ValueError(f"timeout {timeout}: seconds are wanted")
        opts = _EalOpts(
            ctypes.sizeof(_EalOpts), 0,
            file_prefix and file_prefix.encode(), log_file and log_file.encode(),
        )  # fmt: skip

        def attach_eal(ms):
            opts.timeout_ms = ms
            return _eal_attach(ctypes.byref(opts))

        start = time.monotonic()
        link = c_void_p()
        _patiently(attach_eal, timeout, (ENOPRIMARY, EPRIMARYDEAD))
        try:
            left = timeout - (time.monotonic() - start)
            _patiently(
                lambda ms: _link_attach(name.encode(), queue, ms, ctypes.byref(link)), left, (ENOLINK,)
            )
            size = c_uint32.from_address(_link_shared(link) + 12).value
            shared = abi.Handshake.parse(string_at(_link_shared(link), size), name)
        except BaseException:
            if link:
                _link_detach(link)
            _eal_detach()
            raise
        self.name, self.queue = name, queue
        self._link = link
        self.field, self.carrier = shared.field, shared.flow_carrier
        self._mbuf = _Mbuf(shared.mbuf_layout)
        self._pkts = (c_uint64 * BURST)()
        self._held = {}  # address: FORWARD, as it goes back if the NF fails
        self._batch = c_void_p()
        self._told = 0
        self.busy = 0.0  # seconds with packets in bursts()
        self.refused = 0  # messages that were none

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Gives back what is held, and leaves the queue."""
        if self._link is None:
            return
        link = self._link
        try:
            # packets of a link that is gone must not be touched
            if _link_check(link) in (0, -ECLOSING):
                self._give_back(list(self._held.items()))
        finally:
            self._link = None
            self._held.clear()
            try:
                _try(_link_detach(link))
            finally:
                _eal_detach()

    def _open(self):
        if self._link is None:
            raise ValueError(f"link {self.name} is closed")
        return self._link

    # ---- packets

    def mbuf(self, address):
        """buf_addr, data_off, ol_flags, pkt_len, data_len, next"""
        return self._mbuf.unpack_from(string_at(address, self._mbuf.size))

    def _packet(self, address):
        p = Packet()
        f = self.field
        raw = string_at(address, self._mbuf.size)
        buf_addr, start, flags, p.length, p._data_len, p._next = self._mbuf.unpack_from(raw)
        p.mbuf, p.how, p._link, p._start = address, abi.FORWARD, self, buf_addr + start
        if not flags & f.flag:
            p.record = None
            return p
        seal_size = 2
        if f.placement == abi.HEADROOM:
            raw, seal_size = string_at(buf_addr, f.offset + f.size), 4
        place = raw[f.offset : f.offset + f.size]
        seal = int.from_bytes(raw[f.seal_offset : f.seal_offset + seal_size], "little")
        p.record = f.read(True, place, seal, start, p.length)
        return p

    def recv_burst(self):
        """Packets, up to BURST of them; none: there are none now."""
        link = self._open()
        # An exception in between, as Ctrl-C is one, must not lose what C has given.
        with _Undisturbed():
            n = _recv_burst(link, self._pkts, None, BURST)
            addresses = self._pkts[:n]
            self._held.update(dict.fromkeys(addresses, abi.FORWARD))
        return [self._packet(address) for address in addresses]

    def _give_back(self, held):
        for i in range(0, len(held), BURST):
            part = held[i : i + BURST]
            n = len(part)
            how = bytes([h for _, h in part])
            with _Undisturbed():
                self._pkts[:n] = [address for address, _ in part]
                _return_burst(self._link, self._pkts, how, n)
                for address, _ in part:
                    del self._held[address]

    def return_burst(self, packets):
        """Gives packets back, each as its .how says; all of them or none."""
        if self._link is None:
            return  # close() has given them back
        held = {p.mbuf: p.how for p in packets}
        for p in packets:
            if p.mbuf not in self._held:
                raise ValueError("a packet is given back that is not held")
            if p.how not in (abi.FORWARD, abi.DROP, abi.BACKWARD):
                raise ValueError(f"how {p.how!r}: FORWARD, DROP or BACKWARD is wanted")
        self._give_back(list(held.items()))

    def check(self):
        """False: the link closes.  Raises Error when it is gone (EPRIMARYGONE, EFENCED)."""
        rc = _link_check(self._open())
        if rc == -ECLOSING:
            return False
        _try(rc)
        return True

    def bursts(self, stop=lambda: False):
        """Bursts of packets, for a loop, until stop() is true or the link has closed.

        A burst is given back when the loop comes for the next one, or is left.  An empty
        one comes when there is nothing: look for messages then, too.
        """
        closing, next_check, idle = False, 0, 0
        while not stop():
            start = time.perf_counter()
            packets = self.recv_burst()
            told = self._told
            try:
                yield packets
            finally:
                self.return_burst(packets)
            if packets:
                self.busy += time.perf_counter() - start
            if packets or self._told != told:
                idle = 0
            elif closing:
                return
            else:
                idle += 1
                time.sleep(0 if idle < 100 else 0.0002)
            if time.monotonic() >= next_check:
                next_check = time.monotonic() + CHECK_EVERY
                closing = not self.check()

    # ---- flow state

    def subscribe(self, *types):
        """Says which messages this NF wants; SNAPSHOT and RESET come with any."""
        _try(_flow_subscribe(self._open(), sum(1 << t for t in types)))

    def messages(self):
        """The messages whose turn it is.  After every burst, all of them."""
        while True:
            rc = _flow_next(self._open(), ctypes.byref(self._batch))
            if rc == 0:
                return
            self._told += 1
            if rc == -EMESSAGE:
                self.refused += 1  # the library has asked for a snapshot
                continue
            _try(rc)
            header = string_at(self._batch.value, 40)
            data = string_at(self._batch.value, abi.message_length(header))
            _, message = abi.parse_message(data)
            if message is not None:
                yield message

    def flow_reply(self, type, entries):
        """Tells the upfront NF.  False: there is no room now, try again later."""
        if not entries or not 0 <= type < 256:
            raise ValueError(f"type {type} with {len(entries)} entries: a type is 0 to 255, and one entry is wanted")
        rc = _flow_reply(self._open(), type, abi.pack_entries(entries), len(entries))
        if rc == -EAGAIN:
            return False
        _try(rc)
        return True

    def flow_stats(self):
        """What the library counted: sync (name of the state), gaps, stale."""
        stats = Struct("<II9QII")
        data = ctypes.create_string_buffer(stats.pack(stats.size, *bytes(12)), stats.size)
        _try(_flow_stats(self._open(), self.queue, data))
        values = stats.unpack(data)
        return {
            "sync": ("off", "lost", "loading", "synced")[values[1]],
            "gaps": values[8],
            "stale": values[9],
        }


def version():
    return _function("nfmeta_version", c_char_p)().decode()
