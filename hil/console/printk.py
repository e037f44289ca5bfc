"""The parts of a kernel line: its prefixes, and the frames and registers of reports. Pure."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from hil.console.drivers import Frame, plain

_PREFIX = re.compile(
    r"^(?:(?:\w{3} +\d+ )?(?:\d\d:\d\d:\d\d )?[\w.-]+ kernel: ?|kern\s*:\s*\w+\s*:\s*)?"  # syslog
    r"(?:<\d+>)?\s*"
    r"(?:\[ *(?P<stamp>\d+\.\d+)\]|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}\])?"
    r"(?:\[ *(?P<caller>[TC]\d+)\])?"
)
_FUNCTION = r"(?P<function>[A-Za-z_.$][\w.$]*)\+0x[0-9a-f]+(?:/0x[0-9a-f]+)?"
_MODULE = r"(?: ?\[(?P<module>[\w-]+)(?: [0-9a-f]+)?\])?"
# ` func+0x1/0x2 [module]`, `[<ffff>] func+..`, ` ? func`, `(func) from [<c0>] (func2+..)`, `func from func2+..`
_FRAME = re.compile(
    r"^\s*(?:#\d+:? )?(?:\[<[^>]*>\]\s*)?(?P<guess>\? ?)?"
    r"(?:\(?(?P<inner>[\w.$]+)\)? (?:from|\([^)]*\) from) (?:\[<[^>]*>\]\s*)?)?"
    rf"\(?{_FUNCTION}\)?{_MODULE}(?: \([A-Z]+\))?\s*$"
)
_PC = re.compile(
    rf"(?:^|\s)(?:pc : |PC is at |RIP: (?:[0-9a-f]{{4}}:)?(?:\[<[^>]*>\]\s*)*|epc : ){_FUNCTION}{_MODULE}"
)
_AT = re.compile(
    r"WARNING: (?:CPU: \d+ PID: \d+ )?(?:at )?(?:\S+:\d+ )?(?:at )?"
    rf"{_FUNCTION}{_MODULE}(?:, CPU#\d+: (?P<task>.+)/(?P<pid>\d+))?"
)
_TASK = (
    re.compile(
        r"PID: (?P<pid>\d+)[ ,].*?[Cc]omm: (?P<task>.+?)(?: (?:Not tainted|Tainted|Kdump)|$)"
    ),
    re.compile(r"task:(?P<task>\S+) +state:\S.*pid: *(?P<pid>\d+)"),
    re.compile(r"Process (?P<task>.+?) \(pid: (?P<pid>\d+)"),
    re.compile(r"by task (?P<task>\S+)/(?P<pid>\d+)"),
    re.compile(r"soft lockup - CPU#\d+ stuck for \d+s! \[(?P<task>.+):(?P<pid>\d+)\]"),
)
# What reports consist of besides frames; the order does not matter.
_BODY = re.compile(
    r"^\s*(?:CPU: ?\d|Hardware name|Modules linked in|Workqueue: |pstate: |pc : |lr : |sp : |x\d+ ?: |"
    r"(?:PC|LR) is at|pc : \[|sp : |r\d+ ?: |Flags: |Control: |Register r\d+|Process |Stack: |Backtrace|"
    r"RIP: |RSP: |EIP: |R[A-Z0-9]{2}: |E[A-Z]{2}: |CR\d: |[CDEFG]S: |DR\d: |PKRU|FS: |ORIG_RAX|Code: |"
    r"[Cc]all [Tt]race|</?(?:TASK|IRQ|NMI|SOFTIRQ|#?[A-Z]+)>|Mem abort info|ESR = |EC = |SET = |EA = |FSC = |"
    r"Data abort info|ISV = |CM = |GCS = |user pgtable|swapper pgtable|\[[0-9a-f]+\] ?\*?pgd|PGD |Oops|"
    r"irq event stamp|(?:hard|soft)irqs last|---\[ end|-{12}|=====|Allocated by|Freed by|The buggy|Memory state|"
    r"page:|flags: |raw: |[>^ ]?[0-9a-f]{8,16}: |Exception stack|task:|Task dump|rcu: |\(t=|\(detected by|"
    r"Showing all locks|stack backtrace|but task|which lock|the existing|-> #|other info|Possible unsafe|"
    r"\s*CPU0 |lock\(|\*\*\* |Kernel Offset|PHYS_OFFSET|CPU features|Memory Limit|SMP: |Rebooting in|"
    r"Not tainted|Tainted|\"echo 0|\d+ locks? held|#\d+: |last_state|Last potentially|Sending NMI|"
    r"NMI backtrace|kfence-#|Read of size|Write of size|(?:Bad )?page state|page dumped|head: |Internal error|"
    r"WARNING: |index \d+ is out|shift exponent|signed integer|load of|\s+ret_from|Call trace|dump_backtrace)"
)


# Boards repeat themselves, and so do reports: what was read once need not be read again.
remembered = functools.lru_cache(maxsize=4096)


class Line(NamedTuple):
    """A kernel line without its prefixes; `stamp_s` is the kernel's own time."""

    text: str
    body: str
    stamp_s: float | None
    caller: str | None


def split(text: str) -> Line:
    match = _PREFIX.match(text)
    assert match is not None
    stamp, caller = match.groups()
    return Line(text, text[match.end() :].rstrip(), float(stamp) if stamp else None, caller)


@remembered
def frames(body: str) -> tuple[Frame, ...]:
    """Functions that a line of a call trace names, innermost first; none of a guess's."""
    match = _FRAME.match(body)
    if match is None or match["guess"]:
        return ()
    frame = Frame(plain(match["function"]), match["module"])
    return (Frame(plain(match["inner"])), frame) if match["inner"] else (frame,)


def is_frame(body: str) -> bool:
    """Whether a line belongs to a call trace, guesses included."""
    return _FRAME.match(body) is not None


@remembered
def program_counter(body: str) -> Frame | None:
    """The function that a report says it happened in."""
    match = _PC.search(body) or _AT.search(body)
    return Frame(plain(match["function"]), match["module"]) if match else None


@remembered
def task(body: str) -> tuple[str, int] | None:
    """Name and pid of the task that a line of a report names."""
    for pattern in (*_TASK, _AT):
        match = pattern.search(body)
        if match and match["task"]:
            return match["task"], int(match["pid"])
    return None


@remembered
def is_body(body: str) -> bool:
    """Whether a line can belong to a report of the kernel."""
    return not body.strip() or is_frame(body) or _BODY.match(body) is not None
