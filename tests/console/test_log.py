"""The stamps of the console's log, whatever the board says and in whatever pieces."""

from __future__ import annotations

import datetime
import io
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hil.console.lines import without_stamps
from hil.console.log import MergedLog, StampedLog

WALL = datetime.datetime(2026, 11, 30, 23, 53, 4, 123456, datetime.UTC)
STAMP = "2026-11-30T23:53:04.123456Z 1234.500000 "


def logged(*pieces: bytes) -> str:
    file = io.StringIO()
    log = StampedLog(file)
    for piece in pieces:
        log.write(piece, wall=WALL, monotonic_s=1234.5)
    return file.getvalue()


def test_each_line_has_both_clocks() -> None:
    assert logged(b"one\ntwo\n") == f"{STAMP}one\n{STAMP}two\n"


def test_a_line_has_the_time_of_its_first_byte() -> None:
    file = io.StringIO()
    log = StampedLog(file)
    log.write(b"log", wall=WALL, monotonic_s=1234.5)
    assert file.getvalue() == f"{STAMP}log"
    later = WALL + datetime.timedelta(seconds=1)
    log.write(b"in: \nnext", wall=later, monotonic_s=1235.5)
    assert file.getvalue() == f"{STAMP}login: \n2026-11-30T23:53:05.123456Z 1235.500000 next"


def test_the_wall_clock_is_utc_wherever_the_lab_is() -> None:
    file = io.StringIO()
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    StampedLog(file).write(b"\n", wall=WALL.astimezone(zone), monotonic_s=1234.5)
    assert file.getvalue() == f"{STAMP}\n"


def test_carriage_returns_are_left_out() -> None:
    assert logged(b"one\r\n", b"two\r", b"\n\r") == f"{STAMP}one\n{STAMP}two\n"


def test_empty_lines_are_lines_and_nothing_is_nothing() -> None:
    assert logged(b"\n\n") == f"{STAMP}\n{STAMP}\n"
    assert logged(b"", b"\r") == ""


def test_only_a_newline_ends_a_line() -> None:
    """What Python takes for line ends besides would number the lines anew."""
    assert (
        logged("a\x0bb\x0cc\x1cd\x85e\u2028f\n".encode())
        == f"{STAMP}a\x0bb\x0cc\x1cd\x85e\u2028f\n"
    )


def test_a_kernel_line_never_mixes_with_one_of_the_wire() -> None:
    file = io.StringIO()
    log = StampedLog(file)
    log.write(b"root@board", wall=WALL, monotonic_s=1234.5)
    log.write_kernel("[   12.345678] eth0: up", wall=WALL, monotonic_s=1234.5)
    log.write(b":~# \n", wall=WALL, monotonic_s=1234.5)
    log.write_kernel("[   13.000000] eth0: down", wall=WALL, monotonic_s=1234.5)
    assert file.getvalue() == (
        f"{STAMP}root@board\n"
        f"{STAMP}kmsg: [   12.345678] eth0: up\n"
        f"{STAMP}:~# \n"
        f"{STAMP}kmsg: [   13.000000] eth0: down\n"
    )


def test_end_line_ends_only_a_line_that_is_open() -> None:
    file = io.StringIO()
    log = StampedLog(file)
    log.end_line()
    log.write(b"half", wall=WALL, monotonic_s=1234.5)
    log.end_line()
    log.end_line()
    log.write(b" a line\n", wall=WALL, monotonic_s=1234.5)
    log.end_line()
    assert file.getvalue() == f"{STAMP}half\n{STAMP} a line\n"


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_all_bytes_stand_in_the_file_as_they_came(pieces: list[bytes]) -> None:
    """Also a character that the wire brought in two pieces, and what is no text at all."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape", newline="\n")
    log = StampedLog(file)
    for piece in pieces:
        log.write(piece, wall=WALL, monotonic_s=1234.5)
    # on disk at once: who looks while a board hangs wants to see why
    lines = raw.getvalue().split(b"\n")
    assert all(line.startswith(STAMP.encode()) for line in lines if line)
    told = b"\n".join(line.removeprefix(STAMP.encode()) for line in lines)
    assert told == b"".join(pieces).replace(b"\r", b"")


def test_lines_are_on_disk_at_once(tmp_path: Path) -> None:
    path = tmp_path / "console.log"
    with path.open("w", newline="\n") as file:
        log = StampedLog(file)
        log.write(b"half", wall=WALL, monotonic_s=1234.5)
        assert path.read_text() == f"{STAMP}half"
        log.write_kernel("kernel", wall=WALL, monotonic_s=1234.5)
        assert path.read_text() == f"{STAMP}half\n{STAMP}kmsg: kernel\n"


def test_the_classifier_knows_the_stamps() -> None:
    """A console log of ours can be classified again."""
    file = io.StringIO()
    log = StampedLog(file)
    log.write(b"[   12.345678] one\n", wall=WALL, monotonic_s=0.25)
    log.write_kernel("[   12.345679] two", wall=WALL, monotonic_s=123456.5)
    assert [without_stamps(line) for line in file.getvalue().splitlines()] == [
        "[   12.345678] one",
        "[   12.345679] two",
    ]


def test_stamps_sort_and_have_a_fixed_form() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \d+\.\d{6} x", logged(b"x"))


def test_what_the_kernel_says_behind_a_prompt_stands_where_it_was_said() -> None:
    file, log = io.StringIO(), MergedLog()
    log.set_logs(StampedLog(file))
    log.write(b"boot\nroot@board:~# ", 1.0)
    log.write_kernel("[   12.345678] one", 2.0)
    log.write_kernel("[   12.345679] two", 2.0)
    log.write(b"[   13.000000] Oops\n[   13.000001] ", 3.0)
    log.write_kernel("[   13.000001] more", 3.0)
    log.write(b"more of it\n", 4.0)
    lines = file.getvalue().split("\n")
    said = {number: lines[log.of_wire(number) - 1].split(" ", 2)[2] for number in (1, 2, 3)}
    assert said == {1: "boot", 2: "[   13.000000] Oops", 3: "[   13.000001] "}
