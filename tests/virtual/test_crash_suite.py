"""A suite in which a test crashes the kernel: that test fails with the reason, the others run."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import needs_root
from tests.virtual.suite import run_suite

pytestmark = needs_root

CRASH = """
def crash(board):
    board.board.run(["sh", "-c", "echo c > /proc/sysrq-trigger"], timeout_s=60)
"""


def test_panic_in_test_3_of_6(tmp_path: Path) -> None:
    text = f"""
{CRASH}
def good(board):
    assert board.board.run(["uname", "-s"]).stdout == "Linux"

def test_1(board): good(board)
def test_2(board): good(board)
def test_3(board): crash(board)
def test_4(board): good(board)
def test_5(board): good(board)
def test_6(board): good(board)
"""
    session = run_suite(tmp_path, text)
    assert session.status == 1, session.output
    outcomes = session.outcomes()
    assert outcomes.pop("test_3") == "failed"
    assert len(outcomes) == 5 and set(outcomes.values()) == {"passed"}
    [failure] = session.junit.iter("failure")
    [finding] = session.findings("test_3")
    assert finding["test"] == "testsuites/crash/test_crash.py::test_3"
    assert finding["category"] == "panic"
    assert finding["function"] == "sysrq_handle_crash"
    told = failure.text or ""
    assert "panic (sysrq, sysrq_handle_crash)" in told
    assert finding["fingerprint"] in told
    assert f"line {finding['line_number']}, fatal: panic" in told
    assert "Kernel panic - not syncing: sysrq triggered crash" in told
    # the number is that of the line in the session's log
    assert session.log_lines()[finding["line_number"] - 1].endswith(finding["line"])
