"""Commands in a namespace, on the board, and on a link partner behind a real ssh server."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.bench import Bench
from hil.clock import Deadline, wait_until
from hil.errors import LabError, TargetError
from hil.runners import BoardHost, Host, NamespaceHost
from hil.ssh_host import SshHost
from hil.virtual.keys import make_key
from hil.virtual.ports import free_port
from tests.conftest import needs_root

pytestmark = needs_root


@pytest.fixture
def namespace() -> Iterator[NamespaceHost]:
    name = f"hil-test-{uuid.uuid4().hex[:8]}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    yield NamespaceHost(name)
    subprocess.run(["ip", "netns", "delete", name], check=True)


def ssh_host(bench: Bench, directory: Path) -> SshHost:
    """The virtual board's real ssh server, taken as a link partner."""
    service = bench.strategy.ssh.networkservice
    return SshHost(
        f"root@{service.address}:{service.port}",
        key_file=Path(bench.strategy.ssh.keyfile),
        known_hosts=directory / "known_hosts",
    )


@pytest.fixture(params=["namespace", "ssh", "board"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    """All kinds of hosts; they must be alike to their users."""
    if request.param == "namespace":
        yield request.getfixturevalue("namespace")
    elif request.param == "board":
        yield request.getfixturevalue("booted").board
    else:
        with ssh_host(request.getfixturevalue("booted"), tmp_path) as remote:
            yield remote


def test_output_and_status(host: Host) -> None:
    result = host.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (result.stdout, result.stderr.strip(), result.status) == ("out", "err", 3)
    with pytest.raises(TargetError, match="exit status 3: err"):
        result.check()


def test_arguments_are_not_split(host: Host) -> None:
    argument = "two words; $HOME 'quoted' *"
    assert host.run(["printf", "%s", argument]).stdout == argument


def test_lines_come_while_the_command_runs(host: Host) -> None:
    with host.start(["sh", "-c", "echo ready; exec sleep 100"]) as running:
        assert running.line(deadline=Deadline(10)) == "ready"


def test_a_silent_command_is_given_up(host: Host) -> None:
    with pytest.raises(LabError, match=r"no output within 0\.3 s"):
        host.run(["sleep", "100"], timeout_s=0.3)


def test_stopping_ends_the_process_itself(host: Host) -> None:
    with host.start(["sh", "-c", "echo $$; exec sleep 100"]) as running:
        pid = running.line(deadline=Deadline(10)) or ""
        assert host.run(["kill", "-0", pid]).status == 0
    assert wait_until(lambda: host.run(["kill", "-0", pid]).status != 0, deadline=Deadline(10))


def test_an_interrupt_ends_the_waiting(host: Host) -> None:
    error = TargetError("oops")
    with host.start(["sh", "-c", "echo ready; exec sleep 100"]) as running:
        assert running.line(deadline=Deadline(10)) == "ready"
        running.interrupt(error)
        with pytest.raises(TargetError, match="oops") as caught:
            running.wait(deadline=Deadline(60))
    assert caught.value is error


def test_who_keeps_the_error_output_open_is_not_waited_for(namespace: NamespaceHost) -> None:
    result = namespace.run(["sh", "-c", "sleep 1000 >/dev/null & echo $!"], timeout_s=30)
    os.kill(int(result.stdout), signal.SIGKILL)
    assert result.status == 0


def test_a_fault_ends_all_commands_of_a_board(booted: Bench) -> None:
    board = BoardHost(booted.strategy.ssh, "board")
    with board.start(["sleep", "100"]) as one, board.start(["sleep", "100"]) as other:
        board.interrupt(TargetError("a warning"), dead=False)
        for running in (one, other):
            with pytest.raises(TargetError, match="a warning"):
                running.line(deadline=Deadline(60))
    assert board.run(["true"]).status == 0


def test_a_dead_board_is_not_asked_until_it_has_booted_anew(booted: Bench) -> None:
    board = BoardHost(booted.strategy.ssh, "board")
    board.interrupt(TargetError("a panic"), dead=True)
    with pytest.raises(TargetError, match="a panic"):
        board.run(["true"])
    board.revive()
    assert board.run(["true"]).status == 0


def test_put(host: Host, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * 100)
    target = f"/tmp/hil-test-{uuid.uuid4().hex}"
    host.put(source, target)
    try:
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        assert host.run(["sha256sum", target]).check().stdout.split()[0] == digest
    finally:
        host.run(["rm", target]).check()


def test_namespace_sees_only_its_own_interfaces(namespace: NamespaceHost) -> None:
    assert namespace.run(["ls", "/sys/class/net"]).stdout.split() == ["lo"]


def test_changed_host_key_is_refused(booted: Bench, tmp_path: Path) -> None:
    with ssh_host(booted, tmp_path) as first:
        assert first.run(["true"]).status == 0
    known = tmp_path / "known_hosts"
    place, kind, _ = known.read_text().split()
    make_key(tmp_path / "other")
    _, other, *_ = (tmp_path / "other.pub").read_text().split()
    known.write_text(f"{place} {kind} {other}\n")
    with pytest.raises(LabError, match="host key has changed"):
        ssh_host(booted, tmp_path).open()


def test_unreachable_host_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"link partner root@127\.0\.0\.1") as caught:
        SshHost(f"127.0.0.1:{free_port()}", known_hosts=tmp_path / "known_hosts").open()
    assert "\n" not in str(caught.value)
