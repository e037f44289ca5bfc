"""Whose a finding is, end to end: known issues, what comes during a boot, what crashes twice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import needs_root
from tests.virtual.suite import Session, run_suite

pytestmark = needs_root

# A report's first line, in the kernel's log and on the wire, is a report.
SUITE = """
import pytest

def say(board, driver):
    text = f"WARNING: CPU: 0 PID: 1 at drivers/net/{driver}.c:12 {driver}_poll+0x10/0x20 [{driver}]"
    board.board.run(["sh", "-c", f"echo '<4>{text}' > /dev/kmsg"]).check()

@pytest.fixture
def noisy(board): say(board, "e1000e")

def test_known(board): say(board, "igb")
def test_unknown(board): say(board, "igc")
def test_after_a_noisy_setup(board, noisy): pass
def test_crash(board): board.board.run(["sh", "-c", "echo c > /proc/sysrq-trigger"], timeout_s=60)
def test_last(board): assert board.board.run(["uname", "-s"]).stdout == "Linux"
"""
# As plugins that repeat tests do it.
THRICE = """
def pytest_collection_modifyitems(items):
    for item in list(items):
        if item.name == "test_crash":
            again = [item.from_parent(item.parent, name=item.name, callobj=item.obj) for _ in "12"]
            items[items.index(item) + 1 : items.index(item) + 1] = again
"""
KNOWN = {
    "signature": "warn",
    "driver": "igb",
    "reason": "register reads fail, #12",
    "expires": "2999-12-31",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    directory: Path = tmp_path_factory.mktemp("attribution")
    return run_suite(directory, SUITE, conftest=THRICE, known_issues=[KNOWN])


def test_only_what_nobody_knows_fails(session: Session) -> None:
    verdicts = re.findall(r"^(FAILED|SKIPPED) .*?(test_\w+)$", session.output, re.MULTILINE)
    assert session.status == 1, session.output
    outcomes = session.outcomes()
    assert outcomes["test_known"] == "passed", verdicts
    assert outcomes["test_unknown"] == "failed"
    assert outcomes["test_after_a_noisy_setup"] == "passed"
    assert outcomes["test_last"] == "passed"


def test_what_an_issue_excused_is_told(session: Session) -> None:
    [finding] = session.findings("test_known")
    assert (finding["category"], finding["driver"]) == ("warn", "igb")
    assert finding["known"] == "warn (igb): register reads fail, #12"
    place = "testsuites/crash/test_crash.py::test_known"
    assert f"KNOWN {place}: warn (igb): register reads fail, #12" in session.output


def test_what_a_setup_told_is_the_boots(session: Session) -> None:
    [finding] = [one for one in session.findings("boot") if one["severity"] == "error"]
    assert (finding["category"], finding["driver"]) == ("warn", "e1000e")
    assert re.search(r"^DURING BOOT warn \(e1000e, e1000e_poll\): ", session.output, re.MULTILINE)


def test_two_crashes_are_enough(session: Session) -> None:
    assert len(session.findings("test_crash")) == 2
    assert "not run: it has crashed the board 2 times" in session.output
    # failed twice, and not one of those that were never tried
    table = session.output[session.output.index("suites on ") :]
    [row] = re.findall(r"^crash +(.+)$", table, re.MULTILINE)
    assert row.split() == ["3", "2", "-", "-", "-", "-"]
