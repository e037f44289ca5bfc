"""A board's history: what is written, what survives a killed run, and the limits learned."""

from __future__ import annotations

import datetime
import json
import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.console.model import Phase
from hil.console.phases import Limits
from hil.errors import ConfigError
from hil.results import history
from hil.results.history import BoardHistory, nearest_rank

PROFILE = {Phase.UBOOT: Limits(60, 30), Phase.KERNEL: Limits(120, 30)}
GOOD = {
    "at": "2026-11-30T12:00:00.000+00:00",
    "kernel": "v6.12",
    "durations": {"kernel": 9.5},
    "silences": {"kernel": 2},
}


@pytest.fixture
def board(tmp_path: Path) -> BoardHistory:
    return BoardHistory(tmp_path, "am64x")


def add(board: BoardHistory, seconds: float, silence_s: float = 1.0, times: int = 1) -> None:
    for _ in range(times):
        board.append({Phase.KERNEL: seconds}, {Phase.KERNEL: silence_s}, kernel=None)


# File


def test_a_boot_is_one_line_and_comes_back(board: BoardHistory, tmp_path: Path) -> None:
    before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    durations = {Phase.SPL: 1.25, Phase.HANDOVER: 0.5}
    board.append(durations, {Phase.SPL: 0.75}, kernel="/kernels/ünï")
    (line,) = (tmp_path / "history" / "am64x.jsonl").read_text().splitlines()
    assert json.loads(line)["durations"] == {"spl": 1.25, "uboot_handover": 0.5}
    (boot,) = board.boots()
    assert (boot.durations, boot.silences) == (durations, {Phase.SPL: 0.75})
    assert boot.kernel == "/kernels/ünï"
    assert before <= boot.at <= datetime.datetime.now(datetime.UTC)


def test_no_file_is_no_boots(board: BoardHistory) -> None:
    assert board.boots() == []
    assert board.learned(PROFILE) == PROFILE
    assert not board.path.exists()


