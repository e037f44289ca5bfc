"""The signatures of console lines, compiled for scanning. Pure but for the data file.

Scanning has two steps, because logs are large and hardly any line matters: one RE2 automaton finds
the lines in which some pattern occurs, and only there RE2's set tells which ones.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any, get_args

import attrs
import re2
import yaml

from hil.console.model import Blame, Phase, Severity, Vote
from hil.errors import ConfigError, suggestion

NAME = "signatures.yaml"
# A pending warning with this instead of an event's name is settled by nothing that comes later.
END = "end"
# and this is the phase of that name.
LOGIN = "login"

# Lines with which a report of the kernel may begin; splat.py decides.
REPORT_WORDS = (
    r"\[ cut here \]|WARNING: |Kernel panic|BUG: |BUG! |kernel BUG|Oops|Internal error|"
    r"[Uu]nable to handle|KASAN: |KFENCE|UBSAN: |INFO: |rcu: |watchdog: |SError|"
    r"general protection|refcount_t: |list_(?:add|del) corruption|blocked for more than|"
    r"detected stall|self-detected|soft lockup|hard LOCKUP|Out of memory|oom-killer|"
    r"[Bb]ad page|possible circular|inconsistent lock|Call [Tt]race:|unreferenced object|"
    r"divide error|invalid opcode|undefined instruction|stack-protector|double fault|"
    r"Unhandled fault|Bad mode|NETDEV WATCHDOG|kernel paging request|lockdep|workqueue lockup"
)
# While the boot loader still speaks, the kernel's first word is any line with its time stamp.
KERNEL_STAMP = re.compile(r"^\[ *\d+\.\d{6}\]")
# No pattern asks for the digits of a stamp, so lines that differ only there are one to remember.
_ANY_STAMP = "[    0.000000]"
REMEMBERED_LINES = 4096
_NAMED = re.compile(r"\(\?P<\w+>")
_LINE_BEGIN = re.compile(r"(?<![\[\\])\^")
# Lines that traffic.py follows.
TRAFFIC_BEGINS = r"\(ifindex \d+; |xdp-bench "
TRAFFIC_WORDS = rf" rx/s|{TRAFFIC_BEGINS}|Link is |^\^C|^Totals:|^  Packets received"


class Reader(enum.Enum):
    """Who else wants to see a line."""

    REPORT = enum.auto()
    TRAFFIC = enum.auto()


REPORT, TRAFFIC = Reader
# early, begun, traffic
ScannerKey = tuple[bool, bool, bool]


@attrs.frozen
class PhaseMark:
    """A line that shows how far the boot is; a banner (`restart`) begins one."""

    phase: Phase
    pattern: str
    restart: bool = False

    @property
    def steps_back(self) -> bool:
        """Whether it may come when user space runs: an initramfs sees to network and root."""
        return self.phase in (Phase.NETWORK, Phase.NFS)


@attrs.frozen
class Signature:
    """One kind of bad line; the keys are explained in the data file."""

    category: str
    severity: Severity
    blame: Blame
    weight: int
    pattern: str
    stage: tuple[str, ...] = ()
    vote: Vote | None = None
    until: str | None = None
    leads_to: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    driver: str | None = None
    facts: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    hint: str | None = None

    @property
    def late(self) -> bool:
        """Whether it may come when user space runs already."""
        return not self.stage or "userspace" in self.stage

    @functools.cached_property
    def _compiled(self) -> tuple[re.Pattern[str], ...]:
        patterns = (re.compile(pattern) for pattern in (self.pattern, *self.fields))
        return tuple(pattern for pattern in patterns if pattern.groups)

    def details(self, text: str) -> dict[str, str]:
        """Named groups of pattern and fields in a line; a name's digits at its end are dropped."""
        found: dict[str, str] = {}
        for pattern in self._compiled:
            if match := pattern.search(text):
                for name, value in match.groupdict().items():
                    if value is not None:
                        found.setdefault(name.rstrip("0123456789"), value.strip())
        return found


@attrs.frozen
class Fact:
    """A line whose named groups say something that later findings refer to."""

    name: str
    pattern: str


@attrs.frozen
class ReportRule:
    """What a report of the kernel of this kind, with this message, counts for."""

    kind: str
    severity: Severity
    weight: int
    message: str = ""
    category: str | None = None
    blame: Blame = "kernel"
    vote: Vote | None = None
    stage: str | None = None


@attrs.frozen
class Meaning:
    """All that a line can mean; `signature` is the most telling of those that match."""

    marks: tuple[PhaseMark, ...] = ()
    events: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    signature: Signature | None = None
    readers: tuple[Reader, ...] = ()


