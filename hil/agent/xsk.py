"""AF_XDP sockets: user memory, the four rings, binding, and the proof of the mode.

Numbers and layouts are those of linux/if_xdp.h. Ring indexes are 32-bit words that kernel and
user share; each is written by one side only. The kernel may look at them from another CPU at any
time, so on Arm a barrier has to lie between an entry and the index that publishes or takes it.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Optional

from . import bpf, netdev
from .events import Refused, Stop

_AF_XDP, _SOL_XDP = 44, 283
_MMAP_OFFSETS, _RX_RING, _TX_RING, _UMEM_REG = 1, 2, 3, 4
_FILL_RING, _COMPLETION_RING, _STATISTICS, _OPTIONS = 5, 6, 7, 8
_PGOFF = {_RX_RING: 0, _TX_RING: 0x80000000, _FILL_RING: 1 << 32, _COMPLETION_RING: 0x180000000}
_COPY, _ZEROCOPY, _USE_NEED_WAKEUP = 1 << 1, 1 << 2, 1 << 3
BIND_FLAGS = {"auto": 0, "copy": _COPY, "zero-copy": _ZEROCOPY}
_OPTIONS_ZEROCOPY = 1
_NEED_WAKEUP = 1
_STATISTIC_NAMES = (
    *("rx_dropped", "rx_invalid_descs", "tx_invalid_descs"),
    *("rx_ring_full", "rx_fill_ring_empty_descs", "tx_ring_empty_descs"),
)
# sendto() answers these while the kernel is busy with what it has.
_BUSY = (errno.EAGAIN, errno.EBUSY, errno.ENOBUFS, errno.ENETDOWN)

_libc = ctypes.CDLL(None, use_errno=True)
_gate = threading.Lock()
_gate.acquire()


def barrier() -> None:
    """Order memory accesses before and after it: one lock's release, then its acquire."""
    _gate.release()
    _gate.acquire()


class Ring:
    """One ring as this side sees it; `words` is the number of 64-bit words of an entry.

    `producer` and `consumer` count up for ever, modulo 2**32.
    """

    def __init__(self, fd: int, kind: int, entries: int, offsets: tuple[int, ...], words: int):
        producer, consumer, descriptors, flags = offsets
        self._memory = mmap.mmap(
            fd, descriptors + entries * words * 8, mmap.MAP_SHARED, offset=_PGOFF[kind]
        )
        self._view = memoryview(self._memory)
        self._producer, self._consumer, self._flags = (
            self._view[offset : offset + 4].cast("I") for offset in (producer, consumer, flags)
        )
        self._entries = self._view[descriptors:].cast("Q")
        self._words = words
        self.size = entries

    @property
    def producer(self) -> int:
        return self._producer[0]

    @property
    def consumer(self) -> int:
        return self._consumer[0]

    @property
    def filled(self) -> int:
        """Entries that the producer has published and the consumer has not taken."""
        return (self._producer[0] - self._consumer[0]) & 0xFFFFFFFF

    @property
    def needs_wakeup(self) -> bool:
        return bool(self._flags[0] & _NEED_WAKEUP)

    def produce(self, words: list[int]) -> None:
        """Publish entries, given as a flat list of their words; the caller has looked for room."""
        count = len(words) // self._words
        start = self._producer[0] & (self.size - 1)
        head = min(count, self.size - start) * self._words
        at = start * self._words
        entries = memoryview(struct.pack(f"={len(words)}Q", *words)).cast("Q")
        self._entries[at : at + head] = entries[:head]
        if head < len(words):
            self._entries[: len(words) - head] = entries[head:]
        barrier()
        self._producer[0] = (self._producer[0] + count) & 0xFFFFFFFF

    def consume(self, limit: int) -> list[int]:
        """Take up to `limit` entries, as a flat list of their words."""
        count = min(self.filled, limit)
        barrier()
        start = self._consumer[0] & (self.size - 1)
        head = min(count, self.size - start)
        words = self._entries[start * self._words : (start + head) * self._words].tolist()
        words += self._entries[: (count - head) * self._words].tolist()
        barrier()
        self._consumer[0] = (self._consumer[0] + count) & 0xFFFFFFFF
        return words

    def close(self) -> None:
        for view in (self._producer, self._consumer, self._flags, self._entries, self._view):
            view.release()
        self._memory.close()


