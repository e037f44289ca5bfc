"""Known issues: findings that an environment expects until a date. Pure.

An environment lists them under `options: known_issues:`; each entry needs a reason and a date on
which it ends, so that none is forgotten.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from hil.console.classify import categories
from hil.console.model import Finding
from hil.errors import ConfigError, suggestion

KEY = "options.known_issues"
_FINGERPRINT = re.compile(r"[0-9a-f]{12}")
_CATEGORY = re.compile(r"[a-z0-9_]+")
_DRIVER = re.compile(r"[!-~]+")


@attrs.frozen
class KnownIssue:
    """Exactly one of `fingerprint` and `signature` is set; `driver` narrows a signature.

    `signature` is a finding's category. `expires` is the last day on which the entry holds.
    """

    fingerprint: str | None
    signature: str | None
    driver: str | None
    reason: str
    expires: datetime.date

    @property
    def summary(self) -> str:
        """What the entry is about: one line for people."""
        about = self.fingerprint or self.signature
        return f"{about}{f' ({self.driver})' if self.driver else ''}: {self.reason}"

    def covers(self, finding: Finding) -> bool:
        """Whether the finding is this issue."""
        if self.fingerprint is not None:
            return finding.fingerprint == self.fingerprint
        return finding.category == self.signature and self.driver in (None, finding.driver)


_KEYS = tuple(field.name for field in attrs.fields(KnownIssue))


def match(issues: Iterable[KnownIssue], finding: Finding) -> KnownIssue | None:
    """The first of the issues that covers the finding."""
    return next((issue for issue in issues if issue.covers(finding)), None)


def parse(data: Any, source: str, today: datetime.date) -> tuple[KnownIssue, ...]:
    """The issues of an environment's list; `source` is the file's name for messages.

    None, an empty key of the file, is an empty list. ConfigError has one line for each problem:
    "file: options.known_issues[0].key: what is wrong". An entry whose date has passed is a problem;
    it holds to the end of its day.
    """
    if data is None:
        return ()
    if not isinstance(data, list):
        raise ConfigError(f"{source}: {KEY}: must be a list of issues, is {_show(data)}")
    issues: list[KnownIssue] = []
    problems: list[str] = []
    for index, entry in enumerate(data):
        found = list(_problems(entry))
        if not found:
            issues.append(_issue(entry))
            found = list(_expiry_problems(issues[-1], today))
        problems += [f"{source}: {KEY}[{index}]{text}" for text in found]
    if problems:
        raise ConfigError("\n".join(problems))
    return tuple(issues)


def _problems(entry: Any) -> Iterator[str]:
    """What is wrong with one entry, except that its date has passed."""
    if not isinstance(entry, dict):
        yield f": must be a mapping with {', '.join(_KEYS)}, is {_show(entry)}"
        return
    for key in entry:
        if key not in _KEYS:
            shown = key if str(key).isprintable() else ascii(key)
            yield f".{shown}: unknown key{suggestion(key, _KEYS)}"
    if ("fingerprint" in entry) == ("signature" in entry):
        yield ": give exactly one of fingerprint and signature"
    yield from _text_problems(entry)
    if "expires" not in entry:
        yield ".expires: missing; give the last day on which the issue is expected"
    elif _date(entry["expires"]) is None:
        yield f".expires: must be a date like 2027-01-31, is {_show(entry['expires'])}"


def _text_problems(entry: dict[Any, Any]) -> Iterator[str]:
    if "fingerprint" in entry and not _fits(_FINGERPRINT, entry["fingerprint"]):
        # YAML reads digits alone as a number, and may drop zeros
        yield (
            ".fingerprint: must be 12 hexadecimal digits, small letters, in quotes, "
            f"is {_show(entry['fingerprint'])}"
        )
    if "signature" in entry and not _fits(_CATEGORY, entry["signature"]):
        yield (
            ".signature: must be a category such as netdev_watchdog, "
            f"is {_show(entry['signature'])}"
        )
    elif "signature" in entry and entry["signature"] not in categories():
        yield (
            f".signature: there is no category {entry['signature']!r}"
            f"{suggestion(entry['signature'], categories())}"
        )
    if "driver" in entry and "fingerprint" in entry:
        yield ".driver: narrows a signature only; leave it out with a fingerprint"
    elif "driver" in entry and not _fits(_DRIVER, entry["driver"]):
        yield f".driver: must be a driver's name, is {_show(entry['driver'])}"
    if "reason" not in entry:
        yield ".reason: missing; say what is wrong and who knows more"
    elif not _reason(entry["reason"]):
        yield f".reason: must be a text that can be read, is {_show(entry['reason'])}"


def _issue(entry: dict[str, Any]) -> KnownIssue:
    expires = _date(entry["expires"])
    assert expires is not None
    return KnownIssue(
        fingerprint=entry.get("fingerprint"),
        signature=entry.get("signature"),
        driver=entry.get("driver"),
        reason=_reason(entry["reason"]),
        expires=expires,
    )


def _expiry_problems(issue: KnownIssue, today: datetime.date) -> Iterator[str]:
    if issue.expires < today:
        yield (
            f".expires: {issue.expires} is past; fix the issue or set a new date ({issue.summary})"
        )


def _date(value: Any) -> datetime.date | None:
    """A date of YAML's own or in ISO 8601 text; None for anything else, also with a time of day."""
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    if not isinstance(value, str):
        return None
    try:
        return datetime.date.fromisoformat(value)
    except ValueError:
        return None


def _fits(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and bool(pattern.fullmatch(value))


def _reason(value: Any) -> str:
    """The text as one line; "" for what is no text or would not be shown."""
    line = " ".join(value.split()) if isinstance(value, str) else ""
    return line if line.isprintable() else ""


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "empty" if value is None else repr(value)
