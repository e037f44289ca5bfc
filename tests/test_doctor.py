"""`hil doctor` and the command line: one line a finding, one line an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import serial

from hil import doctor
from hil.bench import Bench
from tests.conftest import BOARD


def hil(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "hil.cli.main", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_the_imported_serial_module_is_labgrids_fork() -> None:
    assert doctor.pyserial_is_fork()


def test_an_overwritten_fork_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rfc2217.py").write_text("# plain pyserial's file\n")
    monkeypatch.setattr(serial, "__file__", str(tmp_path / "__init__.py"))
    assert not doctor.pyserial_is_fork()
    first = next(doctor.examine(f"{BOARD}.yaml", None))
    assert first.good is False
    assert "pip install pyserial-labgrid" in first.says


def test_unknown_environment_is_one_line() -> None:
    done = hil("doctor", "--lg-env", "am65.yaml")
    assert done.returncode == 2
    assert "hil: configuration error: am65.yaml: no such environment file" in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_option_is_usage() -> None:
    done = hil("lab", "up", "--nmae", "x")
    assert done.returncode == 2
    assert "No such option" in done.stderr
    assert "Traceback" not in done.stderr


def test_impossible_lab_name() -> None:
    done = hil("lab", "down", "--name", "../etc")
    assert done.returncode == 2
    assert "use at most 24 small letters, digits and dashes" in done.stderr


def test_running_lab_is_found_good(booted: Bench) -> None:
    """All checks of the virtual board's lab; the serial port is held by the booted bench."""
    checks = list(doctor.examine(f"{BOARD}.yaml", None))
    bad = [check for check in checks if check.good is False]
    assert not bad
    assert {check.what for check in checks} >= {"kernel", "TFTP directory", "NFS root", "power"}
