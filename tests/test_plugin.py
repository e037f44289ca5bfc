"""The pytest plugin as a user meets it: one reason, one line, the right exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]


def run(*arguments: str) -> tuple[int, str]:
    """Exit status and output of pytest in the project's directory."""
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        argv, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


def test_without_an_environment_the_suites_are_skipped_for_one_reason() -> None:
    status, output = run("testsuites")
    assert status == 0
    skips = [line for line in output.splitlines() if line.startswith("SKIPPED")]
    assert skips
    assert all("needs a board: run `pytest --lg-env virtual-arm64.yaml`" in line for line in skips)


def test_with_an_environment_only_the_suites_are_collected() -> None:
    status, output = run("--lg-env", "am64x.yaml", "--collect-only", "-q")
    assert status == 0
    items = [line for line in output.splitlines() if "::" in line]
    assert items and all(item.startswith("testsuites/") for item in items)
    assert any("icssg1-port0" in item for item in items)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--lg-env", "am65.yaml"], "am65.yaml: no such environment file"),
        (
            ["--lg-env", "virtual-arm64.yaml", "--hil-kernel", "/no/kernel"],
            "--hil-kernel /no/kernel: no such directory",
        ),
    ],
)
def test_wrong_options_are_one_line(arguments: list[str], expected: str) -> None:
    status, output = run(*arguments, "testsuites")
    assert status == 4
    assert f"ERROR: {expected}" in output
    assert "Traceback" not in output


def test_unknown_key_in_a_profile(tmp_path: Path) -> None:
    profile = (PROJECT / "hil/boards/data/virtual-arm64.yaml").read_text()
    (tmp_path / "board.yaml").write_text(profile.replace("link_up:", "linkup:"))
    text = (PROJECT / "environments/virtual-arm64.yaml").read_text()
    env = tmp_path / "mine.yaml"
    env.write_text(text.replace("board: virtual-arm64", f"board: {tmp_path}/board.yaml"))
    status, output = run("--lg-env", str(env), "testsuites")
    assert status == 4
    assert "deadlines.linkup: unknown key; did you mean 'link_up'?" in output
    assert "Traceback" not in output
