"""When which bytes of a recorded console are played."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hil.clock import Deadline
from hil.virtual.recording import BYTES_PER_SECOND, LONGEST_PAUSE_S, Piece, parse

CASES = Path(__file__).parent.parent / "data/cases"
DAY = "2026-11-30T23:53:04.123456Z"


def played(pieces: list[Piece]) -> bytes:
    return b"".join(piece.data for piece in pieces)


def moments(text: str) -> list[float]:
    """When each line of the recording is played."""
    return [piece.at_s for piece in parse(text.encode())]


def line_time_s(*lines: str) -> float:
    """What lines take at 115200 baud, with the two bytes of their ends."""
    return sum(len(line) + 2 for line in lines) / BYTES_PER_SECOND


def test_our_own_log_is_played_as_it_came_and_without_its_stamps() -> None:
    pieces = parse(
        f"{DAY} 1000.000000 U-Boot SPL\r\n"
        f"{DAY} 1000.250000 [    7.000000] Booting Linux\n"
        f"{DAY} 1003.500000 login: ".encode()
    )
    assert pieces == [
        Piece(0.0, b"U-Boot SPL\r\n"),
        Piece(0.25, b"[    7.000000] Booting Linux\r\n"),
        Piece(3.5, b"login: "),
    ]


def test_what_our_log_has_from_elsewhere_was_not_on_the_line() -> None:
    pieces = parse(
        f"{DAY} 10.000000 kmsg: first\n"
        f"{DAY} 11.000000 said\n"
        f"{DAY} 12.000000 kmsg: [    1.000000] not said\n"
        f"{DAY} 13.000000 said kmsg: again\n".encode()
    )
    assert pieces == [Piece(0.0, b"said\r\n"), Piece(2.0, b"said kmsg: again\r\n")]


def test_empty_lines_of_our_log() -> None:
    pieces = parse(f"{DAY} 1.000000 \n{DAY} 2.000000\n{DAY} 3.000000".encode())
    assert pieces == [Piece(0.0, b"\r\n"), Piece(1.0, b"\r\n")]


def test_our_stamps_count_wherever_they_begin() -> None:
    pieces = parse(f"[    5.000000] a\n[    9.000000] b\n{DAY} 7.000000 c\n".encode())
    assert [piece.data for piece in pieces][2] == b"c\r\n"
    assert pieces[1].at_s == pytest.approx(line_time_s("[    5.000000] a"))
    assert pieces[2].at_s == pytest.approx(2 * line_time_s("[    5.000000] a"))


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-30T23:53:04Z 1.000000 text",  # no microseconds
        f"{DAY} 1.5 text",
        f"{DAY} text",
        f" {DAY} 1.000000 text",
        f"said {DAY} 1.000000 text",
    ],
)
def test_other_stamps_are_part_of_what_is_played(line: str) -> None:
    assert played(parse(f"{line}\n".encode())) == f"{line}\r\n".encode()


def test_the_kernels_stamps_are_relative_to_the_first() -> None:
    text = "[  100.000000] a\n[  100.500000] b\n[  103.000000] c\n"
    assert moments(text) == pytest.approx([0.0, 0.5, 3.0])
    assert played(parse(text.encode())) == text.replace("\n", "\r\n").encode()


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "<6>",
        "[12:34:56.789] ",
        "2026-01-01T10:00:00.000Z ",
        "[2026-01-01 10:00:00] ",
        "\x1b[0m",
        "\r",
        "\0",
    ],
)
def test_the_kernels_stamps_are_found_behind_what_a_capture_adds(prefix: str) -> None:
    lines = [f"{prefix}[    1.000000] a", f"{prefix}[    4.500000][    T1] b"]
    assert moments("\n".join(lines)) == pytest.approx([0.0, 3.5])
    assert played(parse("\n".join(lines).encode())) == "\r\n".join(lines).encode()


def test_text_that_only_speaks_of_a_stamp_has_none() -> None:
    first = "[    1.000000] a"
    assert moments(f"{first}\nsee [   50.000000] b\n")[1] == pytest.approx(line_time_s(first))


def test_lines_without_a_stamp_follow_the_one_before_at_the_speed_of_the_line() -> None:
    spl, uboot = "U-Boot SPL 2024.04", "Starting kernel ..."
    first, user = "[    0.000000] Booting Linux", "Welcome"
    at = moments("\n".join([spl, uboot, first, "[    2.000000] x", user, "[    5.000000] y", ""]))
    kernel_s = line_time_s(spl, uboot)
    expected = [0.0, line_time_s(spl), kernel_s, kernel_s + 2.0]
    expected += [kernel_s + 2.0 + line_time_s("[    2.000000] x"), kernel_s + 5.0]
    assert at == pytest.approx(expected)


def test_many_lines_without_a_stamp_hold_the_next_one_up() -> None:
    user = "x" * 98
    at = moments("\n".join(["[    1.000000] a", *[user] * 50, "[    1.000100] b"]))
    assert at == sorted(at)
    assert at[-1] == at[-2] == pytest.approx(line_time_s("[    1.000000] a", *[user] * 49))


@pytest.mark.parametrize("stamp", ["    0.000000", "  899.999999", "99999.000000"])
def test_another_clock_goes_on_where_the_last_boot_ended(stamp: str) -> None:
    last = "[  902.000000] reboot: Restarting system"
    hours = float(stamp)
    at = moments(f"[  900.000000] a\n{last}\n[{stamp}] b\n[{hours + 1.5:12.6f}] c\n")
    end_s = 2.0 + line_time_s(last)
    assert at == pytest.approx([0.0, 2.0, end_s, end_s + 1.5])


def test_our_own_clock_may_belong_to_another_boot_as_well() -> None:
    at = moments(f"{DAY} 5000.000000 ab\n{DAY} 3.000000 c\n{DAY} 4.000000 d\n")
    assert at == pytest.approx([0.0, line_time_s("ab"), line_time_s("ab") + 1.0])


def test_a_pause_of_up_to_an_hour_is_kept() -> None:
    at = moments(f"[    1.000000] a\n[ {1 + LONGEST_PAUSE_S:.6f}] b\n")
    assert at == pytest.approx([0.0, LONGEST_PAUSE_S])
    at = moments(f"[    1.000000] a\n[ {1.001 + LONGEST_PAUSE_S:.6f}] b\n")
    assert at[1] == pytest.approx(line_time_s("[    1.000000] a"))


def test_without_any_clock_text_comes_at_115200_baud() -> None:
    data = b"=> printenv\n" * 2000
    pieces = parse(data)
    before = 0
    for piece in pieces:
        assert piece.at_s == pytest.approx(before / 11520)
        before += len(piece.data)
    assert before == 2000 * 13


def test_a_long_line_does_not_come_at_once() -> None:
    """A download's progress is one line that takes its time."""
    pieces = parse(b"#" * 40000)
    assert len(pieces) > 30
    assert pieces[-1].at_s == pytest.approx(40000 / 11520, abs=0.1)
    assert played(pieces) == b"#" * 40000


