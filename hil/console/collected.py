"""Findings of one log as they gather: told apart, settled, and never too many. Pure."""

from __future__ import annotations

import attrs

from hil.console.model import Finding

# A board that loops all night tells the same again and again: from so many findings on, those of
# other boots count as the same.
MANY = 500
# A finding of this weight is a crash: what restarts after it is no riddle.
CRASH_WEIGHT = 30


@attrs.define
class Seen:
    """A finding and what became of it; `boot` tells the boots of one log apart."""

    finding: Finding
    boot: int
    until: str | None = None
    leads_to: tuple[str, ...] = ()
    weight: int = 0
    vote: str | None = None
    hint: str | None = None
    cleared: bool = False
    count: int = 1

    @property
    def counts(self) -> bool:
        """Whether the finding makes the log a failure."""
        return not self.cleared and (self.finding.severity != "warning" or self.until is not None)

    @property
    def ends_boot(self) -> bool:
        """Whether a restart after this finding is only what follows from it."""
        return self.finding.severity == "fatal" and self.weight >= CRASH_WEIGHT


class Collected:
    """Findings by key: (boot, category, what tells two of one category apart ...).

    `fatal` is the first from which nothing recovers.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[object, ...], Seen] = {}
        self._waiting: dict[tuple[object, ...], Seen] = {}
        self._new: list[Seen] = []
        self._crashed: int | None = None
        self.fatal: Finding | None = None

    def all(self) -> list[Seen]:
        """All, in the order in which they came; the details say how often one came again."""
        for seen in self._seen.values():
            if seen.count > 1:
                details = {**seen.finding.details, "count": seen.count}
                seen.finding = attrs.evolve(seen.finding, details=details)
        return list(self._seen.values())

    def get(self, key: tuple[object, ...]) -> Seen | None:
        return self._seen.get(self._place(key))

    def add(self, key: tuple[object, ...], seen: Seen) -> None:
        """Keep a new one, unless there are far too many."""
        if len(self._seen) >= 2 * MANY:
            return
        key = self._place(key)
        self._seen[key] = seen
        self._new.append(seen)
        if seen.until is not None:
            self._waiting[key] = seen
        if seen.finding.severity == "fatal" and seen.until is None:
            self.fatal = self.fatal or seen.finding
        if seen.ends_boot:
            self._crashed = seen.boot

    def again(self, key: tuple[object, ...], seen: Seen) -> None:
        """It happened once more: what settled it does so no longer."""
        seen.count += 1
        seen.cleared = False
        if seen.until is not None:
            self._waiting[self._place(key)] = seen

    def settle(self, event: str) -> None:
        """What waited for this event is no failure."""
        for key, seen in list(self._waiting.items()):
            if seen.until == event:
                seen.cleared = True
                del self._waiting[key]

    def crashed(self, boot: int) -> bool:
        """Whether a boot has ended in a crash."""
        return self._crashed == boot

    def take_new(self) -> list[Finding]:
        """Findings that were added since the last call."""
        new, self._new = self._new, []
        return [seen.finding for seen in new]

    def _place(self, key: tuple[object, ...]) -> tuple[object, ...]:
        full = len(self._seen) >= MANY and key not in self._seen
        return (None, *key[1:]) if full else key
