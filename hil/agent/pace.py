"""When to go on: sending at a set rate, and receiving until all is there or time is over."""

from __future__ import annotations

import time
from collections.abc import Iterator

from .events import Stop
from .frames import Tally

# A second copy of the last frame can only come after it.
_LINGER_S = 0.05


def reception(tally: Tally, timeout_s: float, stop: Stop) -> Iterator[None]:
    """Goes round until the time is over, it is asked to stop, or just after all frames came."""
    end = time.monotonic() + timeout_s
    complete = False
    while not stop and time.monotonic() < end:
        if tally.complete and not complete:
            complete, end = True, min(end, time.monotonic() + _LINGER_S)
        yield


class Pace:
    """Allows `rate_pps` frames a second, at most 10 ms of them at once; 0 sets no limit."""

    def __init__(self, rate_pps: float) -> None:
        self._rate_pps = rate_pps
        self._burst = max(1, int(rate_pps / 100))
        self._start = time.monotonic()
        self._sent = 0

    def allowed(self, wanted: int) -> int:
        """How many of `wanted` frames may go now; waits until it is at least one."""
        if not self._rate_pps:
            return wanted
        while True:
            due = int((time.monotonic() - self._start) * self._rate_pps) + 1 - self._sent
            if due > 0:
                count = min(wanted, due, self._burst)
                self._sent += count
                return count
            time.sleep(min(0.01, 1 / self._rate_pps))