def test_nothing_is_played_for_an_empty_log() -> None:
    assert parse(b"") == []


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r\r\n", b"\r\r\r\n"])
def test_lines_end_in_one_way(end: bytes) -> None:
    assert played(parse(b"a" + end + end + b"10%\r20%" + end)) == b"a\r\n\r\n10%\r20%\r\n"


def test_noise_is_kept() -> None:
    noise = bytes(value for value in range(256) if value not in b"\n")
    assert played(parse(noise + b"\n\0\0")) == noise + b"\r\n\0\0"


def test_a_run_of_carriage_returns_is_read_once() -> None:
    """A dead line can send much of one byte; trying each as a line's end takes a minute here."""
    data = b"\r" * 400_000 + b"x"
    deadline = Deadline(10)
    assert played(parse(data)) == data
    assert not deadline.expired


@pytest.mark.parametrize("digits", [20, 400])
def test_a_clock_that_no_machine_has(digits: int) -> None:
    at = moments(f"[    1.000000] a\n[{'9' * digits}.000000] b\n[    2.000000] c\n")
    assert at == sorted(at)
    assert all(map(math.isfinite, at))


def test_a_recorded_case_keeps_the_kernels_pace() -> None:
    data = (CASES / "b18-am62a-missing-netdev-one-port.txt").read_bytes()
    pieces = parse(data)
    assert played(pieces) == data.replace(b"\n", b"\r\n")
    assert pieces[-1].at_s == pytest.approx(2.145443 - 1.966094)


# Texts of which many have stamps, broken ones, all line ends, and bytes that are no text.
LINES = st.one_of(
    st.binary(max_size=40),
    st.builds(
        lambda clock, text: f"[{clock:12.6f}] {text}".encode(),
        st.floats(0, 1e6),
        st.text(max_size=20),
    ),
    st.builds(
        lambda clock, text: f"{DAY} {clock:.6f} {text}".encode(),
        st.floats(0, 1e6),
        st.text(max_size=20),
    ),
    st.builds(lambda length: b"x" * length, st.integers(1000, 5000)),
)
RECORDINGS = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r\r\n", b""])))


@given(RECORDINGS.map(lambda lines: b"".join(map(b"".join, lines))))
@example(b"\r\n\r")
def test_all_bytes_come_in_order_and_time_never_goes_back(data: bytes) -> None:
    pieces = parse(data)
    expected = [
        re.sub(rb"^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}Z \d+\.\d{6}(?: |$)", b"", line)
        for line in re.sub(rb"\r*\n", b"\n", data).split(b"\n")
    ]
    assert played(pieces) == b"\r\n".join(expected)
    assert all(before.at_s <= after.at_s for before, after in pairwise(pieces))
    assert all(piece.at_s >= 0 and math.isfinite(piece.at_s) and piece.data for piece in pieces)
