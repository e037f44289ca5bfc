"""The process that owns a virtual lab, and how to start and end it.

A lab lives in a process of its own. The one who wants it for himself (a test session) holds the
writing end of a pipe: when he ends, in whatever way, the supervisor reads the end of the pipe and
takes the lab down. A lab for everybody (`hil lab up`) has no owner and ends by `hil lab down`.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hil.boards.load import load_board
from hil.clock import Deadline, wait_until
from hil.errors import HilError, LabError
from hil.virtual import assets
from hil.virtual.cache import Cache
from hil.virtual.lab import VirtualLab
from hil.virtual.registry import END_DEADLINE_S, LabRecord, run_directory
from hil.virtual.replay import ReplayLab

UP_DEADLINE_S = 60.0
_ERROR_MARK = "lab supervisor: "


def up(
    name: str, board: str, *, owned: bool = False, log: Path | None = None, speed: float = 1.0
) -> Lease:
    """Bring a lab up and wait until it is ready; the assets must be in the cache already.

    A `log` is played by a replay board (`hil.virtual.replay`), which needs no assets.
    With `owned` the lab ends when the lease is closed or the calling process ends.
    LabError with the supervisor's reason when it does not come up.
    """
    record = LabRecord.named(name)
    if record.alive:
        raise LabError(f"lab {name!r} is up already; see `hil lab status`")
    record.reap()
    run_directory().mkdir(parents=True, exist_ok=True)
    receiver, sender = os.pipe() if owned else (None, None)
    argv = [sys.executable, "-m", "hil.virtual.supervisor", name, board]
    if receiver is not None:
        argv += ["--owner-fd", str(receiver)]
    if log is not None:
        argv += ["--log", str(log.absolute()), "--speed", str(speed)]
    with record.log_file.open("wb") as output:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[receiver] if receiver is not None else [],
        )
    if receiver is not None:
        os.close(receiver)
    lease = Lease(record, process, sender)
    try:
        wait_until(
            lambda: record.state() or process.poll() is not None, deadline=Deadline(UP_DEADLINE_S)
        )
        state = record.state()
        if process.poll() is not None or state is None:
            raise LabError(f"lab {name!r} did not come up: {_reason(record)}")
    except BaseException:
        lease.end(keep_log=True)
        raise
    return lease


class Lease:
    """A running lab as seen by the one who brought it up."""

    def __init__(
        self, record: LabRecord, process: subprocess.Popen[bytes], owner_pipe: int | None
    ) -> None:
        self.record = record
        self._process = process
        self._owner_pipe = owner_pipe
        self._owned = owner_pipe is not None

    @property
    def state(self) -> dict[str, Any]:
        state = self.record.state()
        if state is None:
            raise LabError(f"lab {self.record.name!r} has ended: {_reason(self.record)}")
        return state

    def end(self, *, keep_log: bool = False) -> None:
        """Take the lab down and wait until nothing of it is left. Safe to call twice."""
        if self._owner_pipe is not None:
            os.close(self._owner_pipe)
            self._owner_pipe = None
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(END_DEADLINE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self.record.reap()
        if self._owned and not keep_log:
            self.record.forget()


def down(record: LabRecord) -> None:
    """End the lab of this record, whoever started it, and remove what it leaves."""
    state = record.state()
    if state and record.alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(state["pid"], signal.SIGTERM)
    if not record.wait_dead(deadline=Deadline(END_DEADLINE_S)):
        pid = state["pid"] if state else "unknown"
        raise LabError(f"lab {record.name!r} does not end; its supervisor is process {pid}")
    if record.reap():
        record.forget()


def _reason(record: LabRecord) -> str:
    if not record.log_file.exists():
        return "it was taken down"
    lines = record.log_file.read_text(errors="replace").splitlines()
    told = [line.removeprefix(_ERROR_MARK) for line in lines if line.startswith(_ERROR_MARK)]
    return (told or lines or ["no message"])[-1] + f" (log: {record.log_file})"


def supervise(name: str, board: str, owner_fd: int | None) -> None:
    """Hold the lab of a board of QEMU until a signal comes or the owner has gone."""
    record = LabRecord.named(name)
    profile = load_board(board)
    cache = Cache()
    disk = cache.root / "labs" / name
    _hold(record, lambda: VirtualLab(record, profile, assets.prepare(cache), disk), disk, owner_fd)


def supervise_replay(name: str, log: Path, speed: float, owner_fd: int | None) -> None:
    """The same for the lab of a replay board."""
    _hold(LabRecord.named(name), lambda: ReplayLab(log, speed=speed), None, owner_fd)


def _hold(
    record: LabRecord,
    make: Callable[[], VirtualLab | ReplayLab],
    disk: Path | None,
    owner_fd: int | None,
) -> None:
    owner = os.getppid() if owner_fd is not None else None
    with _ending_signals() as signal_fd, record.hold(disk=disk, owner=owner):
        with make() as lab:
            record.publish({**lab.state(), "owner": owner})
            wanted = [signal_fd] + ([owner_fd] if owner_fd is not None else [])
            select.select(wanted, [], [])
    record.forget()


@contextlib.contextmanager
def _ending_signals() -> Iterator[int]:
    """A descriptor that becomes readable when the process is told to end.

    While it is entered, signals only do that: tear-down is never interrupted half-way.
    """
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender)
    handled = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    previous = {number: signal.signal(number, lambda *_: None) for number in handled}
    try:
        yield receiver
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        os.close(receiver)
        os.close(sender)


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    parser = argparse.ArgumentParser(prog="hil.virtual.supervisor")
    parser.add_argument("name")
    parser.add_argument("board")
    parser.add_argument("--owner-fd", type=int)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--speed", type=float, default=1.0)
    given = parser.parse_args()
    try:
        if given.log is not None:
            supervise_replay(given.name, given.log, given.speed, given.owner_fd)
        else:
            supervise(given.name, given.board, given.owner_fd)
    except HilError as error:
        print(_ERROR_MARK + str(error), flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
