"""Numbers of lines in a log that has the wire and the kernel's log, as that log is written."""

from __future__ import annotations

import datetime
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.console.lines import clean
from hil.console.log import StampedLog
from hil.console.merged import MergedLines, Newlines

NOW = datetime.datetime(2026, 12, 6, tzinfo=datetime.UTC)

# what comes next: some of the wire (whole lines, pieces of lines), or a line of the kernel's log
PIECES = st.lists(
    st.one_of(
        st.lists(st.sampled_from(["a", "\n"]), min_size=1, max_size=4).map("".join),
        st.none(),
    ),
    max_size=30,
)


@given(PIECES)
def test_numbers_are_those_of_the_written_log(pieces: list[str | None]) -> None:
    file, merged = io.StringIO(), MergedLines()
    log = StampedLog(file)
    wire_lines, partial, cut, kernel_lines = 0, "", False, 0
    for piece in pieces:
        if piece is None:
            kernel_lines += 1
            merged.add_kernel_line(wire_lines, within=bool(partial), cuts=bool(partial) and not cut)
            cut = bool(partial)
            log.write_kernel(f"kernel {kernel_lines}", wall=NOW, monotonic_s=0)
            continue
        # each line of the wire begins with its number
        text = ""
        for character in piece:
            if not partial:
                text += f"wire {wire_lines + 1}:"
            text += character
            partial = "" if character == "\n" else partial + character
            wire_lines += character == "\n"
        cut = False
        log.write(text.encode(), wall=NOW, monotonic_s=0)
    lines = file.getvalue().split("\n")
    for number in range(1, wire_lines + 1):
        assert f" wire {number}:" in lines[merged.of_wire(number) - 1]
    for number in range(1, kernel_lines + 1):
        assert lines[merged.of_kernel(number) - 1].endswith(f" kmsg: kernel {number}")


@given(st.lists(st.lists(st.sampled_from([b"a", b"\r", b"\n"])).map(b"".join)))
def test_newlines_are_as_the_classifier_counts_them(chunks: list[bytes]) -> None:
    newlines = Newlines()
    told = b"".join(newlines.feed(chunk) for chunk in chunks)
    whole = b"".join(chunks).rstrip(b"\r")
    assert told == clean(whole)


@pytest.mark.parametrize("rest", [b"\r", b"\r\r\r"])
def test_a_carriage_return_waits_for_what_follows(rest: bytes) -> None:
    newlines = Newlines()
    assert newlines.feed(b"text" + rest) == b"text"
    assert newlines.feed(b"\nnext") == b"\nnext"
