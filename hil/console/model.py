"""What the console tells, as values: phases of a boot, findings and the verdict. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Literal

import attrs

Severity = Literal["fatal", "error", "warning"]
Blame = Literal["lab", "bootloader", "kernel", "userspace", "unknown"]
Vote = Literal["good", "bad", "no_vote"]


class Phase(enum.Enum):
    """Phases in the order in which a boot passes them; the value is the stage shown to users.

    `rank` is the position in a boot, from 0. A board skips what it does not have (TF-A's messages,
    network autoconfiguration).
    """

    POWER = "power"
    SPL = "spl"
    FIRMWARE = "firmware"  # TF-A and OP-TEE
    UBOOT = "uboot"
    TFTP = "tftp"
    HANDOVER = "uboot_handover"  # after "Starting kernel", before the kernel's first line
    KERNEL = "kernel"
    NETWORK = "network"  # the kernel's own IP autoconfiguration
    NFS = "nfs"
    INIT = "init"
    LOGIN = "login"
    SSH = "ssh"

    def __init__(self, _: str) -> None:
        self.rank = len(type(self).__members__)

    @property
    def stage(self) -> str:
        """The coarser name of a verdict: spl, uboot, uboot_handover, kernel or userspace."""
        return _STAGES.get(self, self.value)


_STAGES = {
    Phase.TFTP: "uboot",
    Phase.NETWORK: "kernel",
    Phase.NFS: "kernel",
    Phase.INIT: "userspace",
    Phase.LOGIN: "userspace",
    Phase.SSH: "userspace",
}


@attrs.frozen
class Finding:
    """One thing that went wrong, with the lines that prove it.

    severity    "fatal": the board does not go on from here; "error": it goes on, but a test that
                ran meanwhile has failed; "warning": worth knowing, fails nothing
    line        first bad line as it stands in the log, without what a terminal or CI wrote before
                it; None where only something missing tells
    line_number counted from 1 in what the classifier was fed; 0 without a line
    function    first function of the call trace that is not a core helper
    trace       functions of the call trace, innermost first, without guessed frames
    fingerprint the same for the same fault at other addresses, times, CPUs and counts
    details     what else the lines say, by name (interface, queue, errno, task ...)
    lines       the evidence, at most a screenful
    """

    category: str
    severity: Severity
    blame: Blame
    stage: str | None
    line: str | None
    line_number: int
    fingerprint: str
    driver: str | None = None
    function: str | None = None
    trace: tuple[str, ...] = ()
    details: Mapping[str, Any] = attrs.field(factory=dict)
    lines: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Category, driver and function, and the line: one line for people."""
        where = ", ".join(part for part in (self.driver, self.function) if part)
        return f"{self.category}{f' ({where})' if where else ''}: {self.line or 'no line'}"


@attrs.frozen
class Verdict:
    """What one log says as a whole; `findings` are in the order of their lines."""

    verdict: Vote
    stage: str | None
    category: str
    blame: Blame | None
    first_bad_line: str | None
    driver: str | None
    function: str | None
    fingerprint: str | None
    findings: tuple[Finding, ...] = ()
    details: Mapping[str, Any] = attrs.field(factory=dict)
