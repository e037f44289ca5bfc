"""Recorded failures come out as what they are: each log of tests/data/cases and its `expect`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hil.console.classify import Classifier
from hil.console.model import Verdict

CASES = Path(__file__).parent.parent / "data/cases"
KINDS = ("boot", "driver", "labgrid")
# What the index calls a verdict, and what a bisect may make of it.
VOTES = {
    "fail": {"bad", "no_vote"},
    "pass": {"good"},
    "warn": {"good", "no_vote"},
    "no_verdict": {"no_vote"},
    "skip": {"no_vote"},
    "retry": {"no_vote"},
    "infra_error": {"no_vote"},
}
# Keys of `expect` that stand in the verdict's details under the same name.
DETAILS = ("iface", "queue", "loops", "server", "esr", "far", "task", "seconds")


def cases() -> list[Any]:
    index = yaml.safe_load((CASES / "index.yaml").read_text())
    return [pytest.param(c, id=c["id"]) for c in index["cases"] if c["kind"] in KINDS]


def classify(data: bytes) -> Verdict:
    classifier = Classifier()
    classifier.feed(data)
    return classifier.verdict()


@pytest.mark.parametrize("case", cases())
def test_recorded_case(case: dict[str, Any]) -> None:
    verdict = classify((CASES / case["file"]).read_bytes())
    expect = case["expect"]
    assert verdict.category == expect["category"]
    assert verdict.verdict in VOTES[expect["verdict"]]
    for name in ("stage", "driver", "function", "first_bad_line"):
        if name in expect:
            assert getattr(verdict, name) == expect[name]
    for name in DETAILS:
        if name in expect:
            assert str(verdict.details[name]) == str(expect[name])
    if isinstance(expect.get("errno"), int):
        assert int(verdict.details["errno"]) == expect["errno"]
    if "core_function" in expect:
        assert verdict.details["core_function"] == expect["core_function"]
    for other in expect.get("also", ()):
        assert other in verdict.details["also"]
    if "root_line" in expect:
        assert verdict.details["root_line"] == expect["root_line"]


@pytest.mark.parametrize(
    ("name", "votes"),
    [("b01-spl-bootp-timeout", "no_vote"), ("b18-am62a-missing-netdev-one-port", "bad")],
)
def test_who_is_to_blame_decides_the_vote(name: str, votes: str) -> None:
    assert classify((CASES / f"{name}.txt").read_bytes()).verdict == votes


@pytest.mark.parametrize("case", cases())
@pytest.mark.parametrize(
    "stamp",
    [
        "2026-12-07T11:34:29.592827Z 19095.442960 ",
        "2026-12-07T11:34:29.592827Z 19095.442960 kmsg: ",
        "[2026-12-07 11:34:29.592] ",
        "[11:34:29] ",
        "2026-12-07T11:34:29.5928270Z ",
        "[12.001234 0.000123] ",
    ],
)
def test_stamps_of_a_capture_change_nothing(case: dict[str, Any], stamp: str) -> None:
    raw = (CASES / case["file"]).read_bytes()
    plain = classify(raw)
    # \r\n only: a lone carriage return begins a line of its own, which no capture would stamp
    stamped = b"\n".join(
        stamp.encode() + line if line else line for line in raw.replace(b"\r\n", b"\n").split(b"\n")
    )
    verdict = classify(stamped)
    for name in ("verdict", "category", "stage", "blame", "driver", "function", "fingerprint"):
        assert getattr(verdict, name) == getattr(plain, name)
    assert verdict.first_bad_line == plain.first_bad_line


def test_a_recorded_session_is_good() -> None:
    session = CASES.parent / "sessions/virtual-arm64.txt"
    verdict = classify(session.read_bytes())
    assert (verdict.verdict, verdict.category) == ("good", "boot_ok")
