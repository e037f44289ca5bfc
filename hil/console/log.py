"""The console's log: each line with the wall clock and the monotonic clock of its first byte."""

from __future__ import annotations

import datetime
import re
from collections import OrderedDict
from typing import TextIO

from hil.console.merged import MergedLines, Newlines

# Lines by which a message of the kernel's log is known to have come over the wire too.
_REMEMBERED_LINES = 20_000
# Of a line that never ends so much is looked at.
_PARTIAL_BYTES = 1 << 20
# What the kernel says begins with its stamp; a prompt may stand before it.
_STAMPED = re.compile(r"\[ *\d+\.\d{6}\].*")


class StampedLog:
    """Writes `2026-11-30T23:53:04.123456Z 1234.567890 text` lines to a text file.

    Bytes that are no UTF-8 stand in the file as they came when it was opened with the error
    handler "surrogateescape". Carriage returns are left out.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._open = False

    def write(self, data: bytes, *, wall: datetime.datetime, monotonic_s: float) -> None:
        """Bytes of the console as they come; a line may come in pieces."""
        for piece in data.replace(b"\r", b"").splitlines(keepends=True):
            if not self._open:
                self._file.write(_stamp(wall, monotonic_s))
            self._file.write(piece.decode(errors="surrogateescape"))
            self._open = not piece.endswith(b"\n")
        self._file.flush()

    def write_kernel(self, line: str, *, wall: datetime.datetime, monotonic_s: float) -> None:
        """A line that came from the kernel's log and not over the wire."""
        self.end_line()
        self._file.write(f"{_stamp(wall, monotonic_s)}kmsg: {line}\n")
        self._file.flush()

    def end_line(self) -> None:
        """What comes next begins a line of its own."""
        if self._open:
            self._file.write("\n")
            self._open = False


class MergedLog:
    """The wire and the kernel's log in one, each line once, written to all logs that are set.

    Its owner locks.
    """

    def __init__(self) -> None:
        self._logs: list[StampedLog] = []
        self._newlines = Newlines()
        self._partial = b""
        self._cut = False
        # how much of the line that is open stands before the kernel's lines within it
        self._cut_at = 0
        self._wire_lines = 0
        self._kernel_lines = 0
        self._lines = MergedLines()
        self._on_wire: OrderedDict[str, int] = OrderedDict()
        self._after_cut: set[int] = set()

    def set_logs(self, *logs: StampedLog) -> None:
        """Write to these from now on; the others end their line."""
        for log in self._logs:
            if log not in logs:
                log.end_line()
        self._logs = list(logs)

    def start_boot(self) -> None:
        """Stamps begin anew: nothing has come over the wire yet."""
        self._on_wire.clear()

    def write(self, data: bytes, monotonic_s: float) -> None:
        """Bytes of the wire as they come."""
        data = self._newlines.feed(data)
        for log in self._logs:
            log.write(data, wall=_now(), monotonic_s=monotonic_s)
        *whole, self._partial = (self._partial + data).split(b"\n")
        self._partial = self._partial[-_PARTIAL_BYTES:]
        self._cut = self._cut and not data
        for line in whole:
            self._wire_lines += 1
            if stamped := _STAMPED.search(line.decode(errors="replace")):
                self._on_wire[stamped[0]] = self._wire_lines
                if 0 < self._cut_at <= stamped.start():
                    self._after_cut.add(self._wire_lines)
            self._cut_at = 0
        while len(self._on_wire) > _REMEMBERED_LINES:
            self._on_wire.popitem(last=False)

    def has(self, line: str) -> bool:
        """Whether this line of the kernel's log came over the wire too."""
        return line in self._on_wire

    def write_kernel(self, line: str, monotonic_s: float) -> int:
        """A line of the kernel's log, unless the wire brought it; its number in the logs."""
        if (number := self._on_wire.get(line)) is not None:
            return self.of_wire(number)
        within = bool(self._partial)
        cuts, self._cut = within and not self._cut, within
        self._cut_at = len(self._partial)
        self._lines.add_kernel_line(self._wire_lines, within=within, cuts=cuts)
        self._kernel_lines += 1
        for log in self._logs:
            log.write_kernel(line, wall=_now(), monotonic_s=monotonic_s)
        return self._lines.of_kernel(self._kernel_lines)

    def of_wire(self, number: int) -> int:
        """The line of the logs that has what a line of the wire says.

        A prompt may wait there for long, cut off from what the kernel says behind it.
        """
        if number in self._after_cut:
            return self._lines.end_of_wire(number)
        return self._lines.of_wire(number)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _stamp(wall: datetime.datetime, monotonic_s: float) -> str:
    utc = wall.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return f"{utc}Z {monotonic_s:.6f} "
