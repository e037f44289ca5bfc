"""A recorded log is a board: power switches it, labgrid reads it, and nothing is left of it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pexpect
import pytest
import requests
from click.testing import CliRunner
from labgrid.driver import NetworkPowerDriver

from hil import environment
from hil.cli.main import cli
from hil.clock import Deadline, monotonic, wait_until
from hil.console.driver import ConsoleDriver
from hil.errors import ConfigError, HilError, LabError
from hil.virtual import registry, replay, supervisor
from hil.virtual.ports import answers
from hil.virtual.recording import Piece
from hil.virtual.registry import LabRecord
from hil.virtual.replay import ReplayBoard, ReplayLab
from hil.virtual.serial import BACKLOG_BYTES, CLIENT_LIMIT_BYTES, SerialBridge
from tests.conftest import needs_root

CASE = Path(__file__).parent.parent / "data/cases/b18-am62a-missing-netdev-one-port.txt"
PLAYED = CASE.read_bytes().replace(b"\n", b"\r\n")
# Fast enough for any recording to end at once.
AT_ONCE = 1e9
SILENCE_S = 0.3


class Devices(NamedTuple):
    power: NetworkPowerDriver
    console: ConsoleDriver


@contextlib.contextmanager
def devices(values: dict[str, Any]) -> Iterator[Devices]:
    """labgrid's drivers for a lab, made from the environment file of the project."""
    env = environment.load(environment.find("replay.yaml"), values)
    target = env.get_target()
    try:
        yield Devices(target.get_driver("NetworkPowerDriver"), target.get_driver("ConsoleDriver"))
    finally:
        env.cleanup()


@contextlib.contextmanager
def replayed(log: Path, speed: float = 1.0) -> Iterator[Devices]:
    with ReplayLab(log, speed=speed) as lab, devices(lab.environment()) as found:
        yield found


def read(console: ConsoleDriver, size: int) -> bytes:
    """At least so many bytes of the console; pexpect.TIMEOUT when they do not come."""
    data, deadline = b"", Deadline(20)
    while len(data) < size:
        data += console.read(timeout=deadline.remaining_s)
    return data


def rest(console: ConsoleDriver) -> bytes:
    """What still comes before the console falls silent."""
    data = b""
    with contextlib.suppress(pexpect.TIMEOUT):
        while True:
            data += console.read(timeout=SILENCE_S)
    return data


def silent(console: ConsoleDriver) -> bool:
    return rest(console) == b""


