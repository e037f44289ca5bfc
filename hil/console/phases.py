"""How long a boot may stay in a phase and how long it may be silent there. Pure.

The time comes in with the calls, as monotonic seconds; nothing here waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from hil.console.model import Phase


@attrs.frozen
class Limits:
    """Of one phase, in seconds: from its entry to the next phase, and without a byte."""

    deadline_s: float
    silence_s: float


@attrs.frozen
class Expired:
    """A limit that has passed.

    last_activity_s  when bytes last came; None when none have come since the start
    at_s             when the limit passed, which is not later than when somebody asked
    """

    phase: Phase
    kind: Literal["deadline", "silence"]
    limit_s: float
    last_activity_s: float | None
    at_s: float


class PhaseWatch:
    """Follows one boot from start() to stop(); outside of these nothing counts or expires.

    A phase without limits never expires. The time in a phase starts at its entry; silence counts
    from the entry or from the last bytes, whichever is later. A boot may come back to an earlier
    phase (SPL after the firmware on K3): its limits then start anew, its durations add up.
    """

    def __init__(self, limits: Mapping[Phase, Limits]) -> None:
        self._limits = limits
        self._phase: Phase | None = None
        self._now_s = 0.0
        self._entered_s = 0.0
        self._heard_s: float | None = None
        # of what is over; the open phase and its open silence come on top when somebody asks
        self._durations: dict[Phase, float] = {}
        self._silences: dict[Phase, float] = {}

    def start(self, now_s: float) -> None:
        """Power comes on: a new boot begins and what is known of the last one is dropped."""
        self._durations, self._silences = {}, {}
        self._phase = Phase.POWER
        self._now_s = self._entered_s = now_s
        self._heard_s = None

    def enter(self, phase: Phase, now_s: float) -> None:
        """The boot is in `phase` now; the phase in which it is already changes nothing."""
        self._tell(now_s)
        if self._phase is None or phase is self._phase:
            return
        self._durations, self._silences = self.durations(), self.silences()
        self._phase, self._entered_s = phase, self._now_s

    def activity(self, now_s: float) -> None:
        """Bytes came. A silence that was too long is over, also when nobody asked for it."""
        self._tell(now_s)
        if self._phase is not None:
            self._silences = self.silences()
            self._heard_s = self._now_s

    def stop(self) -> None:
        """The boot is over; durations and silences stay, up to the latest time that was told."""
        self._durations, self._silences = self.durations(), self.silences()
        self._phase = None

    def next_due_s(self) -> float | None:
        """When a limit passes next, unless something happens before; None when none can."""
        due = self._due()
        return due.at_s if due else None

    def expired(self, now_s: float) -> Expired | None:
        """The limit that has passed by now, of two the one that passed first."""
        self._tell(now_s)
        due = self._due()
        return due if due and self._now_s >= due.at_s else None

    def durations(self) -> dict[Phase, float]:
        """Seconds in each phase of this boot, up to the latest time that any call has told."""
        if self._phase is None:
            return dict(self._durations)
        total = self._durations.get(self._phase, 0.0) + self._now_s - self._entered_s
        return {**self._durations, self._phase: total}

    def silences(self) -> dict[Phase, float]:
        """Longest silence in each phase in seconds, the one that goes on included."""
        if self._phase is None:
            return dict(self._silences)
        longest = max(self._silences.get(self._phase, 0.0), self._now_s - self._quiet_since_s)
        return {**self._silences, self._phase: longest}

    @property
    def _quiet_since_s(self) -> float:
        if self._heard_s is None:
            return self._entered_s
        return max(self._entered_s, self._heard_s)

    def _tell(self, now_s: float) -> None:
        # who reads and who asks may have taken the time in the other order
        self._now_s = max(self._now_s, now_s)

    def _due(self) -> Expired | None:
        limits = self._limits.get(self._phase) if self._phase else None
        if self._phase is None or limits is None:
            return None
        silence = Expired(
            self._phase,
            "silence",
            limits.silence_s,
            self._heard_s,
            self._quiet_since_s + limits.silence_s,
        )
        deadline = Expired(
            self._phase,
            "deadline",
            limits.deadline_s,
            self._heard_s,
            self._entered_s + limits.deadline_s,
        )
        # of two at once, silence says more
        return deadline if deadline.at_s < silence.at_s else silence
