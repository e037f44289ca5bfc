"""How a verdict is shown on a terminal, and the exit status that it means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hil.console.model import Finding, Verdict

_STATUS = {"good": 0, "bad": 1, "no_vote": 125}
# Of several: a bad one decides, and where there is none, one that tells nothing.
_ORDER = ("bad", "no_vote", "good")
# So many lines prove a finding on a terminal; a report has all.
_EVIDENCE_LINES = 20


def exit_status(verdicts: Iterable[Verdict]) -> int:
    """0 all good, 1 some bad, 125 some that carry no vote."""
    seen = {verdict.verdict for verdict in verdicts}
    return next((_STATUS[one] for one in _ORDER if one in seen), 0)


def lines_of(verdict: Verdict) -> Iterator[str]:
    """The verdict, whose fault it is, and the lines that prove it."""
    vote = verdict.verdict.replace("_", " ")
    stage = f" in {verdict.stage}" if verdict.stage else ""
    yield f"{vote}: {verdict.category}{stage}"
    told = {
        "blame": verdict.blame,
        "driver": verdict.driver,
        "function": verdict.function,
        "fingerprint": verdict.fingerprint,
        "first bad line": verdict.first_bad_line,
    }
    # warnings are findings, which follow
    details = {name: value for name, value in verdict.details.items() if name != "warnings"}
    told |= {name.replace("_", " "): value for name, value in details.items()}
    for name, value in told.items():
        if value is not None and value != "":
            yield f"  {name + ':':<15} {_text(value)}"
    for finding in verdict.findings:
        yield from proof(finding)


def _text(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def proof(finding: Finding) -> Iterator[str]:
    """A finding and the lines that prove it."""
    yield f"  line {finding.line_number}, {finding.severity}: {finding.category}"
    for line in finding.lines[:_EVIDENCE_LINES]:
        yield f"    | {line}"
    if len(finding.lines) > _EVIDENCE_LINES:
        yield f"    | ... {len(finding.lines) - _EVIDENCE_LINES} more"
