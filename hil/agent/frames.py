"""Test frames: each tells which stream and which number it is, and proves its every byte. Pure.

    0   destination, source          6 + 6 bytes
    12  ethertype 0x88B5             IEEE 802 local experimental 1: no stack takes it for its own
    14  magic "HILF"
    18  stream, sequence             4 + 4 bytes, big endian
    26  length of the whole frame    2 bytes, big endian
    28  payload                      a fixed pattern, XORed word by word with a key that is made of
                                     stream and sequence: so it also tells which frame a damaged
                                     header belongs to

Sizes count what is handed to the NIC, without FCS, as xdpsock's `-s` does.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from typing import Any, NamedTuple

ETHERTYPE = 0x88B5
MAGIC = b"HILF"
HEADER = struct.Struct("!6s6sH4sIIH")
MIN_SIZE_BYTES = 60
MAX_SIZE_BYTES = 9000

# SHAKE has no short cycles and is the same on every Python.
_PATTERN = hashlib.shake_256(b"hil payload").digest(MAX_SIZE_BYTES)
# Odd, so that the key can be turned back into a sequence; else any will do.
_SEQUENCE_FACTOR, _STREAM_FACTOR = 0x9E3779B1, 0x85EBCA77
_WORD = 1 << 32
# A frame with a foreign magic or stream is ours when at most this part of its bytes is wrong.
_RECOGNISED = 1 / 8
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
    length = size_bytes - HEADER.size
    key = (stream * _STREAM_FACTOR + sequence * _SEQUENCE_FACTOR) % _WORD
    return _xor(_PATTERN[:length], (key.to_bytes(4, "big") * (length // 4 + 1))[:length])


def _xor(left: bytes, right: bytes) -> bytes:
    number = int.from_bytes(left, "big") ^ int.from_bytes(right, "big")
    return number.to_bytes(len(left), "big")


def told_by_payload(stream: int, frame: bytes) -> int | None:
    """The sequence that most words of the payload stand for; None for a frame without payload."""
    words = min(len(frame), MAX_SIZE_BYTES) // 4 - HEADER.size // 4
    if words <= 0:
        return None
    body = frame[HEADER.size : HEADER.size + 4 * words]
    keys = Counter(struct.unpack(f"!{words}I", _xor(body, _PATTERN[: 4 * words])))
    ((key, _),) = keys.most_common(1)
    sequence: int = (key - stream * _STREAM_FACTOR) * pow(_SEQUENCE_FACTOR, -1, _WORD) % _WORD
    return sequence


def check(frame: bytes, dst: bytes | None = None) -> Checked | None:
    """None for a frame that is not ours; with `dst`, the destination has to be right too."""
    if len(frame) < HEADER.size:
        return None
    to, _, ethertype, magic, stream, sequence, size_bytes = HEADER.unpack_from(frame)
    if ethertype != ETHERTYPE or magic != MAGIC:
        return None
    fault: dict[str, Any] | None = None
    if len(frame) != size_bytes:
        fault = _length_fault(size_bytes, len(frame))
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


def _differing(left: bytes, right: bytes) -> int:
    pairs = zip(left, right)
    return sum(a != b for a, b in pairs) + abs(len(left) - len(right))


def _length_fault(expected: int, got: int) -> dict[str, Any]:
    return {"what": "length", "expected": expected, "got": got}


def _header_sequence(frame: bytes) -> int | None:
    return int(HEADER.unpack_from(frame)[5]) if len(frame) >= HEADER.size else None


class Tally:
    """Accounts for the frames 0 ... count-1 of one stream as they arrive.

    With `dst` the destination is checked too. The source has to stay what the first right frame
    said.
    """

    def __init__(self, stream: int, count: int, size_bytes: int, dst: bytes | None = None) -> None:
        self.stream = stream
        self._dst = dst
        self._src: bytes | None = None
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
        checked = check(frame, self._dst)
        ours = checked and checked.stream == self.stream and checked.sequence < self.count
        if not (checked and ours and self._right(checked, frame)):
            checked = self._damaged(frame, checked)
        if checked is None:
            self.foreign += 1
            return
        sequence, fault = checked.sequence, checked.fault
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

    def _right(self, checked: Checked, frame: bytes) -> bool:
        if checked.fault or len(frame) != self.size_bytes:
            return False
        self._src = self._src or frame[6:12]
        return frame[6:12] == self._src

    def _damaged(self, frame: bytes, checked: Checked | None) -> Checked | None:
        """Which of our frames this one was, and what is wrong with it; None when it is none.

        Of the numbers that header and payload tell, the one that explains more bytes is right.
        """
        if checked and not checked.fault and checked.stream != self.stream:
            return None  # whole, of another stream
        told = (_header_sequence(frame), told_by_payload(self.stream, frame))
        numbers = [number for number in told if number is not None and number < self.count]
        if not numbers:
            return None
        wanted = {number: self._expected(number, frame) for number in numbers}
        wrong = {number: _differing(wanted[number], frame) for number in numbers}
        number = min(numbers, key=lambda candidate: wrong[candidate])
        named_ours = checked is not None and checked.stream == self.stream
        if not named_ours and wrong[number] > len(frame) * _RECOGNISED:
            return None
        if len(frame) != self.size_bytes:
            return Checked(self.stream, number, _length_fault(self.size_bytes, len(frame)))
        return Checked(self.stream, number, _first_difference(wanted[number], frame, 0))

    def _expected(self, number: int, frame: bytes) -> bytes:
        dst = frame[:6] if self._dst is None else self._dst
        return build(self.stream, number, self.size_bytes, dst, self._src or frame[6:12])

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
