"""What a run leaves on disk: serial console, commands and kernel log, whole and for each test."""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from labgrid.step import StepEvent, steps

from hil.console.log import StampedLog

_COMMANDS = logging.getLogger("hil.commands")


class Recorder:
    """Follows labgrid's steps from start() to stop() and writes below `directory`.

    console.log                  all that the board said
    tests/TEST/console.log       what it said while the test ran
    tests/TEST/commands.log      commands on board and link partner, with times
    tests/TEST/kernel.log        kernel messages of the test, when the board could be asked
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._session: TextIO | None = None
        self._test: TextIO | None = None
        self._session_log: StampedLog | None = None
        self._set_logs: Callable[..., None] | None = None
        self._handler: logging.Handler | None = None
        self.test_directory = directory

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._session = _open(self.directory / "console.log")
        self._session_log = StampedLog(self._session)
        steps.subscribe(self._on_step)
        _COMMANDS.setLevel(logging.INFO)

    def stop(self) -> None:
        self.end_test()
        if self._session is not None:
            steps.unsubscribe(self._on_step)
            if self._set_logs is not None:
                self._set_logs()
            self._session.close()
            self._session = self._session_log = None

    def begin_test(self, node_id: str) -> None:
        """Give a test a directory of its own (`test_directory`)."""
        self.end_test()
        directory = self.directory / "tests" / directory_name(node_id)
        directory.mkdir(parents=True, exist_ok=True)
        self.test_directory = directory
        self._test = _open(directory / "console.log")
        self._share_logs()
        self._handler = logging.FileHandler(directory / "commands.log", delay=True)
        line = "%(asctime)s.%(msecs)03d %(message)s"
        self._handler.setFormatter(logging.Formatter(line, "%H:%M:%S"))
        _COMMANDS.addHandler(self._handler)

    def end_test(self) -> None:
        if self._test is not None:
            test, self._test = self._test, None
            self._share_logs()
            test.close()
        if self._handler is not None:
            _COMMANDS.removeHandler(self._handler)
            self._handler.close()
            self._handler = None

    def _on_step(self, event: StepEvent) -> None:
        if event.step.title in ("run", "run_check") and event.data.get("state") == "start":
            arguments: dict[str, Any] = event.data.get("args") or {}
            _COMMANDS.info("console$ %s", arguments.get("cmd", ""))

    def follow(self, set_logs: Callable[..., None]) -> None:
        """Have a console write here; `set_logs` takes the logs of session and test."""
        self._set_logs = set_logs
        self._share_logs()

    def _share_logs(self) -> None:
        if self._set_logs is not None and self._session_log is not None:
            test = [StampedLog(self._test)] if self._test is not None else []
            self._set_logs(self._session_log, *test)


def _open(path: Path) -> TextIO:
    return path.open("a", encoding="utf-8", errors="surrogateescape", newline="\n")


def directory_name(node_id: str) -> str:
    """A file name that still tells which test it was."""
    name = node_id.removeprefix("testsuites/").replace(".py::", "-").replace("/", "-")
    return re.sub(r"[^A-Za-z0-9_.\[\]-]+", "_", name)[:150]


def run_name() -> str:
    """Name of a run's directory: its start in UTC, which also sorts."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
