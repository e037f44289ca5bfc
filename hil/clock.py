"""The framework's only clock: monotonic time, waiting, and deadlines that are passed down."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

monotonic = time.monotonic


class Deadline:
    """A moment that several steps share, so that their waits do not add up.

    `seconds` counts from now; `remaining_s` never goes below zero.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = monotonic() + seconds

    @property
    def remaining_s(self) -> float:
        return max(0.0, self._end - monotonic())

    @property
    def expired(self) -> bool:
        return monotonic() >= self._end


def wait_until(
    condition: Callable[[], T | None], *, deadline: Deadline, poll_s: float = 0.05
) -> T | None:
    """Poll until `condition` gives something true, and return that; None when the time is over."""
    while True:
        value = condition()
        if value:
            return value
        if deadline.expired:
            return None
        time.sleep(min(poll_s, deadline.remaining_s))
