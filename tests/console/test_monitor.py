"""The console's monitor on a serial port that the tests hold in their hands."""

from __future__ import annotations

import io
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import attr
import attrs
import pytest
import serial
from labgrid import Target
from labgrid.driver import SerialDriver
from pexpect import TIMEOUT

from hil.clock import Deadline, wait_until
from hil.console import log as log_module
from hil.console import monitor as module
from hil.console.failure import BootFailure, LabBootFailure
from hil.console.log import StampedLog
from hil.console.model import Finding, Phase
from hil.console.monitor import ConsoleMonitor
from hil.console.phases import Limits
from hil.errors import LabError, TargetError
from tests.console.reports import ARM64_NULL, REFCOUNT, SYSRQ_PANIC, WARN_7, X86_NULL

# What has come to pass by then never will; a test that passes does not wait for it.
PATIENCE_S = 10
LONG_S = 60


@attr.s(eq=False)
class FakeSerial(SerialDriver):
    """Says what the test feeds, raises what it feeds, and keeps what is written."""

    bindings = {}  # noqa: RUF012 - labgrid's own form

    def __attrs_post_init__(self) -> None:
        super(SerialDriver, self).__attrs_post_init__()
        self.fed: queue.Queue[bytes | Exception] = queue.Queue()
        self.written = b""
        self.cannot_write: Exception | None = None
        self.cannot_open: Exception | None = None
        self.breaks = False
        self.opened = 0

    def on_activate(self) -> None:
        pass

    def on_deactivate(self) -> None:
        pass

    def _read(self, size: int = 1, timeout: float = 0.0, max_size: int | None = None) -> bytes:
        if self.breaks:
            raise serial.SerialException("socket disconnected")
        try:
            item = self.fed.get(timeout=timeout)
        except queue.Empty:
            raise TIMEOUT("nothing") from None
        if isinstance(item, Exception):
            raise item
        return item

    def _write(self, data: bytes) -> int:
        if self.cannot_write is not None:
            raise self.cannot_write
        self.written += data
        return len(data)

    def open(self) -> None:
        if self.cannot_open is not None:
            raise self.cannot_open
        self.opened += 1

    def close(self) -> None:
        pass


@attrs.define
class Console:
    """The monitor under test with its serial port, what it told, and what it logged."""

    monitor: ConsoleMonitor
    port: FakeSerial
    told: list[Finding]
    log: io.StringIO

    def feed(self, text: str | bytes) -> None:
        self.port.fed.put(text.encode() if isinstance(text, str) else text)

    def hear(self, text: str) -> None:
        """Feed lines and wait until the monitor has logged the last of them."""
        self.feed(text)
        last = text.splitlines()[-1]
        self.soon(lambda: last in self.log.getvalue())

    def take_kernel_lines(self, text: str) -> None:
        for line in text.splitlines():
            self.monitor.take_kernel_line(line)
        self.monitor.settle_kernel_log()

    def soon(self, condition: Callable[[], object]) -> None:
        assert wait_until(condition, deadline=Deadline(PATIENCE_S), poll_s=0.005)

    def logged(self) -> list[str]:
        """Lines of the log without their stamps."""
        return [line.split(" ", 2)[2] for line in self.log.getvalue().splitlines()]


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    monkeypatch.setattr(module, "_TICK_S", 0.005)
    monkeypatch.setattr(module, "QUIET_S", 0.05)
    target = Target("main")
    port = FakeSerial(target, "serial")
    monitor = ConsoleMonitor(target, "console", reconnect_s=0.1)
    told: list[Finding] = []
    monitor.subscribe(told.append)
    log = io.StringIO()
    monitor.set_logs(StampedLog(log))
    target.activate(monitor)
    yield Console(monitor, port, told, log)
    if monitor.state is not monitor.state.bound:
        target.deactivate(monitor)
    assert not [one for one in threading.enumerate() if one.name == "console of main"]


@pytest.fixture
def worker() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def waiting(console: Console, worker: ThreadPoolExecutor) -> Future[Any]:
    """An expect for something that never comes, which has begun to wait."""
    future = worker.submit(console.monitor.expect, "never comes", timeout=LONG_S)
    console.feed("here is the expect\n")
    # it has taken what came so far
    console.soon(lambda: b"here is" in console.monitor._expect.buffer)
    return future


