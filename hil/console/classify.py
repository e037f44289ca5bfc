"""The classifier: what a console says, found while it says it. Pure.

Lines go through three hands: signatures (one bad line), the cutter (reports of the kernel, many
lines), and the tracker (how far the boot is). judge.py weighs what they found.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import re
from collections.abc import Mapping
from typing import Any

import attrs

from hil.console import drivers, judge, signatures, splat, traffic
from hil.console.boot import BootTracker, Reset
from hil.console.collected import Collected, Seen
from hil.console.lines import LineSplitter, without_stamps
from hil.console.model import Finding, Phase, Verdict
from hil.console.signatures import PhaseMark, ReportRule, Signature, Signatures
from hil.console.splat import Cutter, Report
from hil.console.traffic import TrafficWatch

RESET_LOOP = "reset_loop"

_EMBEDDED_STAMP = re.compile(r"(?<=.)(?=\[ *\d+\.\d{6}\])")
_NUMBER = re.compile(r"0x[0-9a-f]+|-?\d+")
# How pytest shows the line of code that raised what comes after it.
_SOURCE_LINE = ">   "
# Reports that may still be told more completely.
_OPEN_REPORTS = 16
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\t\n"
_CAPTURE_GLYPHS = re.compile("[收发][←→][◆◇]".encode())


@attrs.define
class Facts:
    """What the log says besides findings."""

    values: dict[str, dict[str, str]] = attrs.field(factory=dict)
    events: set[str] = attrs.field(factory=set)
    last_line: str | None = None
    bytes_total: int = 0
    bytes_odd: int = 0
    capture_glyphs: bool = False
    bracketed_paste: bool = False


class Classifier:
    """Fed with a console's bytes in any chunks; says what went wrong as soon as that is known.

    `spl_banners` is how often the board prints the SPL banner in one boot, `first_line` how many
    lines of the log came before. Whoever restarts an `attended` board says so (expect_restart):
    what its log says of a restart does not excuse it.
    """

    def __init__(
        self,
        spl_banners: int = 2,
        known: Signatures | None = None,
        first_line: int = 0,
        *,
        attended: bool = False,
    ) -> None:
        self._signatures = known or signatures.load()
        self._splitter = LineSplitter()
        self._tracker = BootTracker(spl_banners)
        self._cutter = Cutter()
        self._traffic = TrafficWatch()
        self._attended = attended
        self._lines = first_line
        self._previous = b""
        self._collected = Collected()
        self._held: list[tuple[Signature, str, int]] = []
        self._provisional: dict[int, tuple[object, ...]] = {}
        self.facts = Facts()

    @property
    def phase(self) -> Phase:
        """Where the boot is; POWER until the console has shown anything of it."""
        return self._tracker.phase or Phase.POWER

    @property
    def transitions(self) -> list[tuple[Phase, int]]:
        """Phases that were entered, with the numbers of the lines that showed it."""
        return self._tracker.transitions

    @property
    def lines(self) -> int:
        """Whole lines so far."""
        return self._lines

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All so far, in the order of their first lines."""
        found = [seen.finding for seen in self._collected.all()]
        return tuple(sorted(found, key=lambda finding: finding.line_number))

    @property
    def fatal(self) -> Finding | None:
        """The first finding from which the board does not go on; None while it may."""
        return self._collected.fatal

    @property
    def restarts(self) -> int:
        """How often the boot began anew, for whatever reason."""
        return self._tracker.boot

    def expect_restart(self) -> None:
        """The next banner of a boot is on purpose."""
        self._tracker.explain_restart()

    def enter(self, phase: Phase) -> None:
        """The boot is known, from elsewhere, to have come so far."""
        self._tracker.mark(PhaseMark(phase, ""), self._lines)

    def feed(self, data: bytes) -> list[Finding]:
        """Findings that these bytes complete."""
        if block := self._splitter.feed(data):
            self._measure(block)
            self._scan(block)
        return self._collected.take_new()

    def quiet(self) -> list[Finding]:
        """Nothing more came for a while: what the report that is open says so far, and a prompt."""
        self._look_at_prompt(self._splitter.unfinished)
        for report in copy.deepcopy(self._cutter).close():
            self._take_report(report)
        return self._collected.take_new()

    def verdict(self) -> Verdict:
        """What the log says when it ends here. Nothing of the state changes."""
        end = copy.deepcopy(self)
        end._finish()
        return judge.verdict(end._collected.all(), end._tracker, end.facts)

    def __deepcopy__(self, memo: dict[int, object]) -> Classifier:
        twin = Classifier.__new__(Classifier)
        for name, value in vars(self).items():
            same = name == "_signatures"
            setattr(twin, name, value if same else copy.deepcopy(value, memo))
        return twin

    def _finish(self) -> None:
        if rest := self._splitter.unfinished:
            block = rest + b"\n"
            self._measure(block)
            self._scan(block)
            self._look_at_prompt(rest)
        for report in self._cutter.close():
            self._take_report(report)
        self._release_held(None)
        if found := self._traffic.finish():
            boot = self._tracker.boot
            self._collected.add((boot, found.category), Seen(found, boot, weight=20))

    # Scanning

    def _measure(self, block: bytes) -> None:
        facts = self.facts
        facts.bytes_total += len(block)
        if odd := block.translate(None, _PRINTABLE):
            facts.bytes_odd += block.decode(errors="replace").count("\ufffd")
            facts.bytes_odd += sum(byte < 0x20 or byte == 0x7F for byte in odd)
            facts.capture_glyphs |= bool(_CAPTURE_GLYPHS.search(block))
        facts.bracketed_paste |= self._splitter.bracketed_paste
        end = block.rstrip()
        if end:
            last = end[end.rfind(b"\n") + 1 :]
            facts.last_line = _text(last)

    def _scan(self, block: bytes) -> None:
        """Look at the lines that matter; while a report is open, at each."""
        position, counted = 0, 0
        while position < len(block):
            if self._cutter.busy:
                start, end = position, block.find(b"\n", position)
            else:
                match = self._scanner().search(block, position)
                if match is None:
                    break
                start = block.rfind(b"\n", 0, match.start()) + 1
                end = block.find(b"\n", start)
            self._lines += block.count(b"\n", counted, start)
            counted = start
            self._line(block, start, end)
            position = end + 1
        self._lines += block.count(b"\n", counted)
        self._previous = block[block.rfind(b"\n", 0, len(block) - 1) + 1 : -1]

    def _scanner(self) -> Any:
        phase = self._tracker.phase
        return self._signatures.scanner(
            early=self._tracker.awaits_kernel,
            begun=phase is not None and phase.rank >= Phase.INIT.rank,
            traffic=self._traffic.busy,
        )

    def _before(self, block: bytes, start: int) -> str:
        """The line before the one at `start`, which may be the last of the block before."""
        if start == 0:
            before = self._previous
        else:
            before = block[block.rfind(b"\n", 0, start - 1) + 1 : start - 1]
        return _text(before)

    def _line(self, block: bytes, start: int, end: int) -> None:
        text, number = _text(block[start:end]), self._lines + 1
        meaning = self._signatures.meaning(text)
        for mark in meaning.marks:
            self._take_mark(mark, text, number)
        for event in meaning.events:
            self._take_event(event)
        for fact in meaning.facts:
            if match := re.search(fact.pattern, text):
                self.facts.values[fact.name] = match.groupdict()
        if self._tracker.awaits_kernel and signatures.KERNEL_STAMP.match(text):
            self._take_mark(PhaseMark(Phase.KERNEL, ""), text, number)
        if meaning.signature and not text.startswith(_SOURCE_LINE):
            self._held.append((meaning.signature, text, number))
        if signatures.TRAFFIC in meaning.readers:
            self._traffic.line(text, number)
        if self._cutter.busy or signatures.REPORT in meaning.readers:
            self._cut(text, number, block, start)
        if self._held and not self._cutter.busy:
            self._release_held(None)

    def _cut(self, text: str, number: int, block: bytes, start: int) -> None:
        parts = _EMBEDDED_STAMP.split(text) if text.rfind("[") > 0 else (text,)
        for part in parts:
            for report in self._cutter.feed(part, number, lambda: self._before(block, start)):
                self._take_report(report)

    def _look_at_prompt(self, unfinished: bytes) -> None:
        text = _text(unfinished)
        for mark in self._signatures.meaning(text).marks if text else ():
            if not mark.restart:
                self._take_mark(mark, text, self._lines + 1)

    # What lines mean

    def _take_mark(self, mark: PhaseMark, text: str, number: int) -> None:
        if mark.restart and self._collected.crashed(self._tracker.boot):
            self._tracker.explain_restart()
        if reset := self._tracker.mark(mark, number):
            self._take_reset(reset, text, number)
        if mark.phase is Phase.LOGIN:
            self._collected.settle(signatures.LOGIN)

    def _take_reset(self, reset: Reset, text: str, number: int) -> None:
        begun = reset.stage in ("kernel", "userspace", "uboot_handover")
        finding = Finding(
            category=RESET_LOOP,
            severity="fatal",
            blame="kernel" if begun else "bootloader",
            stage=reset.stage,
            line=text,
            line_number=number,
            fingerprint=_fingerprint(RESET_LOOP, reset.stage),
            details={"loops": reset.boots},
            lines=(text,),
        )
        # of all boots of this log: the loop is one fault
        key = (None, RESET_LOOP, reset.stage)
        if known := self._collected.get(key):
            known.finding = attrs.evolve(known.finding, details=finding.details)
            known.boot = self._tracker.boot - 1
        else:
            self._collected.add(key, Seen(finding, self._tracker.boot - 1, weight=21))

    def _take_event(self, name: str) -> None:
        self.facts.events.add(name)
        if name == "reset_on_purpose" and not self._attended:
            self._tracker.explain_restart()
        self._collected.settle(name)

    def _release_held(self, report: Report | None) -> None:
        """Make findings of signatures, except of lines that a report has told already."""
        held, self._held = self._held, []
        for signature, text, number in held:
            if report and signature.category == report.kind and report.covers(number):
                continue
            self._take_signature(signature, text, number)

    def _take_signature(self, signature: Signature, text: str, number: int) -> None:
        details = signature.details(text)
        for name in signature.facts:
            details = self.facts.values.get(name, {}) | details
        named = details.pop("driver", None) or signature.driver
        driver = drivers.load().of_module(named) if named else None
        driver = driver or self._driver_of(details.get("device"))
        key = (
            self._tracker.boot,
            signature.category,
            *(driver if name == "driver" else details.get(name) for name in signature.key),
        )
        if known := self._collected.get(key):
            self._collected.again(key, known)
            if len(known.finding.lines) < judge.EVIDENCE_LINES:
                known.finding = _told_again(known.finding, text, driver, details)
            return
        stage = self._stage(signature.stage)
        finding = Finding(
            category=signature.category,
            severity=signature.severity,
            blame=signature.blame,
            stage=stage,
            line=text,
            line_number=number,
            fingerprint=_fingerprint(signature.category, driver, _normal(text)),
            driver=driver,
            details=details,
            lines=(text,),
        )
        seen = Seen(finding, self._tracker.boot, signature.until, signature.leads_to)
        seen.weight, seen.vote, seen.hint = signature.weight, signature.vote, signature.hint
        self._collected.add(key, seen)

    def _driver_of(self, device: str | None) -> str | None:
        for pattern, driver in self._signatures.device_drivers.items():
            if device and re.search(pattern, device):
                return driver
        return None

    def _stage(self, allowed: tuple[str, ...]) -> str | None:
        now = self._tracker.stage
        return now if now in allowed or not allowed else allowed[0]

    def _take_report(self, report: Report) -> None:
        self._release_held(report)
        rule = self._rule(report)
        boot = self._tracker.boot
        stage = rule.stage or self._tracker.stage
        if stage is None or (stage != "userspace" and not self._tracker.kernel_began):
            # no sign of a boot before it: a running system, unless the kernel's first thread speaks
            first = (report.process or "").startswith("swapper") and report.pid == 1
            stage = "kernel" if first else "userspace"
        finding = Finding(
            category=rule.category or report.kind,
            severity=rule.severity,
            blame=rule.blame,
            stage=stage,
            line=report.line,
            line_number=report.line_number,
            fingerprint=report.fingerprint,
            driver=report.driver,
            function=report.function,
            trace=report.trace,
            details=report.details,
            lines=report.lines,
        )
        key = self._provisional.get(report.line_number) or self._report_key(report)
        seen = Seen(finding, boot, weight=rule.weight, vote=rule.vote)
        if known := self._collected.get(key):
            if known.finding.line_number == report.line_number:
                known.finding = finding
            else:
                known.count += 1
            return
        self._provisional = {report.line_number: key, **self._provisional}
        if len(self._provisional) > _OPEN_REPORTS:
            self._provisional.popitem()
        self._collected.add(key, seen)

    def _report_key(self, report: Report) -> tuple[object, ...]:
        """What a signature knows as well has that signature's key: both tell the same."""
        boot = self._tracker.boot
        for signature in self._signatures.signatures:
            if signature.category == report.kind:
                return (boot, report.kind, *(report.details.get(name) for name in signature.key))
        return (boot, "report", report.fingerprint)

    def _rule(self, report: Report) -> ReportRule:
        return next(
            rule
            for rule in self._signatures.reports
            if rule.kind in (report.kind, "any") and re.search(rule.message, report.message)
        )


@functools.cache
def categories() -> frozenset[str]:
    """Categories that a finding can have."""
    known = signatures.load()
    named = {rule.category for rule in known.reports if rule.category}
    of_lines = {signature.category for signature in known.signatures}
    return frozenset({RESET_LOOP, traffic.NO_TRAFFIC, *splat.KINDS, *named, *of_lines})


def _told_again(
    finding: Finding, text: str, driver: str | None, details: Mapping[str, str]
) -> Finding:
    """A finding with one more line; the first of several is the one that the line tells."""
    return attrs.evolve(
        finding,
        details={**details, **finding.details},
        lines=(*finding.lines, text),
        driver=finding.driver or driver,
    )


def _text(line: bytes) -> str:
    return without_stamps(line.decode(errors="replace"))


def _normal(text: str) -> str:
    """A line without stamps and numbers, which differ from time to time."""
    return _NUMBER.sub("#", re.sub(r"^(?:<\d+>)?(?:\[[^\]]*\]\s*)*", "", text))


def _fingerprint(*parts: str | None) -> str:
    text = "\0".join(part or "" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
