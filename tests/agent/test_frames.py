"""Test frames tell every damage: a changed byte with its offset, loss, doubles, wrong order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.agent import frames
from hil.agent.frames import Tally, build, check

DST, SRC = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
words = st.integers(0, 2**32 - 1)
sizes = st.integers(frames.MIN_SIZE_BYTES, 1514)


@given(words, words, sizes)
def test_round_trip(stream: int, sequence: int, size: int) -> None:
    frame = build(stream, sequence, size, DST, SRC)
    assert len(frame) == size
    assert check(frame) == (stream, sequence, None)


@given(st.integers(0, 1000), sizes, st.data())
def test_any_changed_payload_byte_is_found_with_its_offset(
    sequence: int, size: int, data: st.DataObject
) -> None:
    frame = bytearray(build(7, sequence, size, DST, SRC))
    offset = data.draw(st.integers(frames.HEADER.size, size - 1))
    flipped = data.draw(st.integers(1, 255))
    right = frame[offset]
    frame[offset] ^= flipped
    checked = check(bytes(frame))
    assert checked is not None
    assert checked.fault == {
        "what": "byte",
        "offset": offset,
        "expected": right,
        "got": right ^ flipped,
    }


@given(sizes, st.integers(1, 20))
def test_a_cut_frame_is_found(size: int, cut: int) -> None:
    checked = check(build(1, 2, size, DST, SRC)[:-cut])
    assert checked is not None and checked.fault is not None
    assert checked.fault["what"] == "length"


def test_changed_destination_is_found_when_it_is_known() -> None:
    frame = build(1, 2, 64, SRC, DST)
    checked = check(frame, dst=DST)
    assert checked is not None and checked.fault is not None
    assert checked.fault["offset"] == 5


@given(st.binary(max_size=200))
def test_other_traffic_is_never_taken_for_ours(data: bytes) -> None:
    assert check(data) is None or data[14:18] == frames.MAGIC


@pytest.mark.parametrize("size", [0, 59, 9001])
def test_impossible_sizes(size: int) -> None:
    with pytest.raises(ValueError, match="frame size"):
        build(1, 1, size, DST, SRC)


def numbers(*sequence: int) -> list[bytes]:
    return [build(3, number, 64, DST, SRC) for number in sequence]


@pytest.mark.parametrize(
    ("arrived", "damage"),
    [
        (numbers(0, 1, 2, 3), {}),
        (numbers(0, 1, 3), {"missing": [2]}),
        (numbers(0, 1, 1, 2, 3), {"duplicates": [1]}),
        (numbers(0, 2, 1, 3), {"reordered": [1]}),
        (numbers(3, 2, 1, 0), {"reordered": [2, 1, 0]}),
        ([], {"missing": [0, 1, 2, 3]}),
    ],
)
def test_tally(arrived: list[bytes], damage: dict[str, list[int]]) -> None:
    tally = Tally(3, 4, 64)
    for frame in arrived:
        tally.add(frame)
    result = tally.result()
    found = {kind: result[kind]["first"] for kind in ("missing", "duplicates", "reordered")}
    assert {kind: first for kind, first in found.items() if first} == damage
    assert tally.intact is (not damage)


def test_tally_names_corrupt_frames_and_ignores_foreign_ones() -> None:
    tally = Tally(3, 2, 64)
    broken = bytearray(build(3, 1, 64, DST, SRC))
    broken[50] ^= 0xFF
    for frame in (build(3, 0, 64, DST, SRC), bytes(broken), build(4, 0, 64, DST, SRC), b"ping"):
        tally.add(frame)
    result = tally.result()
    assert result["corrupt"]["count"] == 1
    assert result["corrupt"]["first"][0]["sequence"] == 1
    assert result["corrupt"]["first"][0]["offset"] == 50
    assert result["foreign"] == 2
    assert not tally.intact


def test_a_frame_of_another_size_is_corrupt() -> None:
    tally = Tally(3, 1, 128)
    tally.add(build(3, 0, 64, DST, SRC))
    assert tally.result()["corrupt"]["first"] == [
        {"sequence": 0, "what": "length", "expected": 128, "got": 64}
    ]


@given(st.integers(0, 9_999), sizes, st.data())
def test_any_changed_byte_is_found_in_its_own_frame(
    sequence: int, size: int, data: st.DataObject
) -> None:
    """In the header too, where a change may make the frame look like another one."""
    tally = Tally(7, 10_000, size, dst=DST)
    other = (sequence + 1) % 10_000
    tally.add(build(7, other, size, DST, SRC))
    frame = bytearray(build(7, sequence, size, DST, SRC))
    offset = data.draw(st.integers(0, size - 1))
    flipped = data.draw(st.integers(1, 255))
    right = frame[offset]
    frame[offset] ^= flipped
    tally.add(bytes(frame))
    result = tally.result()
    assert result["corrupt"]["first"] == [
        {
            "sequence": sequence,
            "what": "byte",
            "offset": offset,
            "expected": right,
            "got": right ^ flipped,
        }
    ]
    assert result["foreign"] == result["duplicates"]["count"] == 0
    assert result["missing"]["count"] == 9_998


@given(words, words, sizes)
def test_whole_frames_of_other_streams_stay_foreign(stream: int, sequence: int, size: int) -> None:
    tally = Tally(stream ^ 1, 10_000, size, dst=DST)
    tally.add(build(stream, sequence, size, DST, SRC))
    result = tally.result()
    assert (result["foreign"], result["frames"]) == (1, 0)
