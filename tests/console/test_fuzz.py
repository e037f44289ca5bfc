"""Whatever a wire makes of a log, the classifier answers, and how it was cut changes nothing.

`--hypothesis-profile=long` looks for much longer.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hil.console.classify import Classifier
from hil.console.model import Verdict

CASES = Path(__file__).parent.parent / "data/cases"
LOGS = {path.stem: path.read_bytes() for path in sorted(CASES.glob("*.txt"))}
# The longest ones say no more than the others, and take long.
SHORT = {name: data for name, data in LOGS.items() if len(data) < 100_000}
MARKS = [b"\x1b[0m", b"\0", b"\r", b"\n", b"\xff\xfe", b"\x1b]0;", b"[   ", b"\b", b"\xe6\x94"]

relaxed = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
logs = st.sampled_from(sorted(SHORT)).map(SHORT.__getitem__)


def classify(*chunks: bytes) -> Verdict:
    classifier = Classifier()
    for chunk in chunks:
        classifier.feed(chunk)
    return classifier.verdict()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Data in pieces; the places are taken modulo its length."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def is_sound(verdict: Verdict) -> None:
    """What every verdict keeps, however odd the log is."""
    assert verdict.verdict in ("good", "bad", "no_vote")
    for finding in verdict.findings:
        assert finding.line_number >= 1
        assert finding.fingerprint


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize("name", sorted(SHORT))
def test_equal_chunks(name: str, size: int) -> None:
    data = SHORT[name]
    if size == 1:
        # byte by byte where it matters: a whole log so would take minutes
        data = data[-3000:]
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert classify(*chunks) == classify(data)


@relaxed
@given(logs, st.lists(st.integers(0, 1 << 20), max_size=40))
def test_any_chunks(data: bytes, places: list[int]) -> None:
    assert classify(*cut(data, places)) == classify(data)


@relaxed
@given(logs, logs, st.lists(st.integers(0, 1 << 20), max_size=12))
def test_two_logs_on_one_wire(one: bytes, other: bytes, places: list[int]) -> None:
    """Two processors that share a UART cut each other's lines anywhere."""
    pieces = [cut(one, places), cut(other, places)]
    merged = b"".join(a + b for a, b in zip(*pieces, strict=True))
    is_sound(classify(merged))
    assert classify(*cut(merged, places[::-1])) == classify(merged)


@relaxed
@given(
    logs,
    st.lists(
        st.tuples(
            st.integers(0, 1 << 20), st.one_of(st.binary(max_size=4), st.sampled_from(MARKS))
        ),
        max_size=60,
    ),
)
def test_noise(data: bytes, noise: list[tuple[int, bytes]]) -> None:
    """Bytes are lost, changed and added."""
    for place, bytes_there in noise:
        at = place % (len(data) + 1)
        data = data[:at] + bytes_there + data[at + len(bytes_there) // 2 :]
    whole = classify(data)
    is_sound(whole)
    assert classify(*cut(data, [place for place, _ in noise])) == whole


@relaxed
@given(logs, st.integers(0, 1 << 20), st.integers(0, 1 << 20))
def test_parts_of_logs(data: bytes, start: int, end: int) -> None:
    start, end = sorted((start % (len(data) + 1), end % (len(data) + 1)))
    is_sound(classify(data[start:end]))


@relaxed
@given(st.lists(st.one_of(st.binary(max_size=200), st.sampled_from(MARKS)), max_size=30))
def test_any_bytes(chunks: list[bytes]) -> None:
    whole = classify(b"".join(chunks))
    is_sound(whole)
    assert classify(*chunks) == whole


@relaxed
@given(logs, st.lists(st.integers(0, 1 << 20), max_size=10))
def test_looking_between_chunks_changes_nothing(data: bytes, places: list[int]) -> None:
    """A verdict that is asked for while the log still comes leaves no trace."""
    classifier = Classifier()
    for chunk in cut(data, places):
        classifier.feed(chunk)
        is_sound(classifier.verdict())
    assert classifier.verdict() == classify(data)
