"""What a run leaves on disk: serial console, commands and kernel log, whole and for each test."""

from __future__ import annotations

import datetime
import logging
import re
from pathlib import Path
from typing import Any, BinaryIO

from labgrid.step import StepEvent, steps

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
        self._session: BinaryIO | None = None
        self._test: BinaryIO | None = None
        self._handler: logging.Handler | None = None
        self.test_directory = directory

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._session = (self.directory / "console.log").open("ab")
        steps.subscribe(self._on_step)
        _COMMANDS.setLevel(logging.INFO)

    def stop(self) -> None:
        self.end_test()
        if self._session is not None:
            steps.unsubscribe(self._on_step)
            self._session.close()
            self._session = None

    def begin_test(self, node_id: str) -> None:
        """Give a test a directory of its own (`test_directory`)."""
        self.end_test()
        directory = self.directory / "tests" / directory_name(node_id)
        directory.mkdir(parents=True, exist_ok=True)
        self.test_directory = directory
        self._test = (directory / "console.log").open("ab")
        self._handler = logging.FileHandler(directory / "commands.log", delay=True)
        line = "%(asctime)s.%(msecs)03d %(message)s"
        self._handler.setFormatter(logging.Formatter(line, "%H:%M:%S"))
        _COMMANDS.addHandler(self._handler)

    def end_test(self) -> None:
        if self._test is not None:
            self._test.close()
            self._test = None
        if self._handler is not None:
            _COMMANDS.removeHandler(self._handler)
            self._handler.close()
            self._handler = None

    def _on_step(self, event: StepEvent) -> None:
        if event.step.tag == "console":
            data = event.data.get("result")
            if event.step.title == "read" and isinstance(data, bytes):
                self._write(data)
        elif event.step.title in ("run", "run_check") and event.data.get("state") == "start":
            arguments: dict[str, Any] = event.data.get("args") or {}
            _COMMANDS.info("console$ %s", arguments.get("cmd", ""))

    def _write(self, data: bytes) -> None:
        for file in (self._session, self._test):
            if file is not None:
                file.write(data)
                file.flush()


def directory_name(node_id: str) -> str:
    """A file name that still tells which test it was."""
    name = node_id.removeprefix("testsuites/").replace(".py::", "-").replace("/", "-")
    return re.sub(r"[^A-Za-z0-9_.\[\]-]+", "_", name)[:150]


def run_name() -> str:
    """Name of a run's directory: its start in UTC, which also sorts."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
