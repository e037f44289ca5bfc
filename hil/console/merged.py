"""Where lines of the wire and of the kernel's log stand in the log that has both. Pure."""

from __future__ import annotations

import bisect


class MergedLines:
    """Counts what is written to the merged log; all numbers of lines begin with 1."""

    def __init__(self) -> None:
        # for each line that the wire did not bring, twice the number of the wire's line before it,
        # and one less when it stands within that line
        self._foreign: list[int] = []
        self._kernel: list[int] = []

    def add_kernel_line(self, wire_lines: int, *, within: bool, cuts: bool) -> None:
        """A line of the kernel's log is written after so many whole lines of the wire.

        `within` the next one, of which the beginning is written; the first such line `cuts` it,
        and its rest will be a line too.
        """
        before = wire_lines + within
        rest_to_come = within and not cuts
        self._kernel.append(before + len(self._foreign) + 1 - rest_to_come)
        self._foreign += [2 * before - within] * (1 + cuts)

    def of_wire(self, number: int) -> int:
        """The line of the merged log with which a line of the wire begins."""
        return number + bisect.bisect_left(self._foreign, 2 * number - 1)

    def end_of_wire(self, number: int) -> int:
        """The line of the merged log with which a line of the wire ends."""
        return number + bisect.bisect_left(self._foreign, 2 * number)

    def of_kernel(self, number: int) -> int:
        """The line of the merged log that has a line of the kernel's log."""
        return self._kernel[number - 1]


class Newlines:
    """Ends each line by one newline, as the classifier does, in whatever chunks it comes."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """The bytes so far, but for carriage returns of which the end is not there yet."""
        data = self._held + data
        text = data.rstrip(b"\r")
        self._held = data[len(text) :]
        if b"\r" not in text:
            return text
        while b"\r\r\n" in text:
            text = text.replace(b"\r\r\n", b"\r\n")
        return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