@attrs.frozen
class Signatures:
    """All that the data file holds, and the automata made of it."""

    phases: tuple[PhaseMark, ...]
    events: Mapping[str, str]
    facts: Mapping[str, str]
    signatures: tuple[Signature, ...]
    reports: tuple[ReportRule, ...]
    device_drivers: Mapping[str, str]
    _scanners: dict[ScannerKey, Any] = attrs.field(init=False, eq=False, repr=False, factory=dict)
    _set: Any = attrs.field(init=False, eq=False, repr=False)
    _meanings: tuple[tuple[str, Any], ...] = attrs.field(init=False, eq=False, repr=False)
    _remembered: Any = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        meanings: list[tuple[str, Any]] = [(mark.pattern, mark) for mark in self.phases]
        meanings += [(pattern, name) for name, pattern in self.events.items()]
        meanings += [(signature.pattern, signature) for signature in self.signatures]
        meanings += [(pattern, Fact(name, pattern)) for name, pattern in self.facts.items()]
        meanings += [(REPORT_WORDS, REPORT), (TRAFFIC_WORDS, TRAFFIC)]
        options = _options()
        # a set compiles what it was given, so its options have to outlive it
        lines = re2.Set.SearchSet(options)
        for pattern, _ in meanings:
            lines.Add(pattern)
        lines.Compile()
        object.__setattr__(self, "_set", lines)
        object.__setattr__(self, "_meanings", tuple(meanings))
        remembered = functools.lru_cache(REMEMBERED_LINES)(self._look_up)
        object.__setattr__(self, "_remembered", remembered)

    def scanner(self, *, early: bool, begun: bool, traffic: bool) -> Any:
        """Automaton that finds places in lines of bytes at which to look.

        early    the boot loader speaks, and a kernel's line is news
        begun    user space runs: how it came there is none any more
        traffic  a measurement is being followed
        """
        key = (early, begun, traffic)
        if key not in self._scanners:
            words = [pattern for pattern, meaning in self._meanings if self._matters(meaning, key)]
            words.append(TRAFFIC_WORDS if traffic else TRAFFIC_BEGINS)
            self._scanners[key] = _scanner([*words, KERNEL_STAMP.pattern] if early else words)
        return self._scanners[key]

    def _matters(self, meaning: Any, key: ScannerKey) -> bool:
        _, begun, _ = key
        if meaning is TRAFFIC:
            return False
        if not begun:
            return True
        if isinstance(meaning, PhaseMark):
            return meaning.restart or meaning.phase.rank > Phase.INIT.rank or meaning.steps_back
        if isinstance(meaning, Fact):
            return any(meaning.name in one.facts for one in self.signatures if one.late)
        if isinstance(meaning, str):
            waiting = [one for one in self.signatures if one.until == meaning]
            return not waiting or any(one.late for one in waiting)
        return True

    def meaning(self, text: str) -> Meaning:
        """What a clean line means."""
        return self._remembered(KERNEL_STAMP.sub(_ANY_STAMP, text))  # type: ignore[no-any-return]

    def _look_up(self, text: str) -> Meaning:
        found = [self._meanings[index][1] for index in sorted(self._set.Match(text) or ())]

        def of(kind: type) -> tuple[Any, ...]:
            return tuple(one for one in found if isinstance(one, kind))

        # others are more general relatives
        signature = max(of(Signature), key=lambda one: one.weight, default=None)
        return Meaning(of(PhaseMark), of(str), of(Fact), signature, of(Reader))


def _options() -> Any:
    options = re2.Options()
    options.never_capture = True
    options.one_line = False
    options.max_mem = 256 << 20
    return options


def _scanner(patterns: Iterable[str]) -> Any:
    """An automaton that finds places where one of the patterns occurs in lines of bytes.

    Lines still have their stamps here, so `^` is dropped: the set knows better. Two things would
    cost RE2 its fast path: asking for the whole line, as it has to go back to the line's beginning,
    and groups that capture.
    """
    options = _options()
    options.encoding = re2.Options.Encoding.LATIN1
    anywhere = "|".join(
        f"(?:{_LINE_BEGIN.sub('', _NAMED.sub('(?:', pattern))})" for pattern in patterns
    )
    return re2.compile(f"(?m){anywhere}".encode("latin-1"), options)


@functools.cache
def load() -> Signatures:
    """The shipped signatures. ConfigError names entry and key of what is wrong in the file."""
    text = resources.files("hil.console").joinpath(NAME).read_text(encoding="utf-8")
    return parse(text, NAME)


def parse(text: str, source: str) -> Signatures:
    """Signatures from YAML text; `source` is what messages call the file."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: {' '.join(str(error).split())}") from error
    problems: list[str] = []

    def entries(section: str, make: Any) -> tuple[Any, ...]:
        made = []
        for index, entry in enumerate(data[section]):
            try:
                made.append(make(entry))
            except (TypeError, ValueError, re.error) as error:
                problems.append(f"{section}[{index}]: {error}")
        return tuple(made)

    phases = entries("phases", lambda e: PhaseMark(**{**e, "phase": Phase(e["phase"])}))
    signatures = entries("signatures", _signature)
    reports = entries("reports", lambda e: ReportRule(**e))
    events = data["events"]
    for signature in signatures:
        if signature.until not in (None, END, LOGIN, *events):
            problems.append(
                f"signatures: {signature.category}: until: no event {signature.until!r}"
                + suggestion(signature.until, events)
            )
        for name in signature.facts:
            if name not in data["facts"]:
                problems.append(
                    f"signatures: {signature.category}: facts: no fact {name!r}"
                    + suggestion(name, data["facts"])
                )
    if problems:
        raise ConfigError("\n".join(f"{source}: {problem}" for problem in problems))
    return Signatures(phases, events, data["facts"], signatures, reports, data["device_drivers"])


def _signature(entry: dict[str, Any]) -> Signature:
    lists = ("stage", "leads_to", "key", "fields", "facts", "examples")
    values: dict[str, Any] = {k: tuple(v) if k in lists else v for k, v in entry.items()}
    made = Signature(**values)
    for pattern in (made.pattern, *made.fields):
        re.compile(pattern)
    for name, value, known in (
        ("severity", made.severity, get_args(Severity)),
        ("blame", made.blame, get_args(Blame)),
    ):
        if value not in known:
            raise ValueError(f"{made.category}: {name}: {value!r}; there are {', '.join(known)}")
    return made
