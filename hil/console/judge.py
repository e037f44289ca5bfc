"""From findings to one verdict: the cause, whose fault it is, what a bisect counts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from hil.console.boot import BootTracker
from hil.console.collected import Seen
from hil.console.model import Blame, Finding, Phase, Verdict, Vote
from hil.console.phases import Expired

if TYPE_CHECKING:
    from hil.console.classify import Facts

EVIDENCE_LINES = 40
# A console at the wrong speed or with a dead wire shows more than this part of odd bytes.
GARBLED_SHARE = 0.1

# What it is called when the boot stops in a phase without a word, and whose fault that is.
_SILENT: dict[Phase, tuple[str, Blame]] = {
    Phase.POWER: ("power_silent", "lab"),
    Phase.SPL: ("spl_silent", "bootloader"),
    Phase.FIRMWARE: ("firmware_silent", "bootloader"),
    Phase.UBOOT: ("uboot_silent", "bootloader"),
    Phase.TFTP: ("tftp_timeout", "lab"),
    Phase.HANDOVER: ("kernel_silent", "unknown"),
    Phase.KERNEL: ("kernel_silent", "unknown"),
    Phase.NETWORK: ("kernel_silent", "unknown"),
    Phase.NFS: ("kernel_silent", "unknown"),
    Phase.INIT: ("userspace_silent", "unknown"),
    Phase.LOGIN: ("userspace_silent", "unknown"),
    Phase.SSH: ("userspace_silent", "unknown"),
}


def verdict(found: Sequence[Seen], tracker: BootTracker, facts: Facts) -> Verdict:
    """The verdict on a log that ends here."""
    found = sorted(found, key=lambda seen: seen.finding.line_number)
    failures = [seen for seen in found if seen.counts]
    findings = tuple(seen.finding for seen in found)
    if not failures:
        return _without_failure(found, tracker, facts)
    # the cause may be something that alone would fail nothing
    suspects = [seen for seen in found if seen.counts or (seen.weight > 15 and not seen.cleared)]
    by_category: dict[str, list[Seen]] = {}
    for seen in failures:
        by_category.setdefault(seen.finding.category, []).append(seen)

    def is_cause(one: Seen) -> bool:
        later = (other for name in one.leads_to for other in by_category.get(name, ()))
        return not any(_is_sign_of(one, other) for other in later)

    causes = [one for one in suspects if is_cause(one)]
    cause = max(causes or failures, key=lambda seen: seen.weight)
    signs = [seen for seen in found if _is_sign_of(seen, cause)]
    return _of(cause, signs, failures, findings, facts)


def _is_sign_of(seen: Seen, cause: Seen) -> bool:
    if cause.finding.category not in seen.leads_to:
        return False
    if cause.finding.category == "reset_loop":
        # it goes round and round: each boot has the same sign
        return True
    return seen.boot == cause.boot and seen.finding.line_number < cause.finding.line_number


def _of(
    cause: Seen,
    signs: Sequence[Seen],
    failures: Sequence[Seen],
    findings: tuple[Finding, ...],
    facts: Facts,
) -> Verdict:
    finding = cause.finding
    first = signs[0].finding if signs else finding
    driver = finding.driver or next((s.finding.driver for s in signs if s.finding.driver), None)
    details: dict[str, Any] = {}
    for one in (*signs, cause):
        details |= one.finding.details
    others = [f.finding.category for f in failures if f is not cause and f not in signs]
    if others:
        details["also"] = list(dict.fromkeys(others))
    if first is not finding:
        details["root_line"] = finding.line
    last = failures[-1].finding
    if last is not finding and last.line_number > finding.line_number:
        details["consequence"] = last.line
    if cause.hint:
        details["hint"] = cause.hint
    return Verdict(
        verdict=vote_of(cause),
        stage=finding.stage,
        category=finding.category,
        blame=finding.blame,
        first_bad_line=first.line,
        driver=driver,
        function=finding.function,
        fingerprint=finding.fingerprint,
        findings=findings,
        details=details,
    )


def vote_of(seen: Seen) -> Vote:
    """What a bisect counts: only kernel and user space can be bad, unless the signature says so."""
    if seen.vote:
        return seen.vote  # type: ignore[return-value]
    return "bad" if seen.finding.blame in ("kernel", "userspace") else "no_vote"


def _without_failure(found: Sequence[Seen], tracker: BootTracker, facts: Facts) -> Verdict:
    findings = tuple(seen.finding for seen in found)
    warnings = [f"{finding.category}: {finding.line}" for finding in findings]
    details: dict[str, Any] = {"last_line": facts.last_line}
    if warnings:
        details["warnings"] = warnings
    verdict = Verdict("no_vote", tracker.stage, "", None, None, None, None, None, findings, details)
    garbled = facts.capture_glyphs or facts.bytes_odd > GARBLED_SHARE * facts.bytes_total
    if tracker.reached_login:
        booted = {phase for phase, _ in tracker.transitions} - {Phase.LOGIN}
        category = "ansi_escape" if facts.bracketed_paste and not booted else "boot_ok"
        return attrs.evolve(verdict, verdict="good", category=category, stage="userspace")
    if garbled:
        return attrs.evolve(verdict, category="console_garbled", blame="lab")
    if tracker.phase is None:
        return _of_warnings(verdict, found)
    return silent(verdict, tracker.phase, facts)


def _of_warnings(verdict: Verdict, found: Sequence[Seen]) -> Verdict:
    """No boot and no failure: what a few lines out of a log tell at most."""
    if not found:
        return attrs.evolve(verdict, category="nothing_found")
    worst = max(found, key=lambda seen: seen.weight).finding
    return attrs.evolve(
        verdict,
        category=worst.category,
        blame=worst.blame,
        stage=worst.stage,
        first_bad_line=worst.line,
        driver=worst.driver,
        fingerprint=worst.fingerprint,
    )


def silent(verdict: Verdict, phase: Phase, facts: Facts) -> Verdict:
    """The verdict when nothing came after a phase."""
    category, blame = _SILENT[phase]
    details = dict(verdict.details)
    if phase is Phase.SPL and "trying_to_boot" not in facts.events:
        details["missing"] = "Trying to boot from"
    if phase is Phase.UBOOT and "bootcommand_ended" in facts.events:
        category = "uboot_prompt"
    if phase in (Phase.NETWORK, Phase.NFS):
        details["hint"] = "look first whether the servers (DHCP, NFS) answer; else the driver hangs"
    elif category == "kernel_silent":
        details["hint"] = "a hang, or a lost console: check console= and earlycon=, or ask by ssh"
    return attrs.evolve(verdict, stage=phase.stage, category=category, blame=blame, details=details)


def expired(verdict: Verdict, limit: Expired) -> Verdict:
    """The verdict when a phase took too long: what failed until then, or that it said nothing."""
    told = "no byte for" if limit.kind == "silence" else "not over after"
    text = f"{limit.phase.value}: {told} {limit.limit_s:g} s"
    details = {**verdict.details, "limit": text}
    if verdict.fingerprint is not None:
        return attrs.evolve(verdict, details=details)
    if limit.phase is Phase.POWER and verdict.details.get("last_line") is not None:
        # it does talk, but not as anything that boots
        return attrs.evolve(verdict, blame=verdict.blame or "unknown", details=details)
    category, blame = _SILENT[limit.phase]
    return attrs.evolve(
        verdict,
        # the boot loader has done its part: who bisects a boot that hangs wants a vote
        verdict="bad" if limit.phase.rank >= Phase.HANDOVER.rank else "no_vote",
        stage=limit.phase.stage,
        category=verdict.category if verdict.category.endswith("_prompt") else category,
        blame=blame,
        details=details,
    )
