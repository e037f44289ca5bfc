"""How the agent talks: one JSON object a line, and an exit status that says how it ended."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

GOOD, MEASURED_FAILURE, USAGE, UNSUPPORTED, ENVIRONMENT = range(5)


class Refused(Exception):
    """The kernel or the NIC said no. `stage` is what was tried, `reason` one sentence."""

    def __init__(self, stage: str, number: int, reason: str) -> None:
        super().__init__(reason)
        self.stage = stage
        self.number = number
        self.reason = reason
        self.unsupported = number in (errno.EOPNOTSUPP, errno.EAFNOSUPPORT, errno.ENOSYS)

    @property
    def exit_status(self) -> int:
        return UNSUPPORTED if self.unsupported else ENVIRONMENT

    def event(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "errno": name(self.number),
            "number": self.number,
            "reason": self.reason,
            "unsupported": self.unsupported,
        }


def name(number: int) -> str:
    """The symbol of an error number; of the two that share 95, the one that the kernel uses."""
    if number == errno.EOPNOTSUPP:
        return "EOPNOTSUPP"
    return errno.errorcode.get(number, str(number))


def emit(event: str, **values: Any) -> None:
    print(json.dumps({"event": event, **values}), flush=True)


def input_lines(stop: Stop) -> Iterator[str]:
    """Lines of standard input until its end, or until it is asked to stop.

    The end of input is also how a session notices that the one who started it has gone.
    """
    buffer = b""
    while not stop:
        if not select.select([0], [], [], 0.2)[0]:
            continue
        data = os.read(0, 65536)
        if not data:
            return
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            yield line.decode()


class Stop:
    """Becomes true on SIGTERM or SIGINT, so that every command ends in order."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: Optional[FrameType]) -> None:
        self.asked = True

    def __bool__(self) -> bool:
        return self.asked