class XskSocket:
    """One AF_XDP socket with memory and program of its own, open from the constructor to close().

    The program is attached before the bind: some drivers (igb) send nothing in zero copy without
    one, and some close and reopen the port when it comes. Chunks are 4096 bytes because 2048 leave
    1792 behind the kernel's headroom, and am65-cpsw refuses zero copy below 2024.
    """

    def __init__(
        self,
        ifname: str,
        queue: int,
        *,
        xdp: str,
        bind: str,
        ring_size: int = 2048,
        chunk_bytes: int = 4096,
        busy_timeout_s: float = 10.0,
        carrier_timeout_s: float = 15.0,
        stop: Optional[Stop] = None,
    ) -> None:
        self._stop = stop
        self.ifname, self.queue, self.xdp, self.asked = ifname, queue, xdp, bind
        self.ifindex = netdev.require(ifname)
        self.chunk_bytes, self.ring_size = chunk_bytes, ring_size
        self.bind_waited_s = 0.0
        self._descriptors: list[int] = []
        self._rings: list[Ring] = []
        if not netdev.is_up(ifname):
            raise Refused("interface", errno.ENETDOWN, f"{ifname} is down; set it up first")
        try:
            self._open()
            self._attach(busy_timeout_s, carrier_timeout_s)
            self._bind(busy_timeout_s)
            bpf.update_map(self._map, queue, self._socket.fileno())
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        try:
            self._socket = socket.socket(_AF_XDP, socket.SOCK_RAW)
        except OSError as error:
            number = error.errno or 0
            raise Refused("socket", number, f"AF_XDP socket: {error.strerror}") from error
        # the first half of the chunks is for reception, the second for transmission
        self.memory = mmap.mmap(-1, 2 * self.ring_size * self.chunk_bytes)
        self.data = memoryview(self.memory)
        base = ctypes.c_char.from_buffer(self.memory)
        request = struct.pack(
            "=QQIIII", ctypes.addressof(base), len(self.memory), self.chunk_bytes, 0, 0, 0
        )
        del base  # or the memory could not be closed
        self._set("umem", _UMEM_REG, request)
        for kind in (_FILL_RING, _COMPLETION_RING, _RX_RING, _TX_RING):
            self._set("ring", kind, struct.pack("=I", self.ring_size))
        offsets = struct.unpack("=16Q", self._socket.getsockopt(_SOL_XDP, _MMAP_OFFSETS, 128))
        fd = self._socket.fileno()
        for place, (kind, words) in enumerate(
            ((_RX_RING, 2), (_TX_RING, 2), (_FILL_RING, 1), (_COMPLETION_RING, 1))
        ):
            four = offsets[4 * place : 4 * place + 4]
            self._rings.append(Ring(fd, kind, self.ring_size, four, words))
        self.rx, self.tx, self.fill, self.completion = self._rings
        self.fill.produce([number * self.chunk_bytes for number in range(self.ring_size)])

    def _set(self, stage: str, option: int, value: bytes) -> None:
        try:
            self._socket.setsockopt(_SOL_XDP, option, value)
        except OSError as error:
            reason = f"AF_XDP {stage} of {self.chunk_bytes} byte chunks: {error.strerror}"
            raise Refused(stage, error.errno or 0, reason) from error

    def _attach(self, busy_timeout_s: float, carrier_timeout_s: float) -> None:
        """The program of an agent that was just killed may still be there: busy is asked again."""
        self._map = bpf.create_xskmap(self.queue + 1)
        self._descriptors.append(self._map)
        program = bpf.load_program(bpf.redirect_program(self._map))
        self._descriptors.append(program)
        refusal: Optional[Refused] = None

        def attached() -> bool:
            nonlocal refusal
            try:
                self._descriptors.append(bpf.attach(program, self.ifindex, self.xdp))
                refusal = None
            except Refused as error:
                refusal = error
            return not refusal or refusal.number != errno.EBUSY

        self._poll(attached, busy_timeout_s)
        if refusal:
            if refusal.number == errno.EBUSY:
                refusal.reason += (
                    f"; another one holds {self.ifname}: ip link set {self.ifname} xdp off"
                )
            raise self._explained(refusal)
        if not self._poll(lambda: netdev.has_carrier(self.ifname), carrier_timeout_s):
            reason = f"{self.ifname}: no carrier {carrier_timeout_s:g} s after the program came"
            raise Refused("attach", errno.ENETDOWN, reason)

    def _bind(self, busy_timeout_s: float) -> None:
        """A socket that was closed a moment ago is released later: busy is asked again."""
        flags = BIND_FLAGS[self.asked] | _USE_NEED_WAKEUP
        address = struct.pack("=HHIII", _AF_XDP, flags, self.ifindex, self.queue, 0)
        start = time.monotonic()
        number = 0

        def bound() -> bool:
            nonlocal number
            result = _libc.bind(self._socket.fileno(), address, len(address))
            number = ctypes.get_errno() if result else 0
            return number != errno.EBUSY

        self._poll(bound, busy_timeout_s)
        self.bind_waited_s = time.monotonic() - start
        if number:
            what = f"bind {self.ifname} queue {self.queue} for {self.asked}"
            busy = "; another socket holds the queue" if number == errno.EBUSY else ""
            raise self._explained(Refused("bind", number, f"{what}: {os.strerror(number)}{busy}"))

    def _explained(self, error: Refused) -> Refused:
        """The same refusal with what the driver claims to be able to do."""
        driver, _ = netdev.driver_info(self.ifname)
        features, _ = netdev.xdp_capabilities(self.ifindex)
        claims = ", ".join(features) if features else "none"
        reason = f"{error.reason} (driver {driver} on {os.uname().release}, XDP features: {claims})"
        return Refused(error.stage, error.number, reason)

    def _poll(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Ask until it is true; False when the time is over or it is asked to stop."""
        end = time.monotonic() + timeout_s
        while not condition():
            if self._stop or time.monotonic() >= end:
                return False
            time.sleep(0.02)
        return True

    def proof(self) -> dict[str, Any]:
        """What the kernel says about socket and program now."""
        options = struct.unpack("=I", self._socket.getsockopt(_SOL_XDP, _OPTIONS, 4))[0]
        attached, program_id = netdev.attached_program(self.ifindex)
        return {
            "ifname": self.ifname,
            "queue": self.queue,
            "mac": netdev.mac(self.ifname),
            "asked": self.asked,
            "mode": "zero-copy" if options & _OPTIONS_ZEROCOPY else "copy",
            "xdp_mode": attached,
            "program_id": program_id,
            "bind_waited_s": round(self.bind_waited_s, 3),
        }

    def statistics(self) -> dict[str, int]:
        """XDP_STATISTICS; older kernels know only the first three."""
        data = self._socket.getsockopt(_SOL_XDP, _STATISTICS, 48)
        return dict(zip(_STATISTIC_NAMES, struct.unpack(f"={len(data) // 8}Q", data)))

    def rings(self) -> dict[str, dict[str, int]]:
        """Indexes of all four rings, for a diagnosis."""
        names = ("rx", "tx", "fill", "completion")
        return {
            name: {"producer": ring.producer, "consumer": ring.consumer}
            for name, ring in zip(names, self._rings)
        }

    def wait_readable(self, timeout_s: float) -> None:
        """Sleep until frames arrive; it also wakes a driver that ran out of fill entries."""
        poller = select.poll()
        poller.register(self._socket.fileno(), select.POLLIN)
        poller.poll(timeout_s * 1000)

    def kick(self) -> int:
        """Have the kernel look at the transmit ring; 0, or the error of one that is busy now.

        Refused for an error that will not pass.
        """
        if _libc.sendto(self._socket.fileno(), None, 0, socket.MSG_DONTWAIT, None, 0) >= 0:
            return 0
        number = ctypes.get_errno()
        if number not in _BUSY:
            raise Refused("send", number, f"sendto: {os.strerror(number)}")
        return number

    def close(self) -> None:
        """Release socket, memory and program, in the order that leaves nothing behind."""
        for ring in self._rings:
            ring.close()
        self._rings = []
        for descriptor in reversed(self._descriptors):
            os.close(descriptor)
        self._descriptors = []
        if hasattr(self, "_socket"):
            self._socket.close()
        if hasattr(self, "data"):
            self.data.release()
            self.memory.close()

    def __enter__(self) -> XskSocket:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()
