"""Kernel reports of several processors and versions, whole, interleaved, cut and renumbered."""

from __future__ import annotations

import random
import re

import pytest

from hil.console.classify import Classifier
from hil.console.model import Verdict

from .reports import ARM64_NULL, REPORTS, SYSRQ_PANIC, X86_NULL

NAMES = sorted(REPORTS)
STRANGERS = [
    "mmc1: new high speed SDHC card at address aaaa",
    "systemd[1]: Started Session 3 of User root.",
    "random: crng init done",
]


def classify(text: str) -> Verdict:
    classifier = Classifier()
    classifier.feed(text.encode())
    return classifier.verdict()


@pytest.mark.parametrize("name", NAMES)
def test_report_is_understood(name: str) -> None:
    text, kind, driver, function, line = REPORTS[name]
    verdict = classify(text)
    assert (verdict.category, verdict.driver, verdict.function) == (kind, driver, function)
    assert line in str(verdict.first_bad_line)
    assert verdict.verdict == "bad" and verdict.blame == "kernel"
    assert len(verdict.findings) == 1, "the panic that follows is no fault of its own"


@pytest.mark.parametrize("name", NAMES)
def test_lines_of_others_between_change_nothing(name: str) -> None:
    text, _, driver, function, _ = REPORTS[name]
    lines = text.splitlines()
    mixed = []
    for index, line in enumerate(lines):
        mixed.append(line)
        if index > 1:
            stamp = line[: line.index("]") + 1]
            mixed.append(f"{stamp} {STRANGERS[index % len(STRANGERS)]}")
    verdict, alone = classify("\n".join(mixed) + "\n"), classify(text)
    assert (verdict.driver, verdict.function) == (driver, function)
    assert verdict.fingerprint == alone.fingerprint
    assert not any("crng" in line for line in verdict.findings[0].lines)


@pytest.mark.parametrize("name", NAMES)
def test_fingerprint_is_the_same_at_other_addresses_and_times(name: str) -> None:
    chance = random.Random(name)

    def other(match: re.Match[str]) -> str:
        return "".join(chance.choice("123456789abcdef") for _ in match[0])

    def another_run(text: str) -> str:
        text = re.sub(r"\b(?:ffff|c0|e08)[0-9a-f]{4,12}\b", other, text)
        text = re.sub(r"(?<=\+0x)[0-9a-f]+", other, text)
        text = re.sub(r"\[ *(\d+)\.", lambda m: f"[{int(m[1]) + 977:5}.", text)
        text = re.sub(r"\bPID: \d+", "PID: 77", text)
        return re.sub(r"CPU: \d", "CPU: 7", text)

    text = REPORTS[name][0]
    assert another_run(text) != text
    assert classify(another_run(text)).fingerprint == classify(text).fingerprint


def test_different_crashes_have_different_fingerprints() -> None:
    prints = {classify(REPORTS[name][0]).fingerprint for name in NAMES}
    assert len(prints) == len(NAMES)


@pytest.mark.parametrize("prefix", ["<4>", "kern  :warn  : ", "Nov 30 12:00:01 am64 kernel: "])
@pytest.mark.parametrize("name", NAMES)
def test_log_prefixes_change_nothing(name: str, prefix: str) -> None:
    text, kind, driver, function, _ = REPORTS[name]
    verdict = classify("".join(f"{prefix}{line}\n" for line in text.splitlines()))
    assert (verdict.category, verdict.driver, verdict.function) == (kind, driver, function)
    assert verdict.fingerprint == classify(text).fingerprint


def with_caller(text: str, caller: str) -> list[str]:
    return [re.sub(r"^(\[ *[\d.]+\])", rf"\1[{caller:>6}]", line) for line in text.splitlines()]


def test_two_processors_that_report_at_once() -> None:
    one, two = with_caller(X86_NULL, "C3"), with_caller(REPORTS["lockdep"][0], "T733")
    two = [re.sub(r"^\[ *\d+", "[   17", line) for line in two]
    mixed = [line for pair in zip(one, two, strict=False) for line in pair]
    mixed += one[len(two) :] + two[len(one) :]
    found = {(f.category, f.driver, f.function) for f in classify("\n".join(mixed)).findings}
    assert found == {
        ("oops", "igb", "igb_clean_rx_irq_zc"),
        ("lockdep", "virtio_net", "virtnet_open"),
    }


def test_one_crash_twice_is_one_finding_with_a_count() -> None:
    later = re.sub(r"\[   42", "[  142", ARM64_NULL.split("[   42.100026]")[0])
    verdict = classify(ARM64_NULL.split("[   42.100026]")[0] + later)
    assert [f.details.get("count") for f in verdict.findings] == [2]


def test_a_report_that_breaks_off_is_told_all_the_same() -> None:
    classifier = Classifier()
    found = classifier.feed(SYSRQ_PANIC.split("[   25.000004]")[0].encode())
    found += classifier.quiet()
    assert [f.category for f in found] == ["panic"]
    classifier.feed(SYSRQ_PANIC.split("[   25.000004]")[1].encode())
    (finding,) = classifier.verdict().findings
    assert finding.function == "sysrq_handle_crash"


def test_a_warning_is_no_panic_and_the_boot_goes_on() -> None:
    text = REPORTS["warn_7"][0] + "[   20.0] done\nDebian GNU/Linux 13 board ttyS2\n\nboard login: "
    verdict = classify(text)
    assert (verdict.category, verdict.verdict) == ("warn", "bad")