def error_of(future: Future[Any]) -> BaseException:
    """What ended it, long before its own time-out."""
    error = future.exception(PATIENCE_S)
    assert error is not None
    return error


# A console for U-Boot and shell drivers


def test_bytes_reach_an_expect(console: Console) -> None:
    console.feed("U-Boot 2025.01\n")
    console.feed("=")
    console.feed("> ")
    index, before, match, after = console.monitor.expect(["login: ", "=> "], timeout=PATIENCE_S)
    assert (index, before, match.group(), after) == (1, b"U-Boot 2025.01\n", b"=> ", b"=> ")


def test_text_between_expects_is_not_lost(console: Console) -> None:
    console.feed("first second ")
    assert console.monitor.expect("first", timeout=PATIENCE_S)[0] == 0
    console.hear("third fourth\n")
    assert console.monitor.expect("second", timeout=PATIENCE_S)[1] == b" "
    assert console.monitor.expect("fourth", timeout=PATIENCE_S)[1] == b" third "


def test_an_expect_of_what_does_not_come_times_out(console: Console) -> None:
    with pytest.raises(TIMEOUT):
        console.monitor.expect("never comes", timeout=0.02)


def test_what_is_typed_reaches_the_port(console: Console) -> None:
    console.monitor.sendline("dhcp")
    assert console.port.written == b"dhcp\n"


@pytest.mark.parametrize("error", [serial.SerialException("gone"), BrokenPipeError("gone")])
def test_what_cannot_be_typed_is_a_lab_error(console: Console, error: Exception) -> None:
    console.port.cannot_write = error
    with pytest.raises(LabError, match="serial port of main: cannot write: gone"):
        console.monitor.sendline("dhcp")


