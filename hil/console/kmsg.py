"""Follows the kernel's own log on the target, for what the serial console is too quiet to say.

labgrid's shell driver lowers the console's log level after login, so warnings during tests never
reach the wire. Records are as Documentation/ABI/testing/dev-kmsg has them:
`priority,sequence,microseconds,flags;text`, further lines of a record begin with a space.
"""

from __future__ import annotations

import contextlib
import re
import threading
import uuid
from collections.abc import Callable, Iterator

from hil.clock import Deadline
from hil.errors import HilError, LabError
from hil.runners import Host, Running

SYNC_DEADLINE_S = 2.0
# A record comes within this time or the reader looks whether it is still wanted.
_PATIENCE_S = 3600.0
_MARK = "hil-sync-"


_RECORD = re.compile(r"\d+,\d+,(\d{1,20})(?P<more>(?:,[^;]*)?);(?P<text>.*)", re.ASCII)
# thread or processor, of kernels that print it as well
_CALLER = re.compile(r",caller=([TC]\d+)", re.ASCII)
# a byte that is a backslash or no printable ASCII
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")


def lines_of(record: str) -> list[str]:
    """Lines of a record as the console shows them, `[   12.345678] text`; [] for other text."""
    match = _RECORD.fullmatch(record)
    if match is None:
        return []
    seconds, microseconds = divmod(int(match[1]), 1_000_000)
    prefix = f"[{seconds:5}.{microseconds:06}]"
    if caller := _CALLER.search(match["more"]):
        prefix += f"[{caller[1]:>6}]"
    text = _ESCAPED.sub(
        lambda escaped: bytes.fromhex(escaped[1].decode()), match["text"].encode(errors="replace")
    ).decode(errors="replace")
    return [f"{prefix} {line}" for line in text.replace("\r", "").split("\n")]


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
            # the end of the output may not come from a board that is dead
            self._running.interrupt(LabError("the kernel's log is not followed any more"))
            self._running = None
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def sync(self) -> bool:
        """Wait until all that the kernel has said is taken; False when it does not answer."""
        if self._thread is None or not self._thread.is_alive():
            return False
        marker = f"{_MARK}{uuid.uuid4().hex}"
        arrived = self._markers[marker] = threading.Event()
        try:
            told = self._host.run(
                ["sh", "-c", f"echo '<7>{marker}' > /dev/kmsg"], timeout_s=SYNC_DEADLINE_S
            )
            return told.status == 0 and arrived.wait(SYNC_DEADLINE_S)
        except HilError:
            return False
        finally:
            del self._markers[marker]

    def _follow(self, running: Running) -> None:
        for record in _lines(running):
            for line in lines_of(record):
                self._follow_line(line)

    def _follow_line(self, line: str) -> None:
        text = line.rpartition("] ")[2]
        if (event := self._markers.get(text)) is not None:
            self._settle()
            event.set()
        elif not text.startswith(_MARK):
            self._take(line)


def _lines(running: Running) -> Iterator[str]:
    while True:
        try:
            line = running.line(deadline=Deadline(_PATIENCE_S))
        except HilError:
            return
        if line is None:
            return
        yield line
