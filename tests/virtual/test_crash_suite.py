"""A suite in which a test crashes the kernel: that test fails with the reason, the others run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import attrs

from tests.conftest import BOARD, needs_root

pytestmark = needs_root

PROJECT = Path(__file__).parents[2]
CONFTEST = 'pytest_plugins = ["fixtures.board"]\n'
CRASH = """
def crash(board):
    board.board.run(["sh", "-c", "echo c > /proc/sysrq-trigger"], timeout_s=60)
"""


@attrs.frozen
class Session:
    """A finished run: exit status, what it printed, its results directory."""

    status: int
    output: str
    directory: Path

    @property
    def junit(self) -> ET.Element:
        return ET.parse(self.directory / "junit.xml").getroot()

    def outcomes(self) -> dict[str, str]:
        """Test name -> passed, failed, error or skipped, from the JUnit file."""
        kinds = {"failure": "failed", "error": "error", "skipped": "skipped"}
        return {
            case.attrib["name"]: next((kinds[e.tag] for e in case if e.tag in kinds), "passed")
            for case in self.junit.iter("testcase")
        }


def run_suite(directory: Path, text: str, *arguments: str) -> Session:
    """Run one suite file on a virtual board of its own."""
    suite = directory / "testsuites/crash"
    suite.mkdir(parents=True)
    (suite / "test_crash.py").write_text(text)
    (directory / "conftest.py").write_text(CONFTEST)
    (directory / "pytest.ini").write_text("[pytest]\n")
    argv = [sys.executable, "-m", "pytest", "--lg-env", f"{BOARD}.yaml", "testsuites"]
    argv += ["--hil-results", str(directory / "results"), "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        argv,
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    [results] = [path for path in (directory / "results").iterdir() if path.name != "history"]
    return Session(done.returncode, done.stdout, results)


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
    findings = json.loads((session.directory / "findings.json").read_text())
    [finding] = [one for one in findings if one["test"] != "boot"]
    assert finding["test"] == "testsuites/crash/test_crash.py::test_3"
    assert finding["category"] == "panic"
    assert finding["function"] == "sysrq_handle_crash"
    told = failure.text or ""
    assert "panic (sysrq, sysrq_handle_crash)" in told
    assert finding["fingerprint"] in told
    assert f"line {finding['line_number']}, fatal: panic" in told
    assert "Kernel panic - not syncing: sysrq triggered crash" in told
    # the number is that of the line in the session's log
    log = (session.directory / "console.log").read_text(errors="replace").split("\n")
    assert log[finding["line_number"] - 1].endswith(finding["line"])