def test_a_torn_last_line_costs_only_itself(board: BoardHistory) -> None:
    add(board, 1)
    add(board, 2)
    whole = board.path.read_bytes()
    for length in range(len(whole) // 2 + 1, len(whole) - 1):
        board.path.write_bytes(whole[:length])
        assert [boot.durations[Phase.KERNEL] for boot in board.boots()] == [1]
        add(board, 3)
        assert [boot.durations[Phase.KERNEL] for boot in board.boots()] == [1, 3]


def test_boots_that_add_at_once_keep_their_lines_apart(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(4, mp_context=spawn) as pool:
        list(pool.map(add_fifty, [str(tmp_path)] * 4, range(4)))
    board = BoardHistory(tmp_path, "am64x")
    seen = sorted(boot.durations[Phase.KERNEL] for boot in board.boots())
    assert seen == [1000.0 * number + index for number in range(4) for index in range(50)]


def add_fifty(directory: str, number: int) -> None:
    board = BoardHistory(Path(directory), "am64x")
    for index in range(50):
        board.append({Phase.KERNEL: 1000.0 * number + index}, {}, kernel="x" * 3000)


def test_only_the_latest_boots_count(board: BoardHistory) -> None:
    for seconds in range(history.BOOTS_KEPT + 5):
        add(board, seconds)
    seen = [boot.durations[Phase.KERNEL] for boot in board.boots()]
    assert seen == list(range(5, history.BOOTS_KEPT + 5))


BAD_LINES = [
    "",
    "{",
    "null",
    "[]",
    '"durations"',
    "[" * 100_000,
    json.dumps({**GOOD, "at": "yesterday"}),
    json.dumps({**GOOD, "at": 5}),
    json.dumps({**GOOD, "kernel": 5}),
    json.dumps({**GOOD, "durations": None}),
    json.dumps({**GOOD, "durations": "kernel"}),
    json.dumps({**GOOD, "durations": ["kernel"]}),
    json.dumps({**GOOD, "durations": {"kernel": -1}}),
    json.dumps({**GOOD, "durations": {"kernel": True}}),
    json.dumps({**GOOD, "durations": {"kernel": "1"}}),
    json.dumps({**GOOD, "durations": {"kernel": math.nan}}),
    json.dumps({**GOOD, "silences": {"kernel": math.inf}}),
    json.dumps({**GOOD, "silences": {"kernel": 10**400}}),
    json.dumps({key: value for key, value in GOOD.items() if key != "silences"}),
]


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: line[:60])
def test_a_bad_line_in_the_middle_is_passed_over(board: BoardHistory, line: str) -> None:
    add(board, 1)
    with board.path.open("a") as file:
        file.write(f"{line}\n{json.dumps(GOOD)}\n")
    assert [boot.durations[Phase.KERNEL] for boot in board.boots()] == [1, 9.5]


def test_a_phase_of_another_version_is_left_out(board: BoardHistory) -> None:
    board.path.parent.mkdir()
    other = {**GOOD, "durations": {"kernel": 1, "warp": "fast"}}
    board.path.write_text(json.dumps(other) + "\n")
    assert [boot.durations for boot in board.boots()] == [{Phase.KERNEL: 1}]


@given(st.binary(max_size=200))
def test_any_bytes_are_no_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    board = BoardHistory(tmp_path_factory.getbasetemp(), "any")
    board.path.parent.mkdir(exist_ok=True)
    board.path.write_bytes(data + b"\n" + json.dumps(GOOD).encode())
    assert [boot.durations for boot in board.boots()] == [{Phase.KERNEL: 9.5}]


def test_a_file_that_cannot_be_used_is_one_line_with_a_remedy(board: BoardHistory) -> None:
    board.path.mkdir(parents=True)
    for use in (board.boots, lambda: add(board, 1), lambda: board.learned(PROFILE)):
        with pytest.raises(ConfigError) as caught:
            use()
        assert str(caught.value) == (
            f"{board.path}: Is a directory; make the file and its directory readable and writable "
            "for this user, or name another directory for results"
        )


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("")
    board = BoardHistory(tmp_path, "am64x")
    with pytest.raises(ConfigError, match=r"am64x\.jsonl: File exists; make"):
        add(board, 1)
    with pytest.raises(ConfigError, match=r"am64x\.jsonl: Not a directory; make"):
        board.boots()


# Names


@pytest.mark.parametrize("name", ["am64x", "virtual-arm64", "my_board.v2"])
def test_a_plain_name_is_the_file_name(tmp_path: Path, name: str) -> None:
    assert BoardHistory(tmp_path, name).path == tmp_path / "history" / f"{name}.jsonl"


def test_a_path_shows_its_last_part_and_stays_apart(tmp_path: Path) -> None:
    names = ["/srv/a/my board.yaml", "/srv/b/my board.yaml", "./my board.yaml"]
    paths = {BoardHistory(tmp_path, name).path for name in names}
    assert len(paths) == 3
    assert all(path.name.startswith("my_board-") for path in paths)


@given(
    st.text(max_size=300)
    | st.sampled_from(["..", ".", "/", "a/../../b", "\udcff/x", ".hidden", "é" * 200, "a" * 300])
)
def test_any_name_is_one_file_in_the_directory(name: str) -> None:
    path = BoardHistory(Path("/results"), name).path
    assert path.parent == Path("/results/history")
    assert path.name.isascii()
    assert path.name.isprintable()
    assert not path.name.startswith(".")
    assert len(path.name) <= 255


# Limits


def test_limits_are_learned_from_the_twentieth_boot_on(board: BoardHistory) -> None:
    add(board, 10, 2, times=18)
    add(board, 20, 4)
    assert board.learned(PROFILE) == PROFILE
    add(board, 10, 2)
    assert board.learned(PROFILE) == {
        Phase.UBOOT: PROFILE[Phase.UBOOT],
        # of twenty boots the slowest counts
        Phase.KERNEL: Limits(60, 12),
    }


def test_only_boots_that_had_the_phase_count(board: BoardHistory) -> None:
    board.append({Phase.UBOOT: 3}, {}, kernel=None)
    add(board, 10, times=19)
    assert board.learned(PROFILE) == PROFILE
    add(board, 10)
    assert board.learned(PROFILE)[Phase.KERNEL].deadline_s == 30


def test_of_many_boots_the_slowest_hundredth_does_not_count(board: BoardHistory) -> None:
    add(board, 10, 4, times=99)
    add(board, 500, 400)
    assert board.learned(PROFILE)[Phase.KERNEL] == Limits(30, 12)
    add(board, 500, 400)
    assert board.learned(PROFILE)[Phase.KERNEL] == Limits(240, 60)


def test_limits_have_a_floor(board: BoardHistory) -> None:
    add(board, 0.1, 0, times=20)
    assert board.learned(PROFILE)[Phase.KERNEL] == Limits(10, 10)


def test_limits_are_at_most_twice_the_profiles_even_below_the_floor(board: BoardHistory) -> None:
    add(board, 100, 25, times=20)
    assert board.learned(PROFILE)[Phase.KERNEL] == Limits(240, 60)
    assert board.learned({Phase.KERNEL: Limits(2, 1)}) == {Phase.KERNEL: Limits(4, 2)}


def test_silence_is_never_more_than_the_deadline(board: BoardHistory) -> None:
    """Boots that tell no silences leave the profile's, which may be more than what was learned."""
    for _ in range(20):
        board.append({Phase.KERNEL: 4}, {}, kernel=None)
    assert board.learned(PROFILE)[Phase.KERNEL] == Limits(12, 12)


def test_only_phases_of_the_profile_get_limits(board: BoardHistory) -> None:
    add(board, 10, times=20)
    assert board.learned({}) == {}


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.integers(1, 100))
def test_nearest_rank(values: list[float], percent: int) -> None:
    rank = nearest_rank(values, percent)
    assert rank in values
    needed = Fraction(percent * len(values), 100)
    assert sum(value <= rank for value in values) >= needed
    assert sum(value < rank for value in values) < needed
