"""The virtual lab of one test session: one that is up already and free, else one of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from typing import Any, TextIO

import requests

from hil.errors import LabError
from hil.virtual import assets, registry, replay, supervisor
from hil.virtual.cache import Cache
from hil.virtual.registry import LabRecord

POWER_TIMEOUT_S = 10.0


class SessionLab:
    """Nothing happens for a board that is real. enter() and leave() may each be called once."""

    def __init__(self, board: str, *, virtual: bool) -> None:
        self._board = board
        self._virtual = virtual
        self._lease: supervisor.Lease | None = None
        self._use: TextIO | None = None

    def enter(self, *, say: Callable[[str], None]) -> dict[str, Any]:
        """The lab's values for the environment; {} for a real board.

        A lab that `hil lab up` has brought up is used unless another session holds it. LabError
        for a replay that nobody has brought up.
        """
        if not self._virtual:
            return {}
        for dead in registry.reap_dead_labs():
            say(f"virtual lab {dead}: the remains of a killed run were removed")
        for record in registry.labs():
            state = record.state()
            if state and state["board"] == self._board and self._take(record):
                say(f"virtual lab {record.name}: in use by this session")
                return dict(state["environment"])
        if self._board == replay.BOARD:
            raise LabError("no free replay lab is up; `hil lab up --replay LOG` brings one up")
        assets.prepare(Cache())
        name = f"session-{os.getpid()}"
        self._lease = supervisor.up(name, self._board, owned=True)
        say(f"virtual lab {name}: up for this session")
        return dict(self._lease.state["environment"])

    def _take(self, record: LabRecord) -> bool:
        """Be the only session that uses this lab; an owned lab belongs to its owner alone."""
        state = record.state()
        if not record.alive or state is None or state["owner"] is not None:
            return False
        self._use = _lock_use(record)
        if self._use is None:
            return False
        self._use.write(f"{os.getpid()}\n")
        self._use.flush()
        return True

    def leave(self) -> None:
        """Give the lab back, or take it down when it was this session's own."""
        if self._lease is not None:
            self._lease.end()
            self._lease = None
        if self._use is not None:
            with contextlib.suppress(OSError):
                self._use.truncate(0)
                self._use.close()
            self._use = None


def recover(record: LabRecord) -> bool:
    """Switch the board off that a killed session left; False when no session was killed."""
    use = _lock_use(record)
    if use is None:
        return False
    with use:
        use.seek(0)
        killed = bool(use.read())
        if killed:
            state = record.state()
            assert state is not None
            requests.put(state["power"], data=b"0", timeout=POWER_TIMEOUT_S).raise_for_status()
            use.truncate(0)
    return killed


def _lock_use(record: LabRecord) -> TextIO | None:
    """The lab's use lock, which names its holder; None when a session holds it."""
    file = (record.directory / "use.lock").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file