def test_only_the_end_of_unread_output_is_kept(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BUFFER_BYTES", 100)
    for number in range(100):
        console.feed(f"line {number}\n")
    console.hear("end\n")
    kept = console.monitor.read(timeout=0)
    assert len(kept) == 100
    assert kept.endswith(b"line 99\nend\n")


def test_a_line_without_end_is_not_kept_whole(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "_PARTIAL_BYTES", 100)
    console.feed("x" * 1000)
    console.feed("y" * 100)
    console.soon(lambda: "y" in console.log.getvalue())
    assert console.monitor._log._partial == b"y" * 100


def test_deactivation_ends_the_thread(console: Console) -> None:
    [thread] = [one for one in threading.enumerate() if one.name == "console of main"]
    console.monitor.target.deactivate(console.monitor)
    assert not thread.is_alive()
    console.monitor.target.activate(console.monitor)
    console.feed("again")
    console.monitor.expect("again", timeout=PATIENCE_S)


# Failures end an expect


def test_a_panic_ends_an_expect_at_once(console: Console, worker: ThreadPoolExecutor) -> None:
    future = waiting(console, worker)
    console.feed(SYSRQ_PANIC)
    error = error_of(future)
    assert isinstance(error, BootFailure) and isinstance(error, TargetError)
    verdict = error.verdict
    assert (verdict.verdict, verdict.category) == ("bad", "panic")
    assert verdict.function == "sysrq_handle_crash"
    [finding] = console.told
    assert verdict.fingerprint == finding.fingerprint
    assert str(error).endswith(f"[{finding.fingerprint}]")
    assert console.monitor.failure is error
    with pytest.raises(BootFailure):
        console.monitor.check()


def test_a_report_that_stops_in_the_middle_ends_an_expect(
    console: Console, worker: ThreadPoolExecutor
) -> None:
    """A board that dies while it tells of it."""
    future = waiting(console, worker)
    begun = SYSRQ_PANIC.splitlines(keepends=True)[:9]
    console.feed("".join(begun))
    error = error_of(future)
    assert isinstance(error, BootFailure)
    assert error.verdict.category == "panic"


def test_a_failure_of_the_boot_loader_is_no_vote(
    console: Console, worker: ThreadPoolExecutor
) -> None:
    future = waiting(console, worker)
    console.feed("U-Boot 2025.01 (Jan 06 2025)\nARP Retry count exceeded; starting again\n")
    error = error_of(future)
    assert isinstance(error, LabBootFailure) and isinstance(error, LabError)
    assert (error.verdict.verdict, error.verdict.category) == ("no_vote", "arp_timeout")


def test_what_came_before_the_failure_can_still_be_read(console: Console) -> None:
    console.hear("login: \n" + SYSRQ_PANIC)
    console.soon(lambda: console.monitor.failure)
    assert console.monitor.expect("login: ", timeout=PATIENCE_S)[0] == 0
    console.feed("more\n")
    console.soon(lambda: "more" in console.log.getvalue())
    # a board that resets for ever would else keep an expect from its end
    with pytest.raises(BootFailure):
        console.monitor.expect("more", timeout=LONG_S)


def test_an_error_that_is_not_fatal_ends_nothing(console: Console) -> None:
    console.hear(WARN_7)
    console.soon(lambda: console.told)
    assert console.monitor.failure is None
    console.feed("login: ")
    console.monitor.expect("login: ", timeout=PATIENCE_S)


def test_after_a_failure_nothing_more_is_told(console: Console) -> None:
    console.hear(SYSRQ_PANIC)
    console.soon(lambda: console.monitor.failure)
    console.hear(X86_NULL)
    console.hear("all of it has been looked at\n")
    console.take_kernel_lines(X86_NULL)
    assert [one.category for one in console.told] == ["panic"]


# Findings are told once


def test_who_unsubscribes_is_told_nothing(console: Console) -> None:
    console.monitor.unsubscribe(console.told.append)
    console.hear(SYSRQ_PANIC)
    console.soon(lambda: console.monitor.failure)
    console.hear("all of it has been looked at\n")
    assert not console.told


@pytest.mark.parametrize("report", [WARN_7, REFCOUNT, ARM64_NULL, SYSRQ_PANIC])
def test_a_report_that_comes_both_ways_is_told_once(console: Console, report: str) -> None:
    console.hear(report)
    console.soon(lambda: console.told)
    console.take_kernel_lines(report)
    assert len(console.told) == 1


@pytest.mark.parametrize("report", [WARN_7, REFCOUNT, ARM64_NULL, SYSRQ_PANIC])
def test_nor_twice_when_ssh_is_faster_than_the_wire(console: Console, report: str) -> None:
    console.take_kernel_lines(report)
    assert len(console.told) == 1
    console.hear(report)
    console.hear("all of it has been looked at\n")
    console.feed(X86_NULL)
    console.soon(lambda: console.monitor.failure)
    others = [one for one in console.told[1:] if one.driver != "igb"]
    assert not others


def quiet(report: str) -> str:
    """What a console shows of an oops when its log level is low: die() raises it."""
    lines = report.splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if "Internal error: Oops" in line)
    return "".join(lines[start:])


def test_a_quiet_console_shows_only_the_end_of_an_oops(console: Console) -> None:
    console.hear(quiet(ARM64_NULL))
    console.soon(lambda: console.told)
    console.take_kernel_lines(ARM64_NULL)
    assert len(console.told) == 1


def test_the_end_of_an_oops_that_the_kernel_log_told_whole(console: Console) -> None:
    console.take_kernel_lines(ARM64_NULL)
    console.hear(quiet(ARM64_NULL))
    console.hear("all of it has been looked at\n")
    assert len(console.told) == 1
    assert console.told[0].line is not None and "Unable to handle" in console.told[0].line


def test_two_faults_are_told_both(console: Console) -> None:
    console.hear(WARN_7)
    console.soon(lambda: console.told)
    console.take_kernel_lines(REFCOUNT)
    assert [one.category for one in console.told] == ["warn", "refcount"]


# The kernel's log


def test_what_the_wire_brought_is_not_logged_twice(console: Console) -> None:
    console.hear(WARN_7.replace("\n", "\r\n"))
    before = console.log.getvalue()
    console.take_kernel_lines(WARN_7)
    assert console.log.getvalue() == before


