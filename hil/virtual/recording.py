r"""A recorded console as chunks and the moments at which they came. Pure.

The best clock that a recording has is used for all of it:

1. the stamps of our own console log, which are moments of arrival and no part of the text
2. the kernel's `[   12.345678] `, which are the moments of printing
3. none: the text takes the time that it needs at 115200 baud

A line without a stamp follows the line before it at that speed, too. A clock that goes back, or
ahead by more than an hour, belongs to another boot, which goes on where the one before has ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from hil.console.lines import clean, without_stamps
from hil.console.printk import split

# 115200 baud: ten bits on the line are one byte.
BYTES_PER_SECOND = 11520
LONGEST_PAUSE_S = 3600.0
# A longer line is not there all at once: a tenth of a second of the line's time.
_CHUNK_BYTES = BYTES_PER_SECOND // 10
# Stamps are looked for in so much of a line.
_HEAD_BYTES = 200

# All carriage returns before a line's end; the lookbehind makes each run of them be tried once.
_LINE_END = re.compile(rb"(?<!\r)\r*\n")
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_OWN_STAMP = re.compile(
    rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z (\d+\.\d{6})(?: |(?=\r\n)|\Z)", re.MULTILINE
)
# What our own console log has from the kernel's ring buffer and not from the serial line.
_NOT_ON_THE_LINE = b"kmsg: "


@attrs.frozen
class Piece:
    """Bytes of the console, and when they came: seconds since power-on."""

    at_s: float
    data: bytes


def parse(data: bytes) -> list[Piece]:
    r"""What to play, in order; times never go back.

    Lines end with "\r\n" whatever the recording has; all other bytes are kept, also the stamps
    that other programs put before a line, since they may be what the log is played for.
    """
    text = _LINE_END.sub(b"\r\n", data)
    lines = _own_lines(text) if _OWN_STAMP.search(text) else _printk_lines(text)
    timeline = _Timeline()
    for clock_s, line in lines:
        timeline.add(clock_s, line)
    return timeline.pieces


def _own_lines(text: bytes) -> Iterator[tuple[float | None, bytes]]:
    """Lines of our own console log without their stamps, and the time of each that has one."""
    for line in _LINE.findall(text):
        stamp = _OWN_STAMP.match(line)
        if stamp is None:
            yield None, line
        elif not line.startswith(_NOT_ON_THE_LINE, stamp.end()):
            yield float(stamp[1]), line[stamp.end() :]


def _printk_lines(text: bytes) -> Iterator[tuple[float | None, bytes]]:
    """Lines as they are, and the kernel's time of each that has one."""
    for line in _LINE.findall(text):
        head = clean(line[:_HEAD_BYTES]).decode(errors="replace").lstrip()
        yield split(without_stamps(head)).stamp_s, line


class _Timeline:
    """Places lines in time, one after the other."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._at_s = 0.0
        # when the last line has passed at the speed of the line
        self._end_s = 0.0
        # the recording's clock at the last stamp, and what it showed at power-on
        self._clock_s: float | None = None
        self._power_on_s = 0.0

    def add(self, clock_s: float | None, line: bytes) -> None:
        moment_s = self._end_s if clock_s is None else self._moment(clock_s)
        begin_s = max(self._at_s, moment_s)
        for start in range(0, len(line), _CHUNK_BYTES):
            self._at_s = begin_s + start / BYTES_PER_SECOND
            self.pieces.append(Piece(self._at_s, line[start : start + _CHUNK_BYTES]))
        self._end_s = begin_s + len(line) / BYTES_PER_SECOND

    def _moment(self, clock_s: float) -> float:
        step_s = None if self._clock_s is None else clock_s - self._clock_s
        self._clock_s = clock_s
        if step_s is None or not 0 <= step_s <= LONGEST_PAUSE_S:
            self._power_on_s = clock_s - self._end_s
            return self._end_s
        return clock_s - self._power_on_s
