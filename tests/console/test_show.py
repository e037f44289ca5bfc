"""How a verdict looks on a terminal, and which exit status tells it to a bisect."""

from __future__ import annotations

from typing import Any

import pytest

from hil.console.model import Finding, Verdict, Vote
from hil.console.show import exit_status, lines_of, proof


def verdict(vote: Vote, **fields: Any) -> Verdict:
    names = ("stage", "blame", "first_bad_line", "driver", "function", "fingerprint")
    return Verdict(vote, **{**dict.fromkeys(names), "category": "oops", **fields})


def finding(lines: int) -> Finding:
    texts = tuple(f"evidence {number}" for number in range(1, lines + 1))
    return Finding("oops", "fatal", "kernel", "kernel", "Oops!", 812, "0123456789ab", lines=texts)


@pytest.mark.parametrize(
    ("votes", "status"),
    [
        ([], 0),
        (["good"], 0),
        (["bad"], 1),
        (["no_vote"], 125),
        (["good", "no_vote"], 125),
        (["no_vote", "bad", "good"], 1),
    ],
)
def test_exit_status(votes: list[Vote], status: int) -> None:
    """As `git bisect run` takes it: 125 skips."""
    assert exit_status(verdict(vote) for vote in votes) == status


def test_a_verdict_without_more() -> None:
    assert list(lines_of(verdict("good", category="boot_ok", stage="userspace"))) == [
        "good: boot_ok in userspace"
    ]
    assert list(lines_of(verdict("no_vote", category="nothing_found"))) == [
        "no vote: nothing_found"
    ]


def test_a_verdict_with_all_it_may_have() -> None:
    one = verdict(
        "bad",
        stage="kernel",
        blame="kernel",
        driver="igb",
        function="igb_poll",
        fingerprint="0123456789ab",
        first_bad_line="Oops!",
        details={"also": ["warn", "panic"], "queue": 0, "last_line": "", "limit": None},
        findings=(finding(2),),
    )
    assert list(lines_of(one)) == [
        "bad: oops in kernel",
        "  blame:          kernel",
        "  driver:         igb",
        "  function:       igb_poll",
        "  fingerprint:    0123456789ab",
        "  first bad line: Oops!",
        "  also:           warn; panic",
        "  queue:          0",
        "  line 812, fatal: oops",
        "    | evidence 1",
        "    | evidence 2",
    ]


def test_names_of_details_are_for_people() -> None:
    shown = list(lines_of(verdict("bad", details={"root_line": "cause", "a_long_long_name": 1})))
    assert shown[1:] == ["  root line:      cause", "  a long long name: 1"]


def test_warnings_are_shown_as_findings_only() -> None:
    one = verdict("good", details={"warnings": ["oops: Oops!"]}, findings=(finding(1),))
    assert list(lines_of(one))[1:] == ["  line 812, fatal: oops", "    | evidence 1"]


@pytest.mark.parametrize(("lines", "shown", "end"), [(20, 20, None), (21, 20, 1), (40, 20, 20)])
def test_evidence_fits_a_terminal(lines: int, shown: int, end: int | None) -> None:
    head, *rest = proof(finding(lines))
    assert head == "  line 812, fatal: oops"
    assert rest[:shown] == [f"    | evidence {number}" for number in range(1, shown + 1)]
    assert rest[shown:] == ([f"    | ... {end} more"] if end else [])
