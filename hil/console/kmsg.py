"""Follows the kernel's own log on the target, for what the serial console is too quiet to say.

labgrid's shell driver lowers the console's log level after login, so warnings during tests never
reach the wire. Records are as Documentation/ABI/testing/dev-kmsg has them:
`priority,sequence,microseconds,flags;text`, further lines of a record begin with a space.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator

from hil.clock import Deadline
from hil.errors import HilError, LabError
from hil.runners import Host, Running

SYNC_DEADLINE_S = 2.0
# A record comes within this time or the reader looks whether it is still wanted.
_PATIENCE_S = 3600.0


def line_of(record: str) -> tuple[int, str] | None:
    """Sequence number and console form, `[   12.345678] text`, of a record; None for others."""
    head, separator, text = record.partition(";")
    fields = head.split(",")
    if not separator or len(fields) < 3 or not all(field.isdigit() for field in fields[:3]):
        return None
    microseconds = int(fields[2])
    return int(fields[1]), f"[{microseconds // 1_000_000:5}.{microseconds % 1_000_000:06}] {text}"


class KernelLogFollower:
    """Gives each record to `take` from a thread of its own, from start() to stop().

    `settle` is called when a marker that sync() wrote has come back: all before it is there.
    """

    def __init__(self, host: Host, take: Callable[[str], None], settle: Callable[[], None]) -> None:
        self._host = host
        self._take = take
        self._settle = settle
        self._running: Running | None = None
        self._thread: threading.Thread | None = None
        self._markers: dict[str, threading.Event] = {}

    def start(self) -> None:
        """Begin with the oldest record that the kernel still has. LabError when ssh fails."""
        self.stop()
        self._running = self._host.start(["cat", "/dev/kmsg"])
        self._thread = threading.Thread(target=self._follow, args=(self._running,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the follower; the board may be gone already."""
        if self._running is not None:
            with contextlib.suppress(HilError):
                self._running.stop()
            self._running = None
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def sync(self) -> bool:
        """Wait until all that the kernel has said is taken; False when it does not answer."""
        if self._running is None or not self._running.alive:
            return False
        marker = f"hil-sync-{uuid.uuid4().hex}"
        arrived = self._markers[marker] = threading.Event()
        try:
            told = self._host.run(
                ["sh", "-c", f"echo '<7>{marker}' > /dev/kmsg"], timeout_s=SYNC_DEADLINE_S
            )
            return told.status == 0 and arrived.wait(SYNC_DEADLINE_S)
        except LabError:
            return False
        finally:
            del self._markers[marker]

    def _follow(self, running: Running) -> None:
        for record in _lines(running):
            parsed = line_of(record)
            if parsed is None:
                continue
            _, line = parsed
            if (event := self._marker_in(line)) is not None:
                self._settle()
                event.set()
            elif "hil-sync-" not in line:
                self._take(line)

    def _marker_in(self, line: str) -> threading.Event | None:
        return self._markers.get(line.rpartition("] ")[2])


def _lines(running: Running) -> Iterator[str]:
    while True:
        try:
            line = running.line(deadline=Deadline(_PATIENCE_S))
        except HilError:
            return
        if line is None:
            return
        yield line
