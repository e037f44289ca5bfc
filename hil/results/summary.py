"""The table at the end of a run: suites against verdicts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

# Verdicts in the order of the table's columns; the last three must never be folded into the others.
VERDICTS = ("pass", "fail", "lab error", "unsupported", "skip", "not run")


def table(outcomes: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of a table of (suite, verdict) pairs, widths fitted, a total below several suites."""
    counts: dict[str, Counter[str]] = {}
    for suite, verdict in outcomes:
        counts.setdefault(suite, Counter())[verdict] += 1
    if len(counts) > 1:
        counts["all suites"] = sum(counts.values(), Counter())
    rows = [[name, *(_cell(row[verdict]) for verdict in VERDICTS)] for name, row in counts.items()]
    header = ["suite", *VERDICTS]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    return ["  ".join(_fit(row, widths)).rstrip() for row in [header, *rows]]


def _cell(count: int) -> str:
    return str(count) if count else "-"


def _fit(row: list[str], widths: list[int]) -> Iterable[str]:
    for column, (text, width) in enumerate(zip(row, widths, strict=True)):
        yield text.ljust(width) if column == 0 else text.rjust(width)
