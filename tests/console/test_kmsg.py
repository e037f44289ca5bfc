"""Records of the kernel's log, and the follower that reads them from a board."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.clock import Deadline, wait_until
from hil.console import kmsg
from hil.console.kmsg import KernelLogFollower, lines_of
from hil.errors import LabError, TargetError
from hil.runners import Host, Result, Running

PATIENCE_S = 10


# Records


@pytest.mark.parametrize(
    ("record", "line"),
    [
        ("6,1,0,-;Booting Linux", "[    0.000000] Booting Linux"),
        ("4,901,12345678,-;eth0: up", "[   12.345678] eth0: up"),
        ("4,9,123456789012,c;late", "[123456.789012] late"),
        ("6,339,5140900,-,caller=T1;NET: Registered", "[    5.140900][    T1] NET: Registered"),
        ("6,339,5140900,-,caller=C3,x=1;in irq", "[    5.140900][    C3] in irq"),
        ("6,2,1,-;a;b, c", "[    0.000001] a;b, c"),
        ("6,2,1,-;", "[    0.000001] "),
        # the kernel escapes what is not printable, and its own escape
        ("6,2,1,-;\\x09tab", "[    0.000001] \ttab"),
        ("6,2,1,-;C:\\x5cx41", "[    0.000001] C:\\x41"),
        ("6,2,1,-;25 \\xc2\\xb0C", "[    0.000001] 25 °C"),
        ("6,2,1,-;odd \\xff byte", "[    0.000001] odd \ufffd byte"),
        ("6,2,1,-;\\xc2 and \\xb0", "[    0.000001] \ufffd and \ufffd"),
        ("6,2,1,-;\\xZZ", "[    0.000001] \\xZZ"),
        ("6,2,1,-;with its own end\\x0d", "[    0.000001] with its own end"),
    ],
)
def test_a_record_becomes_a_line_of_the_console(record: str, line: str) -> None:
    assert lines_of(record) == [line]


def test_each_line_of_a_record_has_the_stamp() -> None:
    stamp = "[    2.000000]"
    assert lines_of("6,2,2000000,-;one\\x0atwo") == [f"{stamp} one", f"{stamp} two"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " SUBSYSTEM=net",
        " DEVICE=+pci:0000:01:00.0",
        " 6,1,0,-;not a record",
        "cat: /dev/kmsg: Broken pipe",
        "6,1;too short",
        "6,1,0,- no text",
        "6,1,x,-;no time",
        "6,1,²,-;no digit of ASCII",
        "6,1," + 5000 * "9" + ",-;no such time",
    ],
)
def test_what_is_no_record_gives_no_line(text: str) -> None:
    assert lines_of(text) == []


def as_kmsg(text: bytes) -> str:
    """As msg_add_ext_text() of the kernel writes it."""
    return "".join(
        f"\\x{byte:02x}" if byte < 0x20 or byte >= 0x7F or byte == 0x5C else chr(byte)
        for byte in text
    )


@given(st.binary().filter(lambda text: not {0x0A, 0x0D} & set(text)))
def test_any_bytes_come_out_as_on_the_wire(text: bytes) -> None:
    [line] = lines_of(f"6,1,0,-;{as_kmsg(text)}")
    assert line == "[    0.000000] " + text.decode(errors="replace")


@given(st.text())
def test_no_text_is_too_odd(text: str) -> None:
    for line in lines_of(text) + lines_of(f"6,1,0,-;{text}"):
        assert line.startswith("[") and "\n" not in line


# The follower


@attrs.define
class FakeBoard(Host):
    """Its kernel's log is what the test puts there; a marker comes back as a record of its own."""

    name: str = "fake board"
    records: queue.Queue[str | None] = attrs.field(factory=queue.Queue)
    answers: bool = True
    hangs: bool = False
    refuses: Exception | None = None
    running: list[Running] = attrs.field(factory=list)
    stopped: int = 0
    asked: int = 0

    def start(self, argv: Sequence[str]) -> Running:
        assert list(argv) == ["cat", "/dev/kmsg"]
        if self.refuses is not None:
            raise self.refuses
        records: Iterator[str] = iter(self.records.get, None)
        running = Running(argv, records, lambda seconds: 0, self._stop, str, print)
        self.running.append(running)
        return running

    def _stop(self) -> None:
        self.stopped += 1
        if not self.hangs:
            self.records.put(None)

    def run(self, argv: Sequence[str], *, timeout_s: float = 30.0) -> Result:
        self.asked += 1
        if self.refuses is not None:
            raise self.refuses
        shell, option, command = argv
        assert (shell, option) == ("sh", "-c")
        marker = command.removeprefix("echo '<7>").removesuffix("' > /dev/kmsg")
        if self.answers:
            self.records.put(f"15,99,5000000,-;{marker}")
        return Result(tuple(argv), 0, "", "")

    def put(self, source: Path, target: str) -> None:
        raise NotImplementedError


