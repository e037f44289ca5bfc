"""How the agent talks: one JSON object a line, and an exit status that says how it ended."""

from __future__ import annotations

import errno
import json
import signal
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
