"""The console's log: each line with the wall clock and the monotonic clock of its first byte."""

from __future__ import annotations

import datetime
from typing import TextIO


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


def _stamp(wall: datetime.datetime, monotonic_s: float) -> str:
    utc = wall.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return f"{utc}Z {monotonic_s:.6f} "