@attrs.define
class Followed:
    board: FakeBoard
    follower: KernelLogFollower
    lines: list[str]
    settled: list[int]

    def says(self, *texts: str) -> None:
        for text in texts:
            self.board.records.put(f"6,1,1000000,-;{text}")


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Followed]:
    monkeypatch.setattr(kmsg, "SYNC_DEADLINE_S", 0.1)
    threads = threading.active_count()
    board, lines, settled = FakeBoard(), [], []
    follower = KernelLogFollower(board, lines.append, lambda: settled.append(len(lines)))
    yield Followed(board, follower, lines, settled)
    follower.stop()
    # the reader of a command that hangs has nobody who could end it
    board.records.put(None)
    soon(lambda: threading.active_count() == threads)


def soon(condition: Callable[[], object]) -> None:
    assert wait_until(condition, deadline=Deadline(PATIENCE_S), poll_s=0.005)


def test_each_record_is_taken(followed: Followed) -> None:
    followed.follower.start()
    followed.says("one")
    followed.board.records.put(" SUBSYSTEM=net")
    followed.says("two\\x0athree")
    soon(lambda: len(followed.lines) == 3)
    stamp = "[    1.000000]"
    assert followed.lines == [f"{stamp} one", f"{stamp} two", f"{stamp} three"]


def test_after_sync_all_is_taken_and_settled(followed: Followed) -> None:
    followed.follower.start()
    followed.says(*(f"line {number}" for number in range(1000)))
    assert followed.follower.sync()
    assert len(followed.lines) == 1000
    assert followed.settled == [1000]
    assert followed.follower.sync()
    assert followed.settled == [1000, 1000]


def test_a_marker_is_never_taken(followed: Followed) -> None:
    """Not even that of another session, or one that came too late."""
    followed.board.answers = False
    followed.follower.start()
    assert not followed.follower.sync()
    followed.says("hil-sync-0123456789abcdef", "after hil-sync-")
    soon(lambda: followed.lines)
    assert followed.lines == ["[    1.000000] after hil-sync-"]
    assert not followed.settled


def test_sync_before_start_and_after_stop(followed: Followed) -> None:
    assert not followed.follower.sync()
    followed.follower.start()
    followed.follower.stop()
    assert not followed.follower.sync()
    assert followed.board.stopped == 1


def test_sync_when_the_log_has_ended(followed: Followed) -> None:
    followed.follower.start()
    followed.board.records.put(None)
    soon(lambda: not followed.board.running[0].alive)
    assert not followed.follower.sync()


@pytest.mark.parametrize("error", [LabError("no answer"), TargetError("panic")])
def test_sync_of_a_dead_board(followed: Followed, error: Exception) -> None:
    """A board that has crashed refuses commands with what it crashed of."""
    followed.follower.start()
    followed.board.refuses = error
    assert not followed.follower.sync()


def test_sync_after_an_interrupt_asks_nobody(followed: Followed) -> None:
    followed.follower.start()
    followed.board.running[0].interrupt(TargetError("panic"))
    thread = followed.follower._thread
    assert thread is not None
    thread.join(PATIENCE_S)
    assert followed.board.running[0].alive
    assert not followed.follower.sync()
    assert not followed.board.asked


def test_start_anew_begins_with_the_oldest(followed: Followed) -> None:
    followed.follower.start()
    followed.says("one")
    assert followed.follower.sync()
    followed.follower.start()
    followed.says("one", "two")
    assert followed.follower.sync()
    assert [line[-3:] for line in followed.lines] == ["one", "one", "two"]
    assert followed.board.stopped == 1


def test_a_start_that_fails(followed: Followed) -> None:
    followed.board.refuses = LabError("ssh session failed")
    with pytest.raises(LabError, match="ssh session failed"):
        followed.follower.start()
    assert not followed.follower.sync()
    followed.follower.stop()


def test_stop_does_not_wait_for_a_board_that_is_gone(followed: Followed) -> None:
    """The output of an ssh session stays open in the master of the connection."""
    followed.board.hangs = True
    followed.follower.start()
    followed.says("last words")
    soon(lambda: followed.lines)
    stopper = threading.Thread(target=followed.follower.stop, daemon=True)
    stopper.start()
    stopper.join(PATIENCE_S)
    assert not stopper.is_alive()
    assert followed.lines == ["[    1.000000] last words"]
