"""The verdict on what a log shows, and on a boot that took too long."""

from __future__ import annotations

from hil.console import judge
from hil.console.classify import Classifier
from hil.console.model import Phase, Verdict
from hil.console.phases import Expired

BOOT = """\
U-Boot 2025.01 (Jan 06 2026 - 12:00:00 +0000)
Loading Environment from Flash... *** Warning - bad CRC, using default environment
Starting kernel ...
"""
KERNEL = """\
[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x410fd034]
[    1.100000] Waiting for root device /dev/mmcblk0p2...
"""
LOGIN = """\
[    2.300000] VFS: Mounted root (ext4 filesystem) readonly on device 179:2.
am64xx-evm login: """


def verdict(text: str) -> Verdict:
    classifier = Classifier()
    classifier.feed(text.encode())
    return classifier.verdict()


def test_a_warning_that_fails_nothing_does_not_explain_silence() -> None:
    limit = Expired(Phase.HANDOVER, "silence", 8, 0, 8)
    found = judge.expired(verdict(BOOT), limit)
    assert (found.verdict, found.category) == ("bad", "kernel_silent")
    assert [one.category for one in found.findings] == ["environment_lost"]


def test_what_failed_before_explains_silence() -> None:
    limit = Expired(Phase.KERNEL, "silence", 8, 0, 8)
    found = judge.expired(verdict(BOOT + KERNEL), limit)
    assert (found.verdict, found.category) == ("bad", "root_device_missing")
    assert found.details["limit"] == "kernel: no byte for 8 s"


def test_a_root_device_that_came_is_no_failure() -> None:
    found = verdict(BOOT + KERNEL + LOGIN)
    assert (found.verdict, found.category) == ("good", "boot_ok")
