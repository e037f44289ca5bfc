"""Nothing of a lab is left, however the run that used it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.clock import Deadline, wait_until
from hil.errors import LabError
from hil.virtual import assets, registry, supervisor
from hil.virtual.cache import Cache
from hil.virtual.registry import LabRecord
from tests.conftest import BOARD, needs_root

pytestmark = needs_root

PROJECT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def registry_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A lab that somebody has brought up on this machine must not be taken for one of ours."""
    # short, because a socket's path may have 107 bytes only
    with tempfile.TemporaryDirectory(prefix="hil-") as directory:
        monkeypatch.setenv("HIL_RUN", directory)
        yield


def namespaces() -> str:
    return subprocess.run(
        ["ip", "netns", "list"], capture_output=True, text=True, check=True
    ).stdout


def processes(text: str) -> list[str]:
    """Command lines of running processes that contain `text`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has just ended
            continue
        if text in line and path.parent.name != str(os.getpid()):
            found.append(line)
    return found


def traces(name: str) -> list[str]:
    """All that a lab of this name leaves while it lives."""
    record = LabRecord(name)
    places = [Cache().root / "labs" / name, *registry.run_directory().glob(f"{name}*")]
    found = [str(place) for place in places if place.exists()]
    # its name stands in the paths of sockets and configuration files
    found += processes(f"/{name}/")
    if record.namespace in namespaces().split():
        found.append(record.namespace)
    return found


def start_session(tmp_path: Path, lab: str | None = None) -> tuple[subprocess.Popen[bytes], str]:
    """A pytest run in mid-boot, and the name of its lab: its own, or the one that is up."""
    argv = [sys.executable, "-m", "pytest", "--lg-env", f"{BOARD}.yaml", "testsuites/boot"]
    argv += ["--hil-results", str(tmp_path), "-p", "no:cacheprovider"]
    with (tmp_path / "output").open("wb") as output:
        session = subprocess.Popen(argv, cwd=PROJECT, stdout=output, stderr=output)
    name = lab or f"session-{session.pid}"

    def booting() -> bool:
        return any(b"Linux version" in log.read_bytes() for log in tmp_path.glob("*/console.log"))

    wait_until(lambda: booting() or session.poll() is not None, deadline=Deadline(90))
    assert session.poll() is None, (tmp_path / "output").read_text()
    assert len(processes(f"/{name}/")) >= 2  # QEMU and the NFS server
    return session, name


def test_killed_session_is_gone_when_the_next_lab_is_up(tmp_path: Path) -> None:
    session, name = start_session(tmp_path)
    session.kill()
    session.wait()
    other = f"after-{os.getpid()}"
    hil = [sys.executable, "-m", "hil.cli.main", "lab"]
    up = subprocess.run([*hil, "up", "--name", other], capture_output=True, text=True, check=False)
    try:
        assert up.returncode == 0, up.stderr
        assert traces(name) == []
    finally:
        subprocess.run([*hil, "down", "--name", other], check=True, capture_output=True)
    assert traces(other) == []


def test_board_of_a_killed_session_is_switched_off_by_the_next_up(tmp_path: Path) -> None:
    """The lab itself was there before the session, so it stays."""
    name = f"shared-{os.getpid()}"
    hil = [sys.executable, "-m", "hil.cli.main", "lab"]
    subprocess.run([*hil, "up", "--name", name], check=True, capture_output=True)
    try:
        session, _ = start_session(tmp_path, lab=name)
        session.kill()
        session.wait()
        assert any("qemu-system" in line for line in processes(f"/{name}/"))
        up = subprocess.run(
            [*hil, "up", "--name", name], check=True, capture_output=True, text=True
        )
        assert "the board that a killed session left was switched off" in up.stdout
        assert not any("qemu-system" in line for line in processes(f"/{name}/"))
    finally:
        subprocess.run([*hil, "down", "--name", name], check=True, capture_output=True)
    assert traces(name) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signalled_session_takes_its_lab_down(tmp_path: Path, number: signal.Signals) -> None:
    session, name = start_session(tmp_path)
    session.send_signal(number)
    assert session.wait(60) != 0
    assert wait_until(lambda: not traces(name), deadline=Deadline(20)), traces(name)


def test_killed_supervisor_takes_its_children_with_it() -> None:
    assets.prepare(Cache())
    name = f"orphan-{os.getpid()}"
    lease = supervisor.up(name, BOARD, owned=True)
    os.kill(lease.state["pid"], signal.SIGKILL)
    assert wait_until(lambda: not processes(f"/{name}/"), deadline=Deadline(10))
    # its threads end one by one, and its lock is free with the last
    assert LabRecord(name).wait_dead(deadline=Deadline(10))
    assert LabRecord(name).namespace in namespaces().split()
    assert name in registry.reap_dead_labs()
    assert traces(name) == []
    lease.end()


def test_two_labs_side_by_side_share_nothing() -> None:
    assets.prepare(Cache())
    leases = [supervisor.up(f"{side}-{os.getpid()}", BOARD, owned=True) for side in ("a", "b")]
    try:
        first, second = (lease.state for lease in leases)
        for key in ("serial", "power", "ssh_port", "nfs_port", "link_partner", "disk"):
            assert first[key] != second[key]
    finally:
        for lease in leases:
            lease.end()


def test_a_name_is_taken_once() -> None:
    assets.prepare(Cache())
    name = f"once-{os.getpid()}"
    lease = supervisor.up(name, BOARD, owned=True)
    try:
        with pytest.raises(LabError, match="is up already"):
            supervisor.up(name, BOARD, owned=True)
        assert lease.record.alive
    finally:
        lease.end()
