"""What a capture adds to a console's lines is taken away, however the bytes are cut."""

from __future__ import annotations

import pytest

from hil.console.lines import LONGEST_LINE_BYTES, LineSplitter, clean, without_stamps


def whole(*chunks: bytes) -> bytes:
    splitter = LineSplitter()
    return b"".join(splitter.feed(chunk) for chunk in chunks) + splitter.unfinished


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"one\r\ntwo\r\n", b"one\ntwo\n"),
        (b"one\r\r\r\ntwo\n", b"one\ntwo\n"),
        (b"10 %\r20 %\r100 %\n", b"10 %\n20 %\n100 %\n"),
        (b"a\0b\0\n", b"ab\n"),
        (b"\x1b[1;31mred\x1b[0m\n", b"red\n"),
        (b"\x1b[?2004hroot@am64x:~# \x1b[?2004l\n", b"root@am64x:~# \n"),
        (b"\x1b]0;title\x07text\n", b"text\n"),
        (b"\x1bPq#0\x1b\\text\n", b"text\n"),
        # U-Boot's spinner
        (b"Hit any key: 2 \b\b 1 \n", b"Hit any key: 2  1 \n"),
    ],
)
def test_what_the_wire_adds(raw: bytes, text: bytes) -> None:
    assert clean(raw) == text
    # whole lines only: one that is cut is cleaned when its end is there
    assert whole(raw) == text
    assert whole(*(raw[i : i + 1] for i in range(len(raw)))) == text


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])
def test_a_byte_order_mark_is_no_text(mark: bytes) -> None:
    assert whole(mark + b"U-Boot SPL\n") == b"U-Boot SPL\n"
    assert whole(mark[:1], mark[1:], b"U-Boot SPL\n") == b"U-Boot SPL\n"
    # only at the beginning
    assert whole(b"one\n" + mark) == b"one\n" + mark


def test_a_line_waits_for_its_end() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"am64x-evm login: ") == b""
    assert splitter.unfinished == b"am64x-evm login: "
    assert splitter.feed(b"root\nlast") == b"am64x-evm login: root\n"
    assert splitter.unfinished == b"last"


def test_a_line_without_end_is_cut() -> None:
    noise = b"x" * (3 * LONGEST_LINE_BYTES + 5)
    lines = whole(noise + b"\nnext\n").split(b"\n")
    assert max(map(len, lines)) == LONGEST_LINE_BYTES
    assert b"".join(lines[:-2]) == noise
    assert lines[-2] == b"next"
    # nothing heaps up while the end does not come
    splitter = LineSplitter()
    assert splitter.feed(noise).count(b"\n") == 3
    assert len(splitter.unfinished) == 5


def test_whether_a_shell_uses_bracketed_paste() -> None:
    splitter = LineSplitter()
    splitter.feed(b"no\n")
    assert not splitter.bracketed_paste
    splitter.feed(b"\x1b[?2004hyes\n")
    assert splitter.bracketed_paste


TEXT = "[    1.234567] igb 0000:01:00.0 eth1: link up"


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-12-07T11:34:29.592827Z 19095.442960 ",
        "2026-12-07T11:34:29.592827Z 19095.442960 kmsg: ",
        "[2026-12-07 11:34:29.592] ",
        "[2026-12-07T11:34:29.592827Z] ",
        "[11:34:29.592] ",
        "[11:34:29]",
        "2026-12-07 11:34:29 ",
        "2026-12-07T11:34:29.5928270Z ",
        "2026-12-07T11:34:29+01:00 ",
        "2026-12-07T11:34:29.592827Z 01O ",
        "11:34:29.592: ",
        "11:34:29> ",
        "[12.001234 0.000123] ",
        '- {"dt": "2026-12-07T11:34:29.592827", "lvl": "target", "msg": "',
        "<11:34:29>",
        "11:34:29 收←◆",
        # one program's output in another's
        "2026-12-07T11:34:29.5928270Z [2026-12-07 11:34:29.592] ",
    ],
)
def test_stamps_of_captures(stamp: str) -> None:
    assert without_stamps(stamp + TEXT) == TEXT


@pytest.mark.parametrize(
    "line",
    [
        TEXT,
        "12 packets",
        "0 errors",
        "[ cut here ]",
        "4096 bytes read in 3 ms",
        "<6>text",
        "1.5 GiB",
    ],
)
def test_text_is_no_stamp(line: str) -> None:
    assert without_stamps(line) == line
