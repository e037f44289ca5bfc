"""The one line that a user reads of a boot that failed, and whose failure it is."""

from __future__ import annotations

from typing import Any

import pytest

from hil.console.classify import Classifier
from hil.console.failure import BootFailure, LabBootFailure, describe, of_finding, of_verdict
from hil.console.model import Blame, Finding, Verdict, Vote
from hil.errors import LabError, TargetError
from tests.console.reports import ARM64_NULL


def verdict(vote: Vote = "bad", **fields: Any) -> Verdict:
    said = {"stage": "kernel", "category": "oops", "blame": "kernel", "first_bad_line": "Oops!"}
    empty: dict[str, Any] = dict.fromkeys(("driver", "function", "fingerprint"))
    return Verdict(vote, **(empty | said | fields))


@pytest.mark.parametrize(
    ("vote", "kind", "root"),
    [
        ("bad", BootFailure, TargetError),
        ("no_vote", LabBootFailure, LabError),
        # a limit may pass on a board that has come up
        ("good", LabBootFailure, LabError),
    ],
)
def test_only_a_bad_verdict_is_a_vote_on_the_kernel(vote: Vote, kind: type, root: type) -> None:
    one = verdict(vote)
    error = of_verdict(one)
    assert type(error) is kind and isinstance(error, root)
    assert error.verdict is one
    assert str(error) == describe(one)


@pytest.mark.parametrize(
    ("blame", "kind"),
    [
        ("kernel", TargetError),
        ("userspace", TargetError),
        ("unknown", TargetError),
        ("lab", LabError),
        ("bootloader", LabError),
    ],
)
def test_a_finding_fails_him_who_is_to_blame(blame: Blame, kind: type) -> None:
    finding = Finding(
        category="oops",
        severity="fatal",
        blame=blame,
        stage="kernel",
        line="Oops!",
        line_number=7,
        fingerprint="0123456789ab",
        driver="igb",
        function="igb_poll",
    )
    error = of_finding(finding)
    assert type(error) is kind
    assert str(error) == "oops (igb, igb_poll): Oops! [0123456789ab]"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "oops in kernel: 'Oops!'"),
        ({"driver": "igb"}, "oops (igb) in kernel: 'Oops!'"),
        ({"function": "f"}, "oops (f) in kernel: 'Oops!'"),
        ({"driver": "igb", "function": "f"}, "oops (igb, f) in kernel: 'Oops!'"),
        ({"stage": None}, "oops: 'Oops!'"),
        ({"fingerprint": "0123456789ab"}, "oops in kernel: 'Oops!' [0123456789ab]"),
        (
            {"first_bad_line": None, "details": {"last_line": "Starting kernel ..."}},
            "oops in kernel: last line 'Starting kernel ...'",
        ),
        ({"first_bad_line": None}, "oops in kernel: the console said nothing"),
        (
            {"details": {"last_line": "the first bad line says more"}},
            "oops in kernel: 'Oops!'",
        ),
        (
            {"details": {"hint": "a cable", "limit": "kernel: no byte for 3 s"}},
            "oops in kernel: 'Oops!'; kernel: no byte for 3 s; a cable",
        ),
    ],
)
def test_the_line(fields: dict[str, Any], text: str) -> None:
    assert describe(verdict(**fields)) == text


def test_whatever_the_console_says_it_is_one_line() -> None:
    text = describe(verdict(first_bad_line="a\nb\x1b[0m\tc", fingerprint="0123456789ab"))
    assert text == "oops in kernel: 'a\\nb\\x1b[0m\\tc' [0123456789ab]"


def test_a_real_verdict() -> None:
    classifier = Classifier()
    classifier.feed(ARM64_NULL.encode())
    error = of_verdict(classifier.verdict())
    assert isinstance(error, BootFailure)
    text = str(error)
    assert text.startswith("oops (am65-cpsw-nuss, am65_cpsw_nuss_rx_poll) in ")
    assert "Unable to handle kernel NULL pointer dereference" in text
    assert text.endswith(f"[{error.verdict.fingerprint}]")
    assert "\n" not in text
