"""The labgrid driver that reads the console all session long and says at once what broke.

It is the only reader of the serial port: a thread takes bytes as they come and gives them to the
log, to the classifier, and to a buffer from which U-Boot and shell drivers read. A fatal finding or
a phase that takes too long ends their waiting with a BootFailure.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attr
import attrs
import serial
from labgrid.driver import Driver
from labgrid.driver.consoleexpectmixin import ConsoleExpectMixin
from labgrid.factory import target_factory
from labgrid.protocol import ConsoleProtocol
from pexpect import TIMEOUT

from hil.console import failure, judge
from hil.console.classify import Classifier
from hil.console.log import MergedLog, StampedLog
from hil.console.model import Finding, Phase, Verdict
from hil.console.phases import Expired, Limits, PhaseWatch
from hil.errors import HilError, LabError

# The console is quiet when nothing came for so long: what a report says so far is then told.
QUIET_S = 0.2
_TICK_S = 0.05
# Enough for whoever looks for a prompt; the log has all.
_BUFFER_BYTES = 1 << 20
# A line of the kernel's log waits for the wire, which is slower, while the wire talks; no longer
# than this.
_HELD_S = 1.0

Listener = Callable[[Finding], None]


@attrs.frozen
class _Port:
    """What the reading thread needs of the serial driver."""

    driver: Any

    def read(self) -> bytes:
        try:
            data: bytes = self.driver._read(timeout=_TICK_S)
        except TIMEOUT:
            return b""
        return data

    def reopen(self) -> bool:
        with contextlib.suppress(serial.SerialException, OSError):
            self.driver.close()
        try:
            self.driver.open()
        except (serial.SerialException, OSError):
            return False
        return True


@target_factory.reg_driver
@attr.s(eq=False)
class ConsoleMonitor(ConsoleExpectMixin, Driver, ConsoleProtocol):
    """Console of a target for U-Boot and shell drivers, with a classifier that never sleeps.

    Args:
        reconnect_s (float): how long a serial port that is lost may stay away
        spl_banners (int): how often the board prints the banner of its SPL in one boot
    """

    bindings = {"serial": "SerialDriver"}  # noqa: RUF012 - labgrid's own form
    # others that want a console get this one, not the serial driver below it
    priorities = {ConsoleProtocol: 10}  # noqa: RUF012

    reconnect_s: float = attr.ib(default=10.0, converter=float)
    spl_banners: int = attr.ib(default=2, validator=attr.validators.instance_of(int))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        # a pause for slow ptys, of no use here
        self._expect.delayafterread = None
        self._changed = threading.Condition()
        self._buffer = bytearray()
        self._classifier = Classifier(self.spl_banners, attended=True)
        self._kernel_log = Classifier(self.spl_banners, attended=True)
        self._watch = PhaseWatch({})
        self._failure: HilError | None = None
        self._seen_to = False
        self._reset_expected = False
        self._listeners: list[Listener] = []
        self._logs: list[StampedLog] = []
        self._told_of_wire: set[str] = set()
        self._told_of_kernel: set[str] = set()
        self._log = MergedLog()
        # for each line of the kernel's log its number in the merged log, and those that wait
        self._kernel_at: list[int] = []
        self._held: deque[tuple[float, str]] = deque()
        self._phases_told = 0
        self._heard_s = 0.0
        self._quiet_told = True
        self._boots = 0
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    @property
    def txdelay(self) -> float:
        """labgrid's pause between typed characters, as the serial driver has it."""
        return float(self.serial.txdelay)

    @property
    def txchunk(self) -> int:
        """labgrid's number of characters between two pauses."""
        return int(self.serial.txchunk)

    def on_activate(self) -> None:
        self._stop.clear()
        self._heard_s = time.monotonic()
        name = f"console of {self.target.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def on_deactivate(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    # What strategies say

    def start_boot(self, limits: Mapping[Phase, Limits]) -> None:
        """Power comes on now: forget the last boot and watch this one's phases."""
        with self._changed:
            lines, kernel_lines = self._classifier.lines, self._kernel_log.lines
            self._classifier = Classifier(self.spl_banners, first_line=lines, attended=True)
            self._kernel_log = Classifier(self.spl_banners, first_line=kernel_lines, attended=True)
            self._watch = PhaseWatch(limits)
            self._watch.start(time.monotonic())
            self._failure, self._seen_to, self._reset_expected = None, False, False
            self._buffer.clear()
            self._told_of_wire.clear()
            self._told_of_kernel.clear()
            self._log.start_boot()
            self._held.clear()
            self._phases_told = 0
            self._boots += 1
        # pexpect looks again at what it has read without finding anything
        self._expect.buffer = b""
        self._expect._before = self._expect.buffer_type()

    def end_boot(self) -> PhaseWatch:
        """The board is up or given up: phases expire no longer. Gives the times of its phases."""
        with self._changed:
            self._watch.stop()
            return self._watch

    def power_off(self) -> None:
        """What failed has been seen to: the board is off."""
        with self._changed:
            self._watch.stop()
            # what the classifier has found stays found, and would fail the next user
            self._failure, self._seen_to = None, True

    def enter(self, phase: Phase) -> None:
        """A phase that the console does not show (ssh) begins."""
        with self._changed:
            self._classifier.enter(phase)
            self._watch.enter(phase, time.monotonic())

    @contextlib.contextmanager
    def expect_reset(self) -> Iterator[None]:
        """While a test restarts the board on purpose: its banner is no reset loop.

        From that banner on nothing counts, until start_boot(): the board boots as it likes.
        """
        with self._changed:
            self._reset_expected = True
            self._classifier.expect_restart()
        try:
            yield
        finally:
            with self._changed:
                self._failure = None

    # What others ask

    def subscribe(self, listener: Listener) -> None:
        """Call `listener`, from the reading thread, with each finding as it is made."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: Listener) -> None:
        self._listeners.remove(listener)

    def set_logs(self, *logs: StampedLog) -> None:
        """Write what the console says to these from now on."""
        with self._changed:
            self._log.set_logs(*logs)

    @property
    def failure(self) -> HilError | None:
        """Why the board does not go on; None while it may."""
        return self._failure

    @property
    def phase(self) -> Phase:
        """How far the boot is."""
        with self._changed:
            return self._classifier.phase

    @property
    def boots(self) -> int:
        """How often a boot was started."""
        return self._boots

    def check(self) -> None:
        """Raise the failure, if there is one."""
        if self._failure is not None:
            raise self._failure

    def verdict(self) -> Verdict:
        """What the console of this boot says so far, and the kernel's log where it says more."""
        with self._changed:
            wire = _in_log(self._classifier.verdict(), self._log.of_wire)
            log = _in_log(self._kernel_log.verdict(), self._of_kernel)
        if wire.verdict == "good" and log.verdict == "bad":
            return attrs.evolve(log, findings=(*wire.findings, *log.findings))
        return wire

    def await_phase(self, phase: Phase, *, timeout_s: float) -> None:
        """Wait until the boot has come so far. The failure when it fails, TIMEOUT when it is late.

        Nothing is taken away from those who expect something.
        """
        self._await(lambda: self._classifier.phase.rank >= phase.rank, timeout_s, phase.value)

    def await_quiet(self, quiet_s: float) -> None:
        """Wait until the console has said nothing for so long. The failure when one comes."""
        self._await(lambda: time.monotonic() - self._heard_s >= quiet_s, math.inf, "silence")

    def _await(self, come: Callable[[], bool], timeout_s: float, what: str) -> None:
        due_s = time.monotonic() + timeout_s
        with self._changed:
            while not come():
                self.check()
                if time.monotonic() >= due_s:
                    raise TIMEOUT(f"no {what} within {timeout_s:g} s")
                self._changed.wait(QUIET_S)
            self.check()

    def take_kernel_line(self, line: str) -> None:
        """A line of the kernel's log, `[   12.345678] text`; what the wire brought is not logged.

        The classifier gets all: a quiet console shows only parts of reports.
        """
        with self._changed:
            self._held.append((time.monotonic(), line))

    def settle_kernel_log(self) -> None:
        """No more of the kernel's log comes for now: a report that is open is told as it is."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held, _HELD_S + QUIET_S)
            found = self._release(math.inf)
            found += self._new_in_kernel_log(self._kernel_log.quiet())
        self._tell(found)

    def _release(self, now_s: float) -> list[Finding]:
        """Look at the lines of the kernel's log that need not wait for the wire; locks held."""
        found: list[Finding] = []
        while self._held:
            came_s, line = self._held[0]
            quiet = now_s - self._heard_s >= QUIET_S
            if not (quiet or now_s - came_s >= _HELD_S or self._log.has(line)):
                break
            self._held.popleft()
            self._kernel_at.append(self._log.write_kernel(line, time.monotonic()))
            found += self._kernel_log.feed(line.encode(errors="replace") + b"\n")
        return self._new_in_kernel_log(found)

    def _new_in_kernel_log(self, found: list[Finding]) -> list[Finding]:
        """Those that the wire has not told, placed; a fatal one is a failure. Locks held."""
        new = _untold(found, self._told_of_kernel, elsewhere=self._told_of_wire)
        if not self._may_fail:
            return []
        if self._kernel_log.fatal:
            verdict = _in_log(self._kernel_log.verdict(), self._of_kernel)
            self._fail(failure.of_verdict(verdict))
        return [_placed(one, self._of_kernel) for one in new]

    def _of_kernel(self, number: int) -> int:
        return self._kernel_at[number - 1]

    # labgrid's console

    def _read(self, size: int = 1, timeout: float = 0.0, max_size: int | None = None) -> bytes:
        due_s = time.monotonic() + max(timeout, 0.0)
        with self._changed:
            while not self._buffer:
                if self._failure is not None:
                    raise self._failure
                left_s = due_s - time.monotonic()
                if left_s <= 0:
                    raise TIMEOUT(f"Timeout of {timeout:.2f} seconds exceeded")
                self._changed.wait(left_s)
            count = max_size or len(self._buffer)
            data = bytes(self._buffer[:count])
            del self._buffer[:count]
        return data

    def _write(self, data: bytes) -> int:
        try:
            return int(self.serial._write(data) or 0)
        except (serial.SerialException, OSError) as error:
            raise LabError(f"serial port of {self.target.name}: cannot write: {error}") from error

    # The reading thread

    def _run(self) -> None:
        port = _Port(self.serial)
        is_open, lost_s = True, None
        while not self._stop.is_set():
            try:
                self._take(port.read() if is_open else b"")
                if is_open:
                    # only now: a server that turns its client away lets it in first
                    lost_s = None
                    continue
            except (serial.SerialException, OSError) as error:
                lost_s = lost_s or time.monotonic()
                why = str(error)
            is_open = port.reopen()
            if lost_s is not None and time.monotonic() - lost_s > self.reconnect_s:
                self._fail(
                    LabError(
                        f"serial port of {self.target.name} is lost for {self.reconnect_s:g} s: "
                        f"{why}; check its cable or server"
                    )
                )
            self._stop.wait(_TICK_S)

    def _take(self, data: bytes) -> None:
        now_s = time.monotonic()
        found: list[Finding] = []
        with self._changed:
            if data:
                self._heard_s, self._quiet_told = now_s, False
                self._watch.activity(now_s)
                self._remember(data)
                found = self._classifier.feed(data)
            elif not self._quiet_told and now_s - self._heard_s >= QUIET_S:
                self._quiet_told = True
                found = self._classifier.quiet()
            self._follow_phases(now_s)
            self._seen_to |= self._reset_expected and self._classifier.restarts > 0
            found = self._new_on_wire(found)
            expired = self._watch.expired(now_s)
            if self._may_fail and (self._classifier.fatal or expired):
                self._fail(failure.of_verdict(self._verdict_now(expired)))
            found += self._release(now_s)
            self._changed.notify_all()
        self._tell(found)

    def _new_on_wire(self, found: list[Finding]) -> list[Finding]:
        """Those that the kernel's log has not told, placed; locks held."""
        new = _untold(found, self._told_of_wire, elsewhere=self._told_of_kernel)
        if not self._may_fail:
            # what comes after a failure only follows from it
            return []
        return [_placed(one, self._log.of_wire) for one in new]

    def _remember(self, data: bytes) -> None:
        if self._failure is None:
            # else a board that resets for ever would keep an expect from its end
            self._buffer += data
            del self._buffer[:-_BUFFER_BYTES]
        self._log.write(data, self._heard_s)

    def _follow_phases(self, now_s: float) -> None:
        transitions = self._classifier.transitions
        for phase, _ in transitions[self._phases_told :]:
            self._watch.enter(phase, now_s)
        self._phases_told = len(transitions)

    def _verdict_now(self, expired: Expired | None) -> Verdict:
        verdict = _in_log(self._classifier.verdict(), self._log.of_wire)
        if expired is None or any(f.severity == "fatal" for f in verdict.findings):
            return verdict
        return judge.expired(verdict, expired)

    @property
    def _may_fail(self) -> bool:
        return self._failure is None and not self._seen_to

    def _fail(self, error: HilError) -> None:
        with self._changed:
            self._failure = self._failure or error
            self._watch.stop()
            self._changed.notify_all()

    def _tell(self, found: list[Finding]) -> None:
        for finding in found:
            for listener in list(self._listeners):
                listener(finding)


def _untold(found: list[Finding], told: set[str], *, elsewhere: set[str]) -> list[Finding]:
    """Findings that were not told elsewhere; adds their lines to `told`.

    A quiet console starts a report later than the kernel's log: one line in common is enough.
    """
    new = [one for one in found if elsewhere.isdisjoint(one.lines)]
    told.update(line for one in new for line in one.lines)
    return new


def _placed(finding: Finding, place: Callable[[int], int]) -> Finding:
    """With the number of its line in the merged log."""
    number = finding.line_number
    return attrs.evolve(finding, line_number=place(number)) if number else finding


def _in_log(verdict: Verdict, place: Callable[[int], int]) -> Verdict:
    findings = tuple(_placed(finding, place) for finding in verdict.findings)
    return attrs.evolve(verdict, findings=findings)
