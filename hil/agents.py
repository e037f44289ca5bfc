"""The agent's host side: copies it to a machine once, runs its commands, reads its events.

The agent itself (hil/agent) is a single file that needs nothing but Python on the target. It talks
in JSON lines, each with an "event"; its exit status says what kind of end it was.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hil import agent
from hil.agent.events import ENVIRONMENT, GOOD, MEASURED_FAILURE, UNSUPPORTED
from hil.clock import Deadline
from hil.errors import HilError, LabError, TargetError, Unsupported
from hil.runners import Host, Result, Running

Event = dict[str, Any]

_START_DEADLINE_S = 60.0


class Agent:
    """Runs agent commands on one machine; `build_directory` is where the single file is made."""

    def __init__(self, host: Host, build_directory: Path) -> None:
        self.host = host
        self._build_directory = build_directory
        self._installed: str | None = None

    def forget(self) -> None:
        """Copy the file again at the next use, since the machine was started anew."""
        self._installed = None

    def _install(self) -> str:
        if self._installed is None:
            archive = agent.build(self._build_directory)
            target = f"/tmp/{archive.name}"
            self.host.put(archive, target)
            if self.host.run(["python3", target, "--help"]).status != 0:
                raise Unsupported(f"{self.host.name} has no python3, which the agent needs")
            self._installed = target
        return self._installed

    def start(self, *arguments: str | int) -> AgentRun:
        """Start an agent command and leave it running; use it as a context manager."""
        argv = ["python3", self._install(), *map(str, arguments)]
        return AgentRun(self.host.start(argv))

    def call(self, *arguments: str | int, timeout_s: float = 60.0) -> Event:
        """Run an agent command to its end; its last event.

        Raises what AgentRun.result() raises.
        """
        with self.start(*arguments) as run:
            return run.result(deadline=Deadline(timeout_s))


class AgentRun:
    """One agent command that is running."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.events: list[Event] = []

    def wait_for(self, event: str) -> Event:
        """The first event of this name; an agent that ends before it raises as result() does."""
        deadline = Deadline(_START_DEADLINE_S)
        while (line := self._running.line(deadline=deadline)) is not None:
            self._take(line)
            if self.events and self.events[-1]["event"] == event:
                return self.events[-1]
        self.result(deadline=deadline)
        raise LabError(f"agent ended without the event {event!r}")

    def first(self, event: str) -> Event:
        """An event that has come already."""
        return next(seen for seen in self.events if seen["event"] == event)

    def order(self, *words: str | int, until: str) -> Event:
        """Give a session an order and wait for the event `until`."""
        self._running.write(" ".join(map(str, words)))
        return self.wait_for(until)

    @property
    def alive(self) -> bool:
        """Whether the command still runs, as far as its output has told."""
        return self._running.alive

    def result(self, *, deadline: Deadline) -> Event:
        """The last event of a command that ended good or with a measured failure (status 0 or 1).

        Raises Unsupported with the kernel's answer, TargetError for what the kernel refused
        otherwise, LabError for an agent that broke.
        """
        ended = self._running.wait(deadline=deadline)
        for line in ended.stdout.splitlines():
            self._take(line)
        if ended.status in (GOOD, MEASURED_FAILURE) and self.events:
            return self.events[-1]
        raise self._error(ended)

    def _take(self, line: str) -> None:
        if line.startswith("{"):
            self.events.append(json.loads(line))

    def _error(self, ended: Result) -> HilError:
        last = self.events[-1] if self.events else {}
        reason = last.get("reason") or ended.stderr.strip().rpartition("\n")[2] or "no message"
        if ended.status == UNSUPPORTED:
            return Unsupported(reason)
        if ended.status == ENVIRONMENT:
            return TargetError(reason)
        return LabError(f"agent {' '.join(ended.argv[2:])}: exit status {ended.status}: {reason}")

    def stop(self) -> None:
        """End the command; it may have ended already."""
        self._running.stop()

    def __enter__(self) -> AgentRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
