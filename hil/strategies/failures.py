"""What drivers raise, turned into the framework's errors: one line with place and remedy."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import requests
import serial
from labgrid.driver.exception import ExecutionError
from labgrid.util import re_vt100
from pexpect import TIMEOUT

from hil.errors import HilError, LabError


@contextlib.contextmanager
def power_errors(power: Any) -> Iterator[None]:
    """A power switch that cannot be reached or refuses is a LabError."""
    try:
        yield
    except (requests.RequestException, ExecutionError, OSError) as error:
        port = getattr(power, "port", None)
        where = getattr(port, "host", None) or type(power).__name__
        raise LabError(
            f"power of {power.target.name} at {where}: {_root_cause(error)}; check the power "
            "port in the environment and its switch"
        ) from error


@contextlib.contextmanager
def serial_errors() -> Iterator[None]:
    """A serial port that cannot be opened or breaks is a LabError."""
    try:
        yield
    except serial.SerialException as error:
        raise LabError(
            f"{_short(error.__cause__ or error)}; check the serial port in the environment, and "
            "that nobody else holds it"
        ) from error


@contextlib.contextmanager
def console_errors(console: Any, kind: type[HilError], what: str, remedy: str) -> Iterator[None]:
    """A driver's time-out becomes an error with the last thing that the console said."""
    try:
        with serial_errors():
            yield
    except TIMEOUT as error:
        last = last_line(console._expect.before or b"")
        raise kind(f"{what}; the console's last line: {last!r}; {remedy}") from error


@contextlib.contextmanager
def ssh_errors(service: Any) -> Iterator[None]:
    """An ssh connection that does not come about is a LabError."""
    try:
        yield
    except BaseException as error:
        # labgrid raises a plain Exception when its own patience is over
        if type(error) is not Exception and not isinstance(error, ExecutionError):
            raise
        raise LabError(
            f"ssh to {service.username}@{service.address}:{service.port}: "
            f"{_short(error.__cause__ or error)}; check SSHDriver.keyfile, the key in the "
            "root filesystem and the network"
        ) from error


def last_line(data: bytes) -> str:
    """The last line of console output that says anything, without terminal codes."""
    lines = re_vt100.sub("", data.decode(errors="replace")).replace("\r", "\n").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def telling_line(output: list[str]) -> str:
    """The line of a command's output that says what went wrong."""
    for line in output:
        if re.search(r"error|fail|not found|exceeded|abort|no such", line, re.IGNORECASE):
            return line.strip()
    return output[-1].strip() if output else "no output"


def _root_cause(error: BaseException) -> str:
    """The system's own word below a library's layers; without one, what the library says."""
    inner: BaseException | None = error
    while inner is not None:
        if type(inner).__module__ == "builtins" and isinstance(inner, OSError) and inner.strerror:
            return inner.strerror
        inner = inner.__cause__ or inner.__context__
    return _short(error)


def _short(error: BaseException) -> str:
    text = getattr(error, "msg", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:300]
