"""Whose finding it is, whom it fails, and who is not tried again."""

from __future__ import annotations

import datetime
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
import pytest

from hil.console.model import Finding, Severity
from hil.results.attribution import BOOT, CRASH_LIMIT, Attribution
from hil.results.known_issues import KnownIssue

WARN = Finding(
    category="warn",
    severity="error",
    blame="kernel",
    stage="userspace",
    line="[   12.345678] WARNING: at net/core/dev.c:1 f+0x1/0x2",
    line_number=812,
    fingerprint="0123456789ab",
    driver="igb",
    function="igb_poll",
    trace=("igb_poll", "__napi_poll"),
    details={"iface": "eth0"},
    lines=("one", "two"),
)
CRASH = attrs.evolve(WARN, category="oops", severity="fatal", fingerprint="ba9876543210")


def issue(**fields: Any) -> KnownIssue:
    empty = dict.fromkeys(("fingerprint", "signature", "driver"))
    more = {"reason": "it is known", "expires": datetime.date(2999, 1, 1)}
    return KnownIssue(**(empty | more | fields))


def test_what_comes_belongs_to_who_has_begun_last() -> None:
    attribution = Attribution()
    attribution.take(WARN)
    attribution.begin("test_1")
    attribution.take(CRASH)
    attribution.begin(BOOT)
    attribution.take(CRASH)
    attribution.begin("test_2")
    assert [one.finding for one in attribution.of(BOOT)] == [WARN, CRASH]
    assert [one.finding for one in attribution.of("test_1")] == [CRASH]
    assert not attribution.of("test_2") and not attribution.of("test_3")


@pytest.mark.parametrize(
    ("severity", "fails"), [("fatal", True), ("error", True), ("warning", False)]
)
def test_a_warning_fails_nobody(severity: Severity, fails: bool) -> None:
    attribution = Attribution()
    attribution.begin("test")
    one = attribution.take(attrs.evolve(WARN, severity=severity))
    assert one.owner == "test"
    assert one.fails is fails
    assert attribution.failing("test") == ([one.finding] if fails else [])
    assert attribution.of("test") == [one]


@pytest.mark.parametrize(
    "known",
    [
        {"fingerprint": "0123456789ab"},
        {"signature": "warn"},
        {"signature": "warn", "driver": "igb"},
    ],
)
def test_a_known_issue_fails_nobody(known: dict[str, str]) -> None:
    attribution = Attribution([issue(**known)])
    attribution.begin("test")
    one = attribution.take(WARN)
    other = attribution.take(CRASH)
    assert one.reason is not None and one.reason.endswith(": it is known")
    assert not one.fails
    assert other.reason is None
    assert attribution.failing("test") == [CRASH]
    assert attribution.used() == [one]


def test_an_issue_of_another_driver_excuses_nothing() -> None:
    attribution = Attribution([issue(signature="warn", driver="cpsw")])
    assert attribution.take(WARN).fails
    assert not attribution.used()


def test_who_crashed_the_board_twice_is_exhausted() -> None:
    assert CRASH_LIMIT == 2
    attribution = Attribution()
    for run in (1, 2):
        assert not attribution.exhausted("test"), run
        attribution.begin("test")
        attribution.take(CRASH)
        attribution.begin(BOOT)
    assert attribution.exhausted("test")
    assert not attribution.exhausted("other")


def test_a_crash_that_is_told_of_in_several_ways_is_one() -> None:
    attribution = Attribution()
    attribution.begin("test")
    for category in ("oops", "panic", "rcu_stall"):
        attribution.take(attrs.evolve(CRASH, category=category))
    assert not attribution.exhausted("test")
    assert len(attribution.failing("test")) == 3


@pytest.mark.parametrize(
    ("owner", "finding", "issues"),
    [
        (BOOT, CRASH, []),
        ("test", WARN, []),
        ("test", CRASH, [issue(signature="oops")]),
    ],
)
def test_what_is_no_crash_of_a_test(owner: str, finding: Finding, issues: list[KnownIssue]) -> None:
    attribution = Attribution(issues)
    for _ in range(CRASH_LIMIT):
        attribution.begin(owner)
        attribution.take(finding)
    assert not attribution.exhausted(owner)


def test_a_test_that_runs_again_fails_for_its_latest_run_only() -> None:
    attribution = Attribution()
    attribution.begin("test")
    attribution.take(WARN)
    attribution.begin(BOOT)
    assert attribution.failing("test") == [WARN]
    attribution.begin("test")
    assert not attribution.failing("test")
    attribution.take(CRASH)
    assert attribution.failing("test") == [CRASH]


def test_the_boot_keeps_all_of_the_session() -> None:
    attribution = Attribution()
    for finding in (WARN, CRASH):
        attribution.begin(BOOT)
        attribution.take(finding)
        attribution.begin("test")
    assert attribution.failing(BOOT) == [WARN, CRASH]


def test_findings_may_come_from_any_thread() -> None:
    attribution = Attribution()
    attribution.begin("test")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(attribution.take, [WARN] * 1000))
    assert len(attribution.of("test")) == 1000


def test_the_file_of_findings(tmp_path: Path) -> None:
    attribution = Attribution([issue(signature="warn")])
    attribution.take(CRASH)
    attribution.begin("suite::test[°]")
    attribution.take(WARN)
    path = tmp_path / "findings.json"
    attribution.write(path)
    text = path.read_text()
    assert text.endswith("]\n") and "test[°]" in text
    crash, warn = json.loads(text)
    assert (crash["test"], crash["known"]) == ("boot", None)
    assert (warn["test"], warn["known"]) == ("suite::test[°]", "warn: it is known")
    for name, value in attrs.asdict(WARN).items():
        assert warn[name] == (list(value) if isinstance(value, tuple) else value), name


def test_no_findings_are_an_empty_list(tmp_path: Path) -> None:
    path = tmp_path / "findings.json"
    Attribution().write(path)
    assert json.loads(path.read_text()) == []
