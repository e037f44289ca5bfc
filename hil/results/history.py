"""How long earlier boots of a board took in each phase, and the limits learned from them."""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from hil.console.model import Phase
from hil.console.phases import Limits
from hil.errors import ConfigError

# So many boots count: fewer tell nothing of the slow ones, and old ones tell of another lab.
BOOTS_NEEDED = 20
BOOTS_KEPT = 200
# A boot may take so many times what nearly all took, but not less than the floor, which is what a
# busy host or one lost packet costs, and not more than so many times the profile's value.
FACTOR = 3
FLOOR_S = 10.0
CAP = 2


@attrs.frozen
class Boot:
    """One successful boot: when it ended, and seconds for each of its phases."""

    at: datetime.datetime
    kernel: str | None
    durations: Mapping[Phase, float]
    silences: Mapping[Phase, float]


class BoardHistory:
    """The boots of one board, in a file below `directory`: `history/BOARD.jsonl`, a line for each.

    Several processes may append at once. A line that cannot be read, as a killed run leaves it, is
    passed over. ConfigError when the file as a whole cannot be read or written.
    """

    def __init__(self, directory: Path, board: str) -> None:
        self.path = directory / "history" / f"{_file_name(board)}.jsonl"

    def append(
        self,
        durations: Mapping[Phase, float],
        silences: Mapping[Phase, float],
        *,
        kernel: str | None,
    ) -> None:
        """Add a boot that succeeded and has ended now."""
        record = {
            "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            "kernel": kernel,
            "durations": _named(durations),
            "silences": _named(silences),
        }
        line = json.dumps(record).encode() + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                # one write, so that lines of several processes do not mix
                os.write(file, line if _ends_line(file) else b"\n" + line)
            finally:
                os.close(file)
        except OSError as error:
            raise self._error(error) from error

    def boots(self) -> list[Boot]:
        """The latest boots, oldest first, at most BOOTS_KEPT."""
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._error(error) from error
        read = filter(None, map(_boot, reversed(lines)))
        return list(itertools.islice(read, BOOTS_KEPT))[::-1]

    def learned(self, profile_limits: Mapping[Phase, Limits]) -> dict[Phase, Limits]:
        """The profile's limits, replaced where enough boots had the phase.

        A limit is FACTOR times the 99th percentile of these boots, within floor and cap. The
        percentile is a nearest rank, a value that was measured: of fewer than 100 boots it is the
        slowest, so that no boot that succeeded would have been cut off; of more it leaves out the
        slowest hundredth, so that one odd boot does not widen the limit for the next 200.
        """
        boots = self.boots()
        learned = {}
        for phase, limits in profile_limits.items():
            durations = [boot.durations[phase] for boot in boots if phase in boot.durations]
            silences = [boot.silences[phase] for boot in boots if phase in boot.silences]
            deadline_s = _limit(durations, limits.deadline_s)
            silence_s = _limit(silences, limits.silence_s)
            learned[phase] = Limits(deadline_s, min(silence_s, deadline_s))
        return learned

    def _error(self, error: OSError) -> ConfigError:
        return ConfigError(
            f"{self.path}: {error.strerror}; make the file and its directory readable and "
            "writable for this user, or name another directory for results"
        )


def nearest_rank(values: Iterable[float], percent: int) -> float:
    """The smallest of the values that is not less than so many per cent of them."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * percent / 100) - 1]


def _limit(observed: list[float], profile_s: float) -> float:
    if len(observed) < BOOTS_NEEDED:
        return profile_s
    return min(max(FACTOR * nearest_rank(observed, 99), FLOOR_S), CAP * profile_s)


def _ends_line(file: int) -> bool:
    """Whether what is written next begins a line; a killed writer may have left half of one."""
    size = os.fstat(file).st_size
    return size == 0 or os.pread(file, 1, size - 1) == b"\n"


def _file_name(board: str) -> str:
    """The board's name, or for a path its last part and a digest that tells equal ones apart."""
    if re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}", board):
        return board
    digest = hashlib.sha256(board.encode(errors="surrogatepass")).hexdigest()[:12]
    last = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(board).stem)[:63]
    return f"{last}-{digest}"


def _named(seconds: Mapping[Phase, float]) -> dict[str, float]:
    return {phase.value: round(value, 3) for phase, value in seconds.items()}


def _boot(line: bytes) -> Boot | None:
    """The boot of one line; None when the line is no such thing."""
    try:
        # all numbers as float: what is too large is then infinite, and no error of its own
        data = json.loads(line.decode(), parse_int=float)
        kernel = data["kernel"]
        if not (kernel is None or isinstance(kernel, str)):
            return None
        return Boot(
            at=datetime.datetime.fromisoformat(data["at"]),
            kernel=kernel,
            durations=dict(_seconds(data["durations"])),
            silences=dict(_seconds(data["silences"])),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _seconds(data: Any) -> Iterator[tuple[Phase, float]]:
    """Phases with their seconds; a phase that another version had is left out."""
    for phase in Phase:
        if phase.value in data:
            value = data[phase.value]
            if not (isinstance(value, float) and 0 <= value < math.inf):
                raise ValueError(f"{phase.value}: {value!r}")
            yield phase, value