def running(pid: int) -> bool:
    """Whether the process runs; one that has ended and that nobody has waited for does not."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except FileNotFoundError:
        return False


def players() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "replay"]


@pytest.fixture
def pausing(tmp_path: Path) -> Path:
    """A log that says two words, and another one after an hour."""
    path = tmp_path / "pausing.log"
    stamp = "2026-11-30T23:53:04.123456Z"
    path.write_text(f"{stamp} 10.000000 one\n{stamp} 10.400000 two\n{stamp} 3600.000000 three\n")
    return path


def test_a_recorded_log_comes_whole_and_then_nothing() -> None:
    with replayed(CASE, AT_ONCE) as (power, console):
        assert power.get() is False
        power.on()
        assert read(console, len(PLAYED)) == PLAYED
        assert silent(console)
        assert power.get() is True


def test_a_board_without_power_says_nothing(pausing: Path) -> None:
    with replayed(pausing) as (_, console):
        assert silent(console)


def test_what_is_typed_is_thrown_away(pausing: Path) -> None:
    with replayed(pausing) as (power, console):
        power.on()
        for _ in range(4):
            console.write(b"x" * (1 << 20) + b"\n")
        assert read(console, 10) == b"one\r\ntwo\r\n"
        console.write(b"reboot\n")
        assert silent(console)


@pytest.mark.parametrize(
    ("speed", "text", "last_s"),
    [
        (1.0, b"one\r\ntwo\r\n", 0.4),
        (0.5, b"one\r\ntwo\r\n", 0.8),
        (3600.0, b"one\r\ntwo\r\nthree\r\n", 3590 / 3600),
    ],
)
def test_the_log_keeps_its_pace(pausing: Path, speed: float, text: bytes, last_s: float) -> None:
    with replayed(pausing, speed) as (power, console):
        start_s = monotonic()
        power.on()
        assert read(console, len(text)) == text
        assert last_s <= monotonic() - start_s < last_s + 10


def test_a_power_cycle_starts_from_the_beginning(pausing: Path) -> None:
    with replayed(pausing) as (power, console):
        power.on()
        assert read(console, 10) == b"one\r\ntwo\r\n"
        power.cycle()
        assert read(console, 10) == b"one\r\ntwo\r\n"
    with replayed(CASE, AT_ONCE) as (power, console):
        for _ in range(3):
            power.off()
            power.on()
            assert read(console, len(PLAYED)) == PLAYED


def test_power_that_is_on_already_changes_nothing(pausing: Path) -> None:
    with replayed(pausing) as (power, console):
        power.on()
        read(console, 10)
        power.on()
        assert silent(console)
        assert len(players()) == 1


def test_power_off_ends_a_pause(pausing: Path) -> None:
    with replayed(pausing) as (power, console):
        power.on()
        read(console, 10)
        deadline = Deadline(2)
        power.off()
        assert not deadline.expired
        assert power.get() is False
        assert players() == []
        assert silent(console)
        power.off()


def test_power_off_ends_a_play_that_is_going_on(tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    log.write_bytes(b"0123456789\n" * 100_000)
    with replayed(log) as (power, console):
        power.on()
        read(console, 100)
        power.off()
        # what was on its way; without an end it would be a megabyte
        assert len(rest(console)) < 100_000


def test_power_off_while_nobody_reads() -> None:
    pieces = [Piece(0.0, bytes(8 << 20))]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("")
        listener.listen()
        board = ReplayBoard(pieces, listener.getsockname())
        board.on()
        with listener.accept()[0] as line:
            # far more is to come than the socket holds, so the player waits for us
            assert line.recv(1000)
            deadline = Deadline(5)
            board.off()
            assert not deadline.expired
    assert not board.powered
    assert players() == []


def test_a_console_that_is_not_there_is_told() -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("")
        address = listener.getsockname()
    board = ReplayBoard([], address)
    with pytest.raises(OSError):
        board.on()
    assert not board.powered


@pytest.fixture
def patient() -> Iterator[tuple[SerialBridge, socket.socket]]:
    """A patient bridge and the board's end of it."""
    bridge = SerialBridge(patient=True)
    bridge.start()
    with socket.socket(socket.AF_UNIX) as board:
        board.settimeout(5)
        board.connect(bridge.board_address)
        yield bridge, board
    bridge.stop()


def send_until_it_waits(board: socket.socket, limit: int) -> int:
    """Send until the other side takes nothing more; how many bytes it took."""
    sent = 0
    block = bytes(1 << 20)
    while sent < limit and select.select([], [board], [], SILENCE_S)[1]:
        board.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            sent += board.send(block)
    return sent


def test_a_slow_client_stops_the_board_and_gets_all(
    patient: tuple[SerialBridge, socket.socket],
) -> None:
    bridge, board = patient
    with socket.create_connection(("127.0.0.1", bridge.port), 5) as client:
        client.sendall(b"x")
        assert board.recv(1) == b"x"  # the bridge knows its client now
        sent = send_until_it_waits(board, 4 * CLIENT_LIMIT_BYTES)
        assert BACKLOG_BYTES < sent < CLIENT_LIMIT_BYTES
        client.sendall(b"still heard")
        board.settimeout(5)
        assert board.recv(100) == b"still heard"
        received = 0
        while received < sent:
            received += len(client.recv(1 << 20))
        board.sendall(b"end")
        assert client.recv(3) == b"end"


def test_without_a_client_the_board_waits_for_nobody(
    patient: tuple[SerialBridge, socket.socket],
) -> None:
    bridge, board = patient
    board.sendall(bytes(8 * BACKLOG_BYTES) + b"end")
    board.shutdown(socket.SHUT_WR)
    assert board.recv(1) == b""  # the bridge has read everything and hung up
    with socket.create_connection(("127.0.0.1", bridge.port), 5) as client:
        kept = b""
        while not kept.endswith(b"end"):
            kept += client.recv(BACKLOG_BYTES)
    assert len(kept) == BACKLOG_BYTES


def test_all_is_released(pausing: Path) -> None:
    def held() -> tuple[set[threading.Thread], int]:
        return set(threading.enumerate()), len(list(Path("/proc/self/fd").iterdir()))

    with replayed(pausing) as (power, console):
        power.on()  # what libraries keep for good is there after this
        read(console, 5)
    before = held()
    for _ in range(3):
        with ReplayLab(pausing) as lab:
            with devices(lab.environment()) as (power, console):
                power.on()
                read(console, 5)
            values = lab.environment()["resources"]
    assert held() == before
    assert not answers(values["NetworkSerialPort"]["port"])
    assert not answers(int(values["NetworkPowerPort"]["host"].split("/")[2].split(":")[1]))


