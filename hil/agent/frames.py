"""Test frames: each tells which stream and which number it is, and proves its every byte. Pure.

    0   destination, source          6 + 6 bytes
    12  ethertype 0x88B5             IEEE 802 local experimental 1: no stack takes it for its own
    14  magic "HILF"
    18  stream, sequence             4 + 4 bytes, big endian
    26  length of the whole frame    2 bytes, big endian
    28  payload                      a slice of a fixed pattern that stream and sequence choose

Sizes count what is handed to the NIC, without FCS, as xdpsock's `-s` does.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any, NamedTuple

ETHERTYPE = 0x88B5
MAGIC = b"HILF"
HEADER = struct.Struct("!6s6sH4sIIH")
MIN_SIZE_BYTES = 60
MAX_SIZE_BYTES = 9000

_PERIOD = 4096
# SHAKE has no short cycles and is the same on every Python.
_PATTERN = hashlib.shake_256(b"hil payload").digest(_PERIOD + MAX_SIZE_BYTES)
# How many wrong frames a result lists; the counts have no limit.
_LISTED = 16


class Checked(NamedTuple):
    """What one received frame is; `fault` None means that every byte is right."""

    stream: int
    sequence: int
    fault: dict[str, Any] | None


def build(stream: int, sequence: int, size_bytes: int, dst: bytes, src: bytes) -> bytes:
    """One frame. ValueError for a size that no frame can have."""
    if not MIN_SIZE_BYTES <= size_bytes <= MAX_SIZE_BYTES:
        raise ValueError(f"frame size {size_bytes}: use {MIN_SIZE_BYTES} to {MAX_SIZE_BYTES}")
    header = HEADER.pack(dst, src, ETHERTYPE, MAGIC, stream, sequence, size_bytes)
    return header + payload(stream, sequence, size_bytes)


def payload(stream: int, sequence: int, size_bytes: int) -> bytes:
    """The bytes behind the header of a frame of this size."""
    start = (stream * 389 + sequence * 31) % _PERIOD
    return _PATTERN[start : start + size_bytes - HEADER.size]


def check(frame: bytes, dst: bytes | None = None) -> Checked | None:
    """None for a frame that is not ours; with `dst`, the destination has to be right too."""
    if len(frame) < HEADER.size:
        return None
    to, _, ethertype, magic, stream, sequence, size_bytes = HEADER.unpack_from(frame)
    if ethertype != ETHERTYPE or magic != MAGIC:
        return None
    fault: dict[str, Any] | None = None
    if len(frame) != size_bytes:
        fault = {"what": "length", "expected": size_bytes, "got": len(frame)}
    elif dst is not None and to != dst:
        fault = _first_difference(dst, to, 0)
    else:
        expected = payload(stream, sequence, size_bytes)
        if frame[HEADER.size :] != expected:
            fault = _first_difference(expected, frame[HEADER.size :], HEADER.size)
    return Checked(stream, sequence, fault)


def _first_difference(expected: bytes, got: bytes, base: int) -> dict[str, Any]:
    pairs = enumerate(zip(expected, got))
    offset, (wanted, found) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
    return {"what": "byte", "offset": base + offset, "expected": wanted, "got": found}


class Tally:
    """Accounts for the frames 0 ... count-1 of one stream as they arrive."""

    def __init__(self, stream: int, count: int, size_bytes: int) -> None:
        self.stream = stream
        self.count = count
        self.size_bytes = size_bytes
        self.frames = 0
        self.foreign = 0
        self._seen = bytearray(count)
        self._highest = -1
        self._duplicates: list[int] = []
        self._reordered: list[int] = []
        self._corrupt: list[dict[str, Any]] = []

    @property
    def complete(self) -> bool:
        return self.frames == self.count

    def add(self, frame: bytes) -> None:
        """Account for one frame; those of other streams are only counted as foreign."""
        checked = check(frame)
        if checked is None or checked.stream != self.stream or checked.sequence >= self.count:
            self.foreign += 1
            return
        sequence, fault = checked.sequence, checked.fault
        if fault is None and len(frame) != self.size_bytes:
            fault = {"what": "length", "expected": self.size_bytes, "got": len(frame)}
        if fault is not None:
            self._corrupt.append({"sequence": sequence, **fault})
        if self._seen[sequence]:
            self._duplicates.append(sequence)
            return
        self._seen[sequence] = 1
        self.frames += 1
        if sequence < self._highest:
            self._reordered.append(sequence)
        self._highest = max(self._highest, sequence)

    def result(self) -> dict[str, Any]:
        """Counts, and the first 16 indexes of each kind of damage."""
        missing = [number for number in range(self.count) if not self._seen[number]]
        return {
            "frames": self.frames,
            "foreign": self.foreign,
            "missing": _listed(missing),
            "duplicates": _listed(self._duplicates),
            "reordered": _listed(self._reordered),
            "corrupt": _listed(self._corrupt),
        }

    @property
    def intact(self) -> bool:
        """Every frame once, in order, unharmed."""
        return self.complete and not (self._duplicates or self._reordered or self._corrupt)


def _listed(items: list[Any]) -> dict[str, Any]:
    return {"count": len(items), "first": items[:_LISTED]}
