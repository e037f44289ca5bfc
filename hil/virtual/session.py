"""The virtual lab of one test session: one that is up already and free, else one of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from typing import Any, TextIO

from hil.boards.model import BoardProfile
from hil.virtual import assets, registry, supervisor
from hil.virtual.cache import Cache
from hil.virtual.registry import LabRecord


class SessionLab:
    """Nothing happens for a board that is real. enter() and leave() may each be called once."""

    def __init__(self, profile: BoardProfile) -> None:
        self._profile = profile
        self._lease: supervisor.Lease | None = None
        self._use: TextIO | None = None

    def enter(self, *, say: Callable[[str], None]) -> dict[str, Any]:
        """The lab's values for the environment; {} for a real board.

        A lab that `hil lab up` has brought up is used unless another session holds it.
        """
        if self._profile.virtual is None:
            return {}
        for dead in registry.reap_dead_labs():
            say(f"virtual lab {dead}: the remains of a killed run were removed")
        for record in registry.labs():
            state = record.state()
            if state and state["board"] == self._profile.name and self._take(record):
                say(f"virtual lab {record.name}: in use by this session")
                return dict(state["environment"])
        assets.prepare(Cache())
        name = f"pytest-{os.getpid()}"
        self._lease = supervisor.up(name, self._profile.name, owned=True)
        say(f"virtual lab {name}: up for this session")
        return dict(self._lease.state["environment"])

    def _take(self, record: LabRecord) -> bool:
        """Be the only session that uses this lab; an owned lab belongs to its owner alone."""
        state = record.state()
        if not record.alive or state is None or state["owner"] is not None:
            return False
        file = (record.directory / "use.lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._use = file
        return True

    def leave(self) -> None:
        """Give the lab back, or take it down when it was this session's own."""
        if self._lease is not None:
            self._lease.end()
            self._lease = None
        if self._use is not None:
            with contextlib.suppress(OSError):
                self._use.close()
            self._use = None