@pytest.mark.parametrize("speed", [0.0, -1.0, float("inf"), float("-inf"), float("nan")])
def test_speeds_that_are_none(speed: float) -> None:
    with pytest.raises(ConfigError, match=r"^speed \S+: must be more than 0, and finite$"):
        ReplayLab(CASE, speed=speed)


def test_logs_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.log: No such file .*; give a readable"):
        ReplayLab(tmp_path / "none.log")
    with pytest.raises(ConfigError, match=r": no regular file; give a console log"):
        ReplayLab(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ConfigError, match=r"fifo: no regular file"):
        ReplayLab(tmp_path / "fifo")


def test_an_empty_log_is_a_silent_board(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    with replayed(tmp_path / "empty.log") as (power, console):
        power.on()
        assert silent(console)
        assert power.get() is True


def test_the_lab_of_a_session_ends_with_its_lease(run_directory: Path) -> None:
    lease = supervisor.up("mine", replay.BOARD, owned=True, log=CASE, speed=AT_ONCE)
    state = lease.state
    with devices(state["environment"]) as (power, console):
        power.on()
        assert read(console, len(PLAYED)) == PLAYED
    lease.end()
    assert not running(state["pid"])
    assert list(run_directory.iterdir()) == []


def test_what_a_killed_supervisor_leaves_is_removed(run_directory: Path) -> None:
    lease = supervisor.up("killed", replay.BOARD, owned=True, log=CASE)
    state = lease.state
    requests.put(state["power"], data=b"1", timeout=5).raise_for_status()
    os.kill(state["pid"], signal.SIGKILL)
    assert wait_until(lambda: not lease.record.alive, deadline=Deadline(10))
    assert registry.reap_dead_labs() == ["killed"]
    assert list(run_directory.iterdir()) == []
    lease.end()


def hil(*arguments: str, prefix: tuple[str, ...] = ()) -> str:
    """Output of `hil lab`, run for itself."""
    run = subprocess.run(
        [*prefix, sys.executable, "-m", "hil.cli.main", "lab", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


# Not even root may make namespaces or mounts like this.
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all")


def test_the_command_brings_a_lab_up_and_down(run_directory: Path) -> None:
    prefix = POWERLESS if os.geteuid() == 0 else ()
    up = hil("up", "--replay", str(CASE), "--speed", "100", prefix=prefix)
    try:
        assert up.startswith("lab default is up\n")
        state = LabRecord.named("default").state()
        assert state is not None
        status = hil("status", prefix=prefix)
        assert f"board         replay of {CASE} (speed 100)" in status
        assert f"power         off ({state['power']})" in status
        with devices(state["environment"]) as (power, console):
            power.on()
            assert read(console, len(PLAYED)) == PLAYED
        assert "power         on" in hil("status", prefix=prefix)
    finally:
        assert hil("down", prefix=prefix) == "lab default is down\n"
    assert list(run_directory.iterdir()) == []
    # the lab is down when its lock is free, which is just before the end of its process
    assert wait_until(lambda: not running(state["pid"]), deadline=Deadline(10))


def complaint(*arguments: str) -> HilError:
    error = CliRunner().invoke(cli, ["lab", "up", *arguments]).exception
    assert isinstance(error, HilError)
    assert "\n" not in str(error)
    return error


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--speed", "2"], "--speed: only a replay has one"),
        (["--replay", str(CASE), "--board", "virtual-arm64"], "--board: a replay needs no profile"),
        (["--replay", str(CASE), "--speed", "0"], "speed 0: must be more than 0"),
        (["--replay", str(CASE), "--speed", "inf"], "speed inf: must be more than 0"),
        (["--replay", "/none.log"], "/none.log: No such file or directory"),
    ],
)
def test_wrong_options_are_told(run_directory: Path, arguments: list[str], text: str) -> None:
    error = complaint(*arguments)
    assert isinstance(error, ConfigError)
    assert text in str(error)
    assert list(run_directory.iterdir()) == []


@needs_root
def test_a_lab_that_is_up_is_not_taken_for_another(run_directory: Path) -> None:
    lease = supervisor.up("taken", replay.BOARD, log=CASE)
    try:
        error = complaint("--name", "taken", "--replay", str(CASE))
        assert isinstance(error, LabError)
        assert "'taken' is up already" in str(error)
        error = complaint("--name", "taken")
        assert isinstance(error, LabError)
        assert "taken is up and is a replay" in str(error)
    finally:
        lease.end()
