"""Reports of the kernel, cut out of the lines between which they stand. Pure.

A report (oops, warning, stall ...) has a first line that says what it is, and a body: registers,
task, call trace. Other writers' lines stand between; where the kernel names each line's caller,
reports of several CPUs are told apart by it. A panic that only ends what a report began belongs to
that report.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from hil.console import drivers, printk
from hil.console.drivers import Frame

LONGEST_REPORT = 80
DEEPEST_TRACE = 64
# So many lines of others in a row, or so much of the kernel's time, and the report is over. What
# memory there is takes a screenful; a processor that does not answer is waited for 10 s.
_STRANGERS = {"oom": 150}
_STRANGERS_ELSE = 30
_PAUSE_S = 15.0
# A panic belongs to the report before it when it comes within so many lines.
_AFTERMATH_LINES = 150
# printk stamps of one report's first two lines differ by less than this.
_TOGETHER_S = 0.001

CUT_HERE = "cut here"
_CUT = re.compile(r"-+\[ cut here \]-+|8<-+ cut here -+")

# First lines, the more special before the more general.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("panic", r"Kernel panic - not syncing"),
        ("kasan", r"BUG: KASAN: "),
        ("kfence", r"BUG: KFENCE: "),
        ("kmsan", r"BUG: KMSAN: "),
        ("kcsan", r"BUG: KCSAN: "),
        ("ubsan", r"UBSAN: "),
        ("atomic_sleep", r"BUG: (?:sleeping function called|scheduling while atomic)"),
        ("workqueue_lockup", r"BUG: workqueue lockup"),
        ("soft_lockup", r"BUG: soft lockup"),
        ("hard_lockup", r"hard LOCKUP"),
        ("rcu_stall", r"rcu\w*: INFO: \w+ (?:self-)?detected|INFO: rcu\w* .*(?:self-)?detected"),
        (
            "hung_task",
            r"INFO: task (?P<task>.+:\d+) (?:<[^>]*> )?(?:is )?blocked (?:on .* )?for more than (?P<seconds>\d+) s",
        ),
        (
            "lockdep",
            r"(?:WARNING|INFO|BUG): (?:possible (?:circular|recursive|irq lock inversion)|inconsistent lock|"
            r"suspicious RCU|bad unlock balance|held lock freed|lock held|Nested lock|"
            r"trying to register non-static|[\w-]+-safe -> [\w-]+-unsafe)|\[ BUG: |possible deadlock",
        ),
        ("refcount", r"^\s*refcount_t: "),
        ("list_corruption", r"^\s*list_(?:add|del) (?:corruption|double)"),
        ("netdev_watchdog", r"NETDEV WATCHDOG: "),
        ("bug", r"kernel BUG at |Kernel BUG at |BUG: Bad |BUG: spinlock|BUG: non-zero|BUG! "),
        (
            "oops",
            r"[Uu]nable to handle kernel|BUG: unable to handle|BUG: kernel NULL|BUG: stack guard|"
            r"BUG: (?:TASK|IRQ) stack|general protection fault|Internal error: |Oops[:\[ ]|double fault: |"
            r"divide error: |invalid opcode: |Bad mode in |SError Interrupt on CPU|Unhandled fault: |"
            r"Unhandled prefetch abort|stack-protector: |kernel paging request at|undefined instruction: ",
        ),
        ("oom", r"invoked oom-killer|Out of memory: "),
        ("warn", r"WARNING: (?:CPU: \d+|at |\S+:\d+ at )"),
    )
)
KINDS = tuple(kind for kind, _ in _KINDS)
# These refine what a report with the same beginning is; each is more telling than those after it.
_TELLING = ("refcount", "list_corruption", "netdev_watchdog")
# Panics that say only that something before them was fatal.
_AFTERMATH = re.compile(
    r"not syncing: (?:.*Fatal exception|Oops|.*panic_on_|softlockup|hung_task: blocked|RCU Stall|"
    r"Hard LOCKUP|.*hard LOCKUP|Asynchronous SError|stack is corrupted|Fatal|UBSAN|KASAN|KFENCE|BUG!|"
    r"Attempted to kill init! exitcode=0x0000000[b7]|Unrecoverable|System is deadlocked|Out of memory)"
)
_END = re.compile(r"---\[ end (?:trace|Kernel panic)|Rebooting in \d+ seconds")
_DETAILS = (
    re.compile(
        r"NETDEV WATCHDOG: (?P<iface>\S+) \((?P<driver>[\w-]+)\): transmit queue (?P<queue>\d+) timed out"
        r"(?: (?P<timeout_ms>\d+) ms)?"
    ),
    re.compile(r"soft lockup - CPU#(?P<cpu>\d+) stuck for (?P<seconds>\d+)s"),
    re.compile(r"INFO: task (?P<task>.+:\d+) .*blocked .*for more than (?P<seconds>\d+) s"),
    re.compile(
        r"virtual address (?P<address>[0-9a-f]{8,16})|, address: (?P<address2>[0-9a-f]{8,16})"
    ),
    re.compile(r"task:(?P<stalled_task>\S+) +state:R"),
    re.compile(r"(?P<access>Read|Write) of size (?P<size>\d+)"),
    re.compile(r"\(t=(?P<jiffies>\d+) jiffies"),
)
_VARIABLE = re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{8,16}\b|-?\d+")


@attrs.frozen
class Report:
    """One report; `line` is its first telling line as it stands in the log.

    `trace` is innermost first and without guessed frames; `function` is the first that is no core
    helper, `core_function` the innermost one when it is a helper.
    """

    kind: str
    message: str
    line: str
    line_number: int
    lines: tuple[str, ...]
    numbers: frozenset[int]
    trace: tuple[str, ...]
    function: str | None
    core_function: str | None
    driver: str | None
    process: str | None
    pid: int | None
    details: Mapping[str, Any]
    fingerprint: str

    def covers(self, number: int) -> bool:
        """Whether a line of this number is part of the report."""
        return number in self.numbers


@attrs.define
class _Draft:
    """A report that is still being printed."""

    kind: str
    message: str
    line: str
    number: int
    caller: str | None
    stamp_s: float | None
    awaits_message: bool = False
    lines: list[str] = attrs.field(factory=list)
    numbers: set[int] = attrs.field(factory=set)
    at: Frame | None = None
    frames: list[Frame] = attrs.field(factory=list)
    in_trace: bool = False
    trace_over: bool = False
    process: tuple[str, int] | None = None
    details: dict[str, Any] = attrs.field(factory=dict)
    strangers: int = 0

    def take(self, line: printk.Line, number: int) -> None:
        """A line that belongs to the report."""
        self.strangers = 0
        self.stamp_s = line.stamp_s or self.stamp_s
        if len(self.lines) < LONGEST_REPORT:
            self.lines.append(line.text)
        self.numbers.add(number)
        self.at = self.at or printk.program_counter(line.body)
        self.process = self.process or printk.task(line.body)
        for name, value in _details(line.body):
            self.details.setdefault(name, value)
        self._take_frames(line.body)

    def _take_frames(self, body: str) -> None:
        if re.match(r"\s*(?:[Cc]all [Tt]race|Backtrace)", body):
            self.trace_over = bool(self.frames)
            self.in_trace = True
        elif re.match(
            r"\s*(?:Allocated by|Freed by|Last potentially|Code: |---\[|Modules linked)", body
        ):
            self.trace_over = self.trace_over or bool(self.frames)
        elif not self.trace_over and len(self.frames) < DEEPEST_TRACE:
            # LR and "Last ..." name functions too, but with a word before them
            self.frames += [frame for frame in printk.frames(body) if frame not in self.frames[-1:]]

    def refine(self, kind: str, line: printk.Line, number: int) -> None:
        """A second first line: the kernel says more precisely what it is."""
        if self.kind == CUT_HERE or (self.awaits_message and kind in _TELLING):
            first_is_message = self.kind != CUT_HERE and bool(self.message)
            self.kind = kind
            if kind != "warn" and not first_is_message:
                self.message, self.line, self.number = line.body.strip(), line.text, number
            elif kind == "warn" and not self.message:
                self.line, self.number = line.text, number
        elif self.kind == "warn" and kind in _TELLING:
            # kernels before 4.12 print the message below the WARNING
            self.kind, self.message = kind, line.body.strip()
            self.line, self.number = line.text, number
        elif self.kind == "oops" and kind == "bug":
            self.kind = kind

    @property
    def has_trace(self) -> bool:
        return bool(self.frames)

    def report(self) -> Report:
        trace = list(self.frames)
        if self.at and trace[:1] != [self.at]:
            # frames above the fault belong to the handler that printed the report
            if self.at in trace[:12]:
                del trace[: trace.index(self.at)]
            else:
                trace.insert(0, self.at)
        elif not self.at:
            trace = _without_reporting(trace)
        table = drivers.load()
        culprit = table.culprit(trace)
        details = dict(self.details)
        task = details.get("stalled_task") or (self.process[0] if self.process else None)
        driver = details.pop("driver", None) or culprit.driver or table.of_task(task)
        if culprit.core_function:
            details["core_function"] = culprit.core_function
        kind = "warn" if self.kind == CUT_HERE else self.kind
        message = self.message or _file_of(self.line)
        return Report(
            kind=kind,
            message=self.message or self.line,
            line=self.line,
            line_number=self.number,
            lines=tuple(self.lines),
            numbers=frozenset(self.numbers),
            trace=tuple(frame.function for frame in trace),
            function=culprit.function,
            core_function=culprit.core_function,
            driver=driver,
            process=self.process[0] if self.process else None,
            pid=self.process[1] if self.process else None,
            details=details,
            fingerprint=_fingerprint(
                kind, message, driver, culprit.function, culprit.core_function
            ),
        )


_REPORTING = re.compile(
    r"dump_stack|dump_backtrace|show_stack|show_regs|__warn|report_bug|warn_slowpath|bug_handler|"
    r"handle_bug|exc_invalid_op|asm_exc|print_|kasan_|__kasan|__asan|nmi_|rcu_|sched_show|dump_cpu|"
    r"panic|die|brk_handler|call_break|do_debug|el1"
)


def _without_reporting(trace: list[Frame]) -> list[Frame]:
    """A trace without the functions that only printed it."""
    start = 0
    while start < len(trace) and _REPORTING.match(trace[start].function):
        start += 1
    return trace[start:] or trace


def _file_of(line: str) -> str:
    """Source file of a warning; its line number differs from kernel to kernel."""
    match = re.search(r"(?:at )?([\w./-]+\.[chS]):\d+", line)
    return match[1] if match else ""


def _fingerprint(kind: str, message: str, *parts: str | None) -> str:
    text = re.sub(r"\s+", " ", _VARIABLE.sub("#", re.sub(r"^.*?not syncing: ", "", message)))
    # whose turn it was, and which attempt, is chance
    text = re.sub(r"kworker/\S+|ksoftirqd/\S+|\[.*?\]", "#", text)
    joined = "\0".join((kind, text, *(part or "" for part in parts)))
    return hashlib.sha256(joined.encode()).hexdigest()[:12]


class Cutter:
    """Fed with lines: one with which a report may begin, and each while one is open (`busy`)."""

    def __init__(self) -> None:
        self._drafts: dict[str | None, _Draft] = {}
        # where the last report ended: a panic may follow from it
        self._ended = -_AFTERMATH_LINES
        self._aftermath: _Draft | None = None

    @property
    def busy(self) -> bool:
        """Whether a report has begun and not ended: every line is wanted."""
        return bool(self._drafts)

    def feed(
        self, text: str, number: int, previous: Callable[[], str] = lambda: ""
    ) -> list[Report]:
        """Reports that this line ends; `previous` tells the text of the line before it."""
        line = printk.split(text)
        kind = _kind(line.body)
        draft = self._draft_of(line)
        done: list[Report] = []
        if draft is not None and _is_late(draft, line):
            done += self._close(draft, number)
            draft = None
        if kind is not None and (draft is None or self._begins_another(draft, kind, line)):
            if draft is not None:
                done += self._close(draft, number)
            # later kernels print this as a line of its own, and a signature knows it
            if kind != "netdev_watchdog":
                self._open(kind, line, number, previous)
            return done
        if draft is None:
            return done + self._count_strangers(None, number)
        return done + self._continue(draft, kind, line, number)

    def close(self) -> list[Report]:
        """The reports that are open, as far as they go."""
        return [
            report
            for draft in list(self._drafts.values())
            for report in self._close(draft, max(draft.numbers))
        ]

    def _draft_of(self, line: printk.Line) -> _Draft | None:
        draft = self._drafts.get(line.caller)
        if draft is None and self._drafts:
            last = list(self._drafts.values())[-1]
            # a line without caller, or another CPU's part of a stall
            if (
                line.caller is None
                or last.caller is None
                or last.kind.endswith(("stall", "lockup"))
            ):
                return last
        return draft

    def _begins_another(self, draft: _Draft, kind: str, line: printk.Line) -> bool:
        if draft.kind == CUT_HERE:
            return kind == CUT_HERE and draft.has_trace
        if kind == "panic":
            return not _AFTERMATH.search(line.body)
        if _goes_on(draft, kind, line):
            return False
        if kind == CUT_HERE or draft.has_trace:
            return True
        if kind == draft.kind and kind not in ("oops", "bug"):
            return True
        same = {"oops", "bug"}
        joined = (
            {draft.kind, kind} <= same
            or (draft.kind == "warn" and kind in _TELLING)
            or (draft.kind in _TELLING and kind in ("warn", "bug", "oops"))
            or (draft.kind in ("kasan", "panic", "soft_lockup", "hard_lockup") and kind == "oops")
        )
        return not joined

    def _open(self, kind: str, line: printk.Line, number: int, previous: Callable[[], str]) -> None:
        message = "" if kind in (CUT_HERE, "warn") else line.body.strip()
        draft = _Draft(kind, message, line.text, number, line.caller, line.stamp_s)
        draft.awaits_message = kind == CUT_HERE
        if kind == "warn" and (before := _message_before(previous(), line)):
            draft.message, draft.line, draft.number = before.body.strip(), before.text, number - 1
            draft.lines.append(before.text)
            draft.numbers.add(number - 1)
        draft.take(line, number)
        soon = number - self._ended <= _AFTERMATH_LINES
        if kind == "panic" and soon and _AFTERMATH.search(line.body):
            self._aftermath = draft
        self._drafts[line.caller] = draft

    def _continue(
        self, draft: _Draft, kind: str | None, line: printk.Line, number: int
    ) -> list[Report]:
        if kind is not None:
            draft.refine(kind, line, number)
            draft.awaits_message = draft.awaits_message and draft.kind == CUT_HERE
        elif draft.awaits_message and not printk.is_body(line.body):
            # what WARN() was told to say stands directly below the scissors
            draft.message, draft.line, draft.number = line.body.strip(), line.text, number
            draft.awaits_message = False
            draft.take(line, number)
            return []
        if kind is None and not printk.is_body(line.body):
            return self._count_strangers(draft, number)
        draft.take(line, number)
        if _END.search(line.body):
            return self._close(draft, number)
        return []

    def _count_strangers(self, draft: _Draft | None, number: int) -> list[Report]:
        done = []
        for one in [draft] if draft else list(self._drafts.values()):
            one.strangers += 1
            if one.strangers > _STRANGERS.get(one.kind, _STRANGERS_ELSE):
                done += self._close(one, number)
        return done

    def _close(self, draft: _Draft, number: int) -> list[Report]:
        self._drafts = {k: d for k, d in self._drafts.items() if d is not draft}
        if draft is self._aftermath:
            self._aftermath = None
            return []
        self._ended = number
        return [draft.report()]


@printk.remembered
def _details(body: str) -> tuple[tuple[str, str], ...]:
    """What a line of a report says besides, by name."""
    return tuple(
        (name.rstrip("2"), value)
        for pattern in _DETAILS
        if (match := pattern.search(body))
        for name, value in match.groupdict().items()
        if value is not None
    )


@printk.remembered
def _kind(body: str) -> str | None:
    if _CUT.search(body):
        return CUT_HERE
    if _END.search(body):
        return None
    return next((kind for kind, pattern in _KINDS if pattern.search(body)), None)


def _goes_on(draft: _Draft, kind: str, line: printk.Line) -> bool:
    """Whether a first line is one that this report has in its middle."""
    return (
        (kind == "oops" and draft.kind in ("oops", "bug") and "Oops" in line.body)
        or (kind == draft.kind == "oom" and "invoked oom-killer" not in line.body)
        or (kind == CUT_HERE and draft.kind in _TELLING and not draft.has_trace)
    )


def _is_late(draft: _Draft, line: printk.Line) -> bool:
    """A clock that went backwards is another boot; a long pause, another matter."""
    if line.stamp_s is None or draft.stamp_s is None:
        return False
    passed = line.stamp_s - draft.stamp_s
    return passed > _PAUSE_S or passed < -1.0


def _message_before(previous: str, warning: printk.Line) -> printk.Line | None:
    """What a WARN() without scissors was told to say, when the line before can be that."""
    line = printk.split(previous)
    if not line.body.strip() or printk.is_body(line.body):
        return None
    if (line.stamp_s is None) != (warning.stamp_s is None):
        return None
    if line.stamp_s is not None and warning.stamp_s is not None:
        return line if 0 <= warning.stamp_s - line.stamp_s < _TOGETHER_S else None
    return line
