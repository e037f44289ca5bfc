"""Which test a finding belongs to, and whether it fails that test."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import attrs

from hil.console.model import Finding
from hil.results import known_issues
from hil.results.known_issues import KnownIssue

# Owner of what the console says while no test's own code runs.
BOOT = "boot"
# A test that crashed the board so often is not tried again.
CRASH_LIMIT = 2


@attrs.frozen
class Attributed:
    """A finding, the test that ran when it came, and the known issue that excuses it."""

    owner: str
    finding: Finding
    known: KnownIssue | None

    @property
    def reason(self) -> str | None:
        """Why it fails nobody; None when no issue covers it."""
        return self.known.summary if self.known else None

    @property
    def fails(self) -> bool:
        """Whether the owner has failed for it."""
        return self.known is None and self.finding.severity != "warning"


class Attribution:
    """Collects findings from any thread; one test at a time owns what comes."""

    def __init__(self, issues: Iterable[KnownIssue] = ()) -> None:
        self._issues = tuple(issues)
        self._lock = threading.Lock()
        self._owner = BOOT
        self._all: list[Attributed] = []
        # where in these the latest run of a test begins
        self._begun: dict[str, int] = {}
        self._crashed = False
        self._crashes: Counter[str] = Counter()

    def begin(self, owner: str) -> None:
        """What comes from now on belongs to this run of a test, or to the boot."""
        with self._lock:
            self._owner = owner
            self._crashed = False
            if owner != BOOT:
                self._begun[owner] = len(self._all)

    def take(self, finding: Finding) -> Attributed:
        """Add a finding to whoever owns it now."""
        with self._lock:
            known = known_issues.match(self._issues, finding)
            one = Attributed(self._owner, finding, known)
            self._all.append(one)
            fatal = one.fails and finding.severity == "fatal"
            # of several the others only follow from the first
            if fatal and not self._crashed and self._owner != BOOT:
                self._crashed = True
                self._crashes[self._owner] += 1
            return one

    def of(self, owner: str) -> list[Attributed]:
        """Findings of a test's latest run so far; of the boot, all."""
        with self._lock:
            latest = self._all[self._begun.get(owner, 0) :]
            return [one for one in latest if one.owner == owner]

    def failing(self, owner: str) -> list[Finding]:
        """Findings for which the owner has failed, as of() counts them."""
        return [one.finding for one in self.of(owner) if one.fails]

    def exhausted(self, owner: str) -> bool:
        """Whether a test has crashed the board too often to be tried again."""
        return self._crashes[owner] >= CRASH_LIMIT

    def used(self) -> list[Attributed]:
        """Findings that a known issue excused."""
        with self._lock:
            return [one for one in self._all if one.known is not None]

    def write(self, path: Path) -> None:
        """All as JSON: a list of findings with `test` and `known` (the reason, or null)."""
        with self._lock:
            data = [
                {
                    "test": one.owner,
                    "known": one.reason,
                    **attrs.asdict(one.finding),
                }
                for one in self._all
            ]
        path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
