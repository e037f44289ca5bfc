"""Runs a suite of its own on a virtual board of its own, and reads what the run left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import attrs
import yaml

from hil import environment
from tests.conftest import BOARD

PROJECT = Path(__file__).parents[2]
CONFTEST = 'pytest_plugins = ["fixtures.board"]\n'


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

    def findings(self, test: str) -> list[dict[str, Any]]:
        """Those of one test function, or of "boot"."""
        found = json.loads((self.directory / "findings.json").read_text())
        return [one for one in found if one["test"].rpartition("::")[2] == test]

    def log_lines(self) -> list[str]:
        """The session's console log."""
        return (self.directory / "console.log").read_text(errors="replace").split("\n")


def run_suite(
    directory: Path,
    text: str,
    *,
    conftest: str = "",
    known_issues: list[dict[str, str]] | None = None,
) -> Session:
    """Run one suite file, with fixtures and hooks of its own, on a virtual board of its own."""
    suite = directory / "testsuites/crash"
    suite.mkdir(parents=True)
    (suite / "test_crash.py").write_text(text)
    (directory / "conftest.py").write_text(CONFTEST + conftest)
    data = yaml.safe_load(environment.find(f"{BOARD}.yaml").read_text())
    data["options"] = {"known_issues": known_issues or []}
    (directory / "bench.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    (directory / "pytest.ini").write_text("[pytest]\naddopts = -ra\n")
    argv = [sys.executable, "-m", "pytest", "--lg-env", "bench.yaml", "testsuites"]
    argv += ["--hil-results", str(directory / "results"), "-p", "no:cacheprovider"]
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
