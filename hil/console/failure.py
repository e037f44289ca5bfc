"""A verdict on a boot as the error that ends what waited for the boot."""

from __future__ import annotations

from hil.console.model import Finding, Verdict
from hil.errors import HilError, LabError, TargetError


class BootFailure(TargetError):
    """The console shows that the board failed; `verdict` says how."""

    verdict: Verdict


class LabBootFailure(LabError):
    """The console shows that the lab or the boot loader failed; `verdict` says how."""

    verdict: Verdict


def of_verdict(verdict: Verdict) -> BootFailure | LabBootFailure:
    """The error for a verdict: a vote on the kernel, or none."""
    error = (BootFailure if verdict.verdict == "bad" else LabBootFailure)(describe(verdict))
    error.verdict = verdict
    return error


def of_finding(finding: Finding) -> HilError:
    """The error for one finding that came while something ran."""
    kind = TargetError if finding.blame in ("kernel", "userspace", "unknown") else LabError
    return kind(f"{finding.summary} [{finding.fingerprint}]")


def describe(verdict: Verdict) -> str:
    """Category, stage, blame and line of a verdict as one line."""
    where = ", ".join(part for part in (verdict.driver, verdict.function) if part)
    text = verdict.category + (f" ({where})" if where else "")
    if verdict.stage:
        text += f" in {verdict.stage}"
    line = verdict.first_bad_line or verdict.details.get("last_line")
    label = "" if verdict.first_bad_line else "last line "
    text += f": {label}{line!r}" if line else ": the console said nothing"
    if file := verdict.details.get("file"):
        text += f"; file {file!r}"
    if limit := verdict.details.get("limit"):
        text += f"; {limit}"
    if hint := verdict.details.get("hint"):
        text += f"; {hint}"
    return text + (f" [{verdict.fingerprint}]" if verdict.fingerprint else "")
