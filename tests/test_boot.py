"""`hil boot`: one boot to a verdict, with the exit status that a bisect wants."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hil import environment
from hil.virtual import replay, supervisor

DATA = Path(__file__).parent / "data"
SESSION = DATA / "sessions/virtual-arm64.txt"
AT_ONCE = 1e9
PANIC = b"""\
[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x411fd070]
[    0.000000] Linux version 7.3.4 (hil@lab)
[    2.345678] Kernel panic - not syncing: No working init found.
[    2.345700] CPU: 1 UID: 0 PID: 1 Comm: swapper/0 Not tainted 7.3.4 #1 PREEMPT
[    2.345800] Call trace:
[    2.345900]  show_stack+0x18/0x24 (C)
[    2.346000]  panic+0x3a4/0x3f8
[    2.346100]  kernel_init+0x170/0x1a0
[    2.346200]  ret_from_fork+0x10/0x20
[    2.346300] ---[ end Kernel panic - not syncing: No working init found. ]---
"""


@contextlib.contextmanager
def lab(log: Path) -> Iterator[None]:
    lease = supervisor.up("default", replay.BOARD, log=log, speed=AT_ONCE)
    try:
        yield
    finally:
        supervisor.down(lease.record)


def boot(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hil.cli.main", "boot", "--results", str(directory), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def impatient(directory: Path) -> str:
    """The replay environment with a short silence."""
    data = yaml.safe_load(environment.find("replay.yaml").read_text())
    data["targets"]["main"]["drivers"]["WatchStrategy"] |= {"silence": 2, "quiet": 0.5}
    path = directory / "impatient.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return str(path)


def verdict(run: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    [line] = run.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_good_boot(run_directory: Path, tmp_path: Path) -> None:
    with lab(SESSION):
        run = boot(tmp_path / "results", "--lg-env", impatient(tmp_path), "--json")
    assert run.returncode == 0, run.stderr
    told = verdict(run)
    assert (told["verdict"], told["category"], told["stage"]) == ("good", "boot_ok", "userspace")
    log = Path(told["file"])
    assert log.is_relative_to(tmp_path / "results")
    assert "Starting kernel ..." in log.read_text()


def test_a_panic_is_bad(run_directory: Path, tmp_path: Path) -> None:
    (tmp_path / "panic.log").write_bytes(PANIC)
    with lab(tmp_path / "panic.log"):
        run = boot(tmp_path / "results", "--lg-env", impatient(tmp_path))
    assert run.returncode == 1, run.stderr
    first, *lines = run.stdout.splitlines()
    assert first.startswith("bad: init_failed in kernel")
    # the lines that prove it, and where the rest is
    assert any("No working init found" in line for line in lines)
    assert lines[-1] == f"console log: {next((tmp_path / 'results').glob('*/console.log'))}"


def test_a_fault_of_the_lab_is_no_vote(run_directory: Path, tmp_path: Path) -> None:
    with lab(DATA / "cases/b02-tftp-notfound-stale-dtb.txt"):
        run = boot(tmp_path / "results", "--lg-env", impatient(tmp_path), "--json")
    assert run.returncode == 125, run.stderr
    told = verdict(run)
    assert (told["verdict"], told["blame"]) == ("no_vote", "lab")
    assert told["category"] == "tftp_file_not_found"


def test_silence_ends_a_boot(run_directory: Path, tmp_path: Path) -> None:
    (tmp_path / "silent.log").write_text("Starting kernel ...\n\n")
    with lab(tmp_path / "silent.log"):
        run = boot(tmp_path / "results", "--lg-env", impatient(tmp_path), "--json")
    assert run.returncode == 1, run.stderr
    told = verdict(run)
    assert (told["category"], told["stage"]) == ("kernel_silent", "uboot_handover")
    assert told["details"]["limit"] == "uboot_handover: no byte for 2 s"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--kernel", "."], "--kernel: replay.yaml only watches its board; leave --kernel out"),
        (["--variant", "one-port"], "--variant: replay.yaml only watches its board"),
        (["--kernel", "/no/such"], "--kernel /no/such: no such directory"),
    ],
)
def test_options_that_do_not_fit(
    run_directory: Path, tmp_path: Path, arguments: list[str], text: str
) -> None:
    run = boot(tmp_path / "results", "--lg-env", "replay.yaml", *arguments)
    assert run.returncode == 2
    [line] = run.stderr.splitlines()
    assert text in line
    assert not (tmp_path / "results").exists()


def test_an_environment_that_does_not_exist(tmp_path: Path) -> None:
    run = boot(tmp_path / "results", "--lg-env", "nowhere.yaml")
    assert run.returncode == 2
    [line] = run.stderr.splitlines()
    assert "nowhere.yaml" in line


def test_without_the_lab_of_a_replay(run_directory: Path, tmp_path: Path) -> None:
    run = boot(tmp_path / "results", "--lg-env", "replay.yaml")
    assert run.returncode == 125
    [line] = run.stderr.splitlines()
    assert "hil lab up --replay" in line
