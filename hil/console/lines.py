"""Bytes of a console, in chunks as they come, become whole clean lines. Pure.

What the wire adds is taken away here, once: carriage returns, terminal codes, NUL bytes, and the
stamps that terminal programs, CI systems and our own console log put in front of a line. How the
input is cut into chunks never changes what comes out.
"""

from __future__ import annotations

import re

# A line without an end (noise, a dead clock) is cut after so many bytes.
LONGEST_LINE_BYTES = 65536

_ESCAPE = re.compile(
    rb"\x1b(?:"
    rb"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, bracketed paste
    rb"|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC: window titles
    rb"|[PX^_][^\x1b\n]*(?:\x1b\\)?"  # DCS and other strings
    rb"|[ -/]*[0-~])?"
)
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")

_DATE = r"\d{4}[-/]\d\d[-/]\d\d"
_TIME = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)?"
# What stands in front of a console line in captures; the kernel's own `[   12.345678]` does not.
# Never a bare number: that may be part of the text.
_STAMP = re.compile(
    rf"(?:{_DATE}[T ]{_TIME}{_ZONE} \d+\.\d{{6}} (?:kmsg: )?"  # our own console log
    rf"|\[(?:{_DATE}[T ])?{_TIME}{_ZONE}\][ \t]?"  # tio, minicom, GitHub, SSCOM
    rf"|(?:{_DATE}[T ]){_TIME}{_ZONE}(?: \d\d[OE]\+?)?:?[ \t]"  # journals of CI runners, LAVA
    rf"|{_TIME}[:>]?[ \t]"  # 02:58:27.819:
    rf"|\[\d+\.\d+ \d+\.\d+\] "  # grabserial: since start, since the last line
    rf"|[<>]{_TIME}[<>] ?"
    r'|- ?\{"?dt"?: .*?"?msg"?: ["\']'  # LAVA
    r")",
    re.ASCII,
)
# The glyphs with which a Chinese terminal program marks received data.
_GLYPHS = re.compile("[收发][←→][◆◇]")


class LineSplitter:
    """Cuts chunks into blocks of whole lines; keeps what is not a whole line yet."""

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False
        # whether a shell asked the terminal for it (bash does)
        self.bracketed_paste = False

    def feed(self, data: bytes) -> bytes:
        r"""All lines that are complete now, clean, each with its "\n"; b"" when there is none."""
        raw = self._rest + data
        if not self._begun:
            if len(raw) < 3:
                self._rest = raw
                return b""
            self._begun = True
            for mark in _BYTE_ORDER_MARKS:
                raw = raw.removeprefix(mark)
        whole = raw.rfind(b"\n") + 1
        block, self._rest = raw[:whole], raw[whole:]
        block = _cut_long_lines(block)
        self.bracketed_paste |= b"\x1b[?2004" in block
        while len(self._rest) > LONGEST_LINE_BYTES:
            block += self._rest[:LONGEST_LINE_BYTES] + b"\n"
            self._rest = self._rest[LONGEST_LINE_BYTES:]
        return clean(block) if block else b""

    @property
    def unfinished(self) -> bytes:
        """The line that has begun and not ended, clean: a prompt, or the end of a log."""
        return clean(self._rest)


def _cut_long_lines(block: bytes) -> bytes:
    pieces, start = [], 0
    while len(block) - start > LONGEST_LINE_BYTES:
        end = block.rfind(b"\n", start, start + LONGEST_LINE_BYTES + 1) + 1
        if end:
            pieces.append(block[start:end])
        else:
            end = start + LONGEST_LINE_BYTES
            pieces.append(block[start:end] + b"\n")
        start = end
    return b"".join([*pieces, block[start:]]) if pieces else block


def clean(block: bytes) -> bytes:
    """A block without NUL bytes, terminal codes and carriage returns; a lone one ends a line."""
    if b"\0" in block:
        block = block.replace(b"\0", b"")
    if b"\x1b" in block:
        block = _ESCAPE.sub(b"", block)
    if b"\b" in block:
        block = block.replace(b"\b", b"")
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if b"\r" in block:
        block = re.sub(rb"\r\r*\n", b"\n", block).replace(b"\r", b"\n")
    return block


def without_stamps(line: str) -> str:
    """A line without what the capture put before it."""
    for _ in range(3):
        match = _STAMP.match(line)
        if match is None:
            break
        line = line[match.end() :]
    return line[3:] if _GLYPHS.match(line) else line