def test_a_line_that_ssh_brings_first_waits_for_the_wire(console: Console) -> None:
    console.monitor.start_boot({})
    half, rest = WARN_7[:200], WARN_7[200:]
    console.feed(half)
    console.soon(lambda: half.splitlines()[-1] in console.log.getvalue())
    for line in WARN_7.splitlines():
        console.monitor.take_kernel_line(line)
    console.feed(rest)
    console.monitor.settle_kernel_log()
    assert console.logged() == WARN_7.splitlines()
    assert len(console.told) == 1


def test_a_prompt_before_a_line_makes_no_double(console: Console) -> None:
    console.hear("root@board:~# " + WARN_7)
    before = console.log.getvalue()
    console.take_kernel_lines(WARN_7)
    assert console.log.getvalue() == before


def test_a_wire_that_talks_on_and_on_holds_no_line_for_ever(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_HELD_S", 0.1)
    monkeypatch.setattr(module, "QUIET_S", LONG_S)
    console.hear("half of ")
    console.monitor.take_kernel_line(REFCOUNT.splitlines()[0])
    console.soon(lambda: "kmsg: " in console.log.getvalue())
    console.hear("a line\n")
    assert console.logged()[0] == "half of "
    assert console.logged()[2] == "a line"


def test_what_only_the_kernel_log_has_is_logged_and_told(console: Console) -> None:
    console.take_kernel_lines(WARN_7)
    assert console.logged() == [f"kmsg: {line}" for line in WARN_7.splitlines()]
    [finding] = console.told
    assert finding.function == "am65_cpsw_nuss_xdp_setup"
    assert console.logged()[finding.line_number - 1] == f"kmsg: {finding.line}"


def test_line_numbers_are_those_of_the_log_with_both(console: Console) -> None:
    console.hear("root@board:~# \n")
    console.take_kernel_lines(REFCOUNT)
    console.hear(WARN_7)
    console.soon(lambda: len(console.told) == 2)
    for finding in console.told:
        assert console.logged()[finding.line_number - 1].removeprefix("kmsg: ") == finding.line


def test_a_crash_that_only_the_kernel_log_tells_is_a_failure(
    console: Console, worker: ThreadPoolExecutor
) -> None:
    """ssh is faster than the wire: who asks whether the board is alive must not be told yes."""
    future = waiting(console, worker)
    console.take_kernel_lines(ARM64_NULL)
    assert isinstance(console.monitor.failure, BootFailure)
    assert console.monitor.failure.verdict.function == "am65_cpsw_nuss_rx_poll"
    assert error_of(future) is console.monitor.failure


# Limits


def silent_after(text: str, console: Console, limits: Limits, phase: Phase) -> BaseException:
    """What ends an expect on a board that says a text and then nothing."""
    console.monitor.start_boot({phase: limits})
    console.feed(text)
    with pytest.raises((BootFailure, LabBootFailure)) as caught:
        console.monitor.expect("never comes", timeout=LONG_S)
    return caught.value


def test_silence_after_power_on(console: Console) -> None:
    error = silent_after("", console, Limits(LONG_S, 0.05), Phase.POWER)
    assert isinstance(error, LabBootFailure)
    assert error.verdict.category == "power_silent"
    assert error.verdict.details["limit"] == "power: no byte for 0.05 s"
    assert "the console said nothing; power: no byte for 0.05 s" in str(error)


def test_silence_of_a_kernel_is_a_vote(console: Console) -> None:
    text = "Starting kernel ...\n[    0.000000] Booting Linux on physical CPU 0x0\n"
    error = silent_after(text, console, Limits(LONG_S, 0.05), Phase.KERNEL)
    assert isinstance(error, BootFailure)
    verdict = error.verdict
    assert (verdict.verdict, verdict.stage, verdict.category) == ("bad", "kernel", "kernel_silent")
    assert verdict.details["limit"] == "kernel: no byte for 0.05 s"


def test_the_deadline_of_a_phase_ends_one_that_talks_and_talks(console: Console) -> None:
    console.monitor.start_boot({Phase.UBOOT: Limits(0.1, 0.1)})
    console.feed("U-Boot 2025.01 (Jan 06 2025)\n")
    over = threading.Event()

    def talk() -> None:
        while not over.wait(0.01):
            console.feed("T ")

    talker = threading.Thread(target=talk)
    talker.start()
    try:
        with pytest.raises(LabBootFailure) as caught:
            console.monitor.expect("never comes", timeout=LONG_S)
    finally:
        over.set()
        talker.join()
    assert caught.value.verdict.stage == "uboot"
    assert caught.value.verdict.details["limit"] == "uboot: not over after 0.1 s"


@pytest.mark.parametrize("end", ["end_boot", "power_off"])
def test_when_the_boot_is_over_nothing_expires(console: Console, end: str) -> None:
    console.monitor.start_boot({Phase.POWER: Limits(0.05, 0.05)})
    getattr(console.monitor, end)()
    with pytest.raises(TIMEOUT):
        console.monitor.expect("never comes", timeout=0.15)
    assert console.monitor.failure is None


def test_the_times_of_a_boot(console: Console) -> None:
    console.monitor.start_boot({})
    console.hear("U-Boot 2025.01 (Jan 06 2025)\nStarting kernel ...\n")
    console.hear("[    0.000000] Booting Linux on physical CPU 0x0\n")
    console.soon(lambda: console.monitor.phase is Phase.KERNEL)
    console.monitor.enter(Phase.SSH)
    assert console.monitor.phase is Phase.SSH
    durations = console.monitor.end_boot().durations()
    assert list(durations) == [Phase.POWER, Phase.UBOOT, Phase.HANDOVER, Phase.KERNEL, Phase.SSH]


# Waiting without taking anything away


def test_await_phase(console: Console, worker: ThreadPoolExecutor) -> None:
    future = worker.submit(console.monitor.await_phase, Phase.LOGIN, timeout_s=LONG_S)
    console.feed("Linux version 6.12.0\nboard login: ")
    future.result(PATIENCE_S)
    assert console.monitor.expect("board login: ", timeout=PATIENCE_S)[0] == 0


def test_await_phase_ends_with_the_failure(console: Console, worker: ThreadPoolExecutor) -> None:
    future = worker.submit(console.monitor.await_phase, Phase.LOGIN, timeout_s=LONG_S)
    console.feed(SYSRQ_PANIC)
    assert isinstance(error_of(future), BootFailure)


def test_await_phase_is_late(console: Console) -> None:
    with pytest.raises(TIMEOUT, match=r"no login within 0\.01 s"):
        console.monitor.await_phase(Phase.LOGIN, timeout_s=0.01)


def test_await_quiet(console: Console) -> None:
    console.hear("something\n")
    console.monitor.await_quiet(0.05)


# A board that starts anew


def test_start_boot_forgets_the_last_boot(console: Console) -> None:
    console.hear("=> left over\n" + SYSRQ_PANIC)
    console.soon(lambda: console.monitor.failure)
    with pytest.raises(BootFailure):
        console.monitor.expect("never comes", timeout=LONG_S)
    console.monitor.start_boot({})
    assert console.monitor.failure is None
    assert console.monitor.boots == 1
    # nor does pexpect find again what it has read
    with pytest.raises(TIMEOUT):
        console.monitor.expect("=> ", timeout=0.02)
    console.hear(SYSRQ_PANIC)
    console.soon(lambda: console.monitor.failure)
    assert [one.category for one in console.told] == ["panic", "panic"]
    # numbers of lines are those of the whole log
    assert console.told[1].line_number == console.told[0].line_number + 13


def test_a_failure_is_seen_to_when_the_power_is_off(console: Console) -> None:
    console.hear(SYSRQ_PANIC)
    console.soon(lambda: console.monitor.failure)
    console.monitor.power_off()
    console.hear("its last words\n")
    with pytest.raises(TIMEOUT):
        console.monitor.expect("never comes", timeout=0.05)
    assert console.monitor.failure is None


BOOT = """\
U-Boot SPL 2025.01 (Jan 06 2025)
U-Boot 2025.01 (Jan 06 2025)
Starting kernel ...
[    0.000000] Linux version 6.12.0
[    0.900000] Run /sbin/init as init process
"""


def test_a_board_that_starts_anew_by_itself_fails(console: Console) -> None:
    console.hear(BOOT + BOOT)
    console.soon(lambda: console.monitor.failure)
    assert [one.category for one in console.told] == ["reset_loop"]


def test_a_reset_on_purpose_is_no_reset_loop(console: Console) -> None:
    console.hear(BOOT)
    with console.monitor.expect_reset():
        console.hear(BOOT)
    console.hear("all of it has been looked at\n")
    assert console.monitor.failure is None
    assert not console.told


def test_what_a_board_says_after_a_reset_on_purpose_counts_for_nobody(console: Console) -> None:
    console.hear(BOOT)
    with console.monitor.expect_reset():
        console.hear(BOOT)
        console.hear("TFTP error: 'File not found' (1)\n")
    console.hear(BOOT)
    assert console.monitor.failure is None
    assert not console.told


def test_a_crash_before_the_reset_on_purpose_counts(console: Console) -> None:
    console.hear(BOOT)
    with console.monitor.expect_reset():
        console.hear("[   99.000000] Kernel panic - not syncing: Fatal exception\n")
        console.soon(lambda: console.monitor.failure)


def test_only_the_boot_with_a_reset_on_purpose_may_restart(console: Console) -> None:
    console.hear(BOOT)
    with console.monitor.expect_reset():
        console.hear(BOOT)
    console.monitor.start_boot({})
    console.hear(BOOT + BOOT)
    console.soon(lambda: console.monitor.failure)


def test_a_restart_that_only_the_log_announces_fails(console: Console) -> None:
    console.hear(BOOT + "[   99.000000] sysrq: Resetting\n" + BOOT)
    console.soon(lambda: console.monitor.failure)


# The serial port


def test_a_lost_port_is_opened_again(console: Console) -> None:
    console.feed("before ")
    console.port.fed.put(serial.SerialException("device reports readiness but has no data"))
    console.feed("after")
    console.monitor.expect("before after", timeout=PATIENCE_S)
    assert console.port.opened == 1


def test_a_port_that_comes_back_late(console: Console) -> None:
    console.monitor.reconnect_s = LONG_S
    console.port.cannot_open = OSError("no such device")
    console.port.fed.put(OSError("input/output error"))
    console.feed("after")
    with pytest.raises(TIMEOUT):
        console.monitor.expect("after", timeout=0.05)
    console.port.cannot_open = None
    console.monitor.expect("after", timeout=PATIENCE_S)


def test_a_port_that_stays_away_is_a_lab_error(
    console: Console, worker: ThreadPoolExecutor
) -> None:
    future = waiting(console, worker)
    console.port.cannot_open = serial.SerialException("refused")
    console.port.fed.put(serial.SerialException("socket disconnected"))
    error = error_of(future)
    assert isinstance(error, LabError)
    assert str(error) == (
        "serial port of main is lost for 0.1 s: socket disconnected; check its cable or server"
    )


def test_a_port_that_opens_and_breaks_each_time_is_lost(
    console: Console, worker: ThreadPoolExecutor
) -> None:
    """So a serial server turns away a second client."""
    future = waiting(console, worker)
    console.port.breaks = True
    assert isinstance(error_of(future), LabError)
    assert console.port.opened > 1


# Logs


def test_logs_change_between_two_lines(console: Console) -> None:
    test_log = io.StringIO()
    console.feed("half of ")
    console.soon(lambda: "half of" in console.log.getvalue())
    console.monitor.set_logs(console.monitor._log._logs[0], StampedLog(test_log))
    console.hear("a line\n")
    assert console.logged() == ["half of a line"]
    assert test_log.getvalue().endswith(" a line\n")
    console.monitor.set_logs()
    console.feed("unheard, but read\n")
    console.monitor.expect("but read", timeout=PATIENCE_S)
    assert "unheard" not in console.log.getvalue() + test_log.getvalue()


def test_a_log_that_is_taken_away_ends_its_line(console: Console) -> None:
    console.feed("half of ")
    console.soon(lambda: "half of" in console.log.getvalue())
    console.monitor.set_logs()
    assert console.log.getvalue().endswith("half of \n")
