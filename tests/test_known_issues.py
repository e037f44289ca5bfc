"""Known issues of an environment: what they cover, until when, and every complaint."""

from __future__ import annotations

import datetime
from typing import Any

import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hil.console.model import Finding
from hil.errors import ConfigError
from hil.results.known_issues import KnownIssue, match, parse

TODAY = datetime.date(2026, 6, 15)
FINDING = Finding(
    category="netdev_watchdog",
    severity="error",
    blame="kernel",
    stage="userspace",
    line="NETDEV WATCHDOG: eth1: transmit queue 0 timed out",
    line_number=7,
    fingerprint="0123456789ab",
    driver="am65-cpsw-nuss",
)
GOOD = {"signature": "netdev_watchdog", "reason": "TX stalls, #12", "expires": TODAY}


def complaints(data: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(data, "env.yaml", TODAY)
    lines = str(caught.value).splitlines()
    assert all(line.startswith("env.yaml: options.known_issues") for line in lines)
    return [line.removeprefix("env.yaml: options.known_issues") for line in lines]


def changed(**values: Any) -> dict[str, Any]:
    """The good entry with other values; None removes a key."""
    return {key: value for key, value in {**GOOD, **values}.items() if value is not None}


# Reading


def test_a_list_as_it_stands_in_an_environment() -> None:
    text = """
    - fingerprint: "0123456789ab"
      reason: >
        The switch loses a frame
        after a reset
      expires: 2026-07-01
    - signature: netdev_watchdog
      driver: igb
      reason: emulated card
      expires: "2026-06-15"
    """
    assert parse(yaml.safe_load(text), "env.yaml", TODAY) == (
        KnownIssue(
            "0123456789ab",
            None,
            None,
            "The switch loses a frame after a reset",
            datetime.date(2026, 7, 1),
        ),
        KnownIssue(None, "netdev_watchdog", "igb", "emulated card", TODAY),
    )


@pytest.mark.parametrize("data", [None, []])
def test_nothing_is_known(data: Any) -> None:
    assert parse(data, "env.yaml", TODAY) == ()


@pytest.mark.parametrize("expires", [TODAY, TODAY.isoformat()])
def test_an_entry_holds_to_the_end_of_its_day(expires: Any) -> None:
    entry = changed(expires=expires)
    (issue,) = parse([entry], "env.yaml", TODAY)
    assert issue.expires == TODAY
    with pytest.raises(ConfigError):
        parse([entry], "env.yaml", TODAY + datetime.timedelta(days=1))


# Complaints


def test_a_date_that_is_past_names_the_issue() -> None:
    entry = changed(driver="igb", expires=datetime.date(2026, 1, 1))
    assert complaints([GOOD, GOOD, entry]) == [
        "[2].expires: 2026-01-01 is past; fix the issue or set a new date "
        "(netdev_watchdog (igb): TX stalls, #12)"
    ]
    entry = changed(signature=None, fingerprint="0123456789ab", expires="2026-06-14")
    assert complaints([entry]) == [
        "[0].expires: 2026-06-14 is past; fix the issue or set a new date "
        "(0123456789ab: TX stalls, #12)"
    ]


FINGERPRINT = "[0].fingerprint: must be 12 hexadecimal digits, small letters, in quotes, is "


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ("netdev_watchdog", ": must be a list of issues, is 'netdev_watchdog'"),
        (GOOD, ": must be a list of issues, is a mapping"),
        (
            ["netdev_watchdog"],
            "[0]: must be a mapping with fingerprint, signature, driver, reason, expires, "
            "is 'netdev_watchdog'",
        ),
        (
            [None],
            "[0]: must be a mapping with fingerprint, signature, driver, reason, expires, is empty",
        ),
        ([changed(reasn="x")], "[0].reasn: unknown key; did you mean 'reason'?"),
        ([changed(zzz="x")], "[0].zzz: unknown key"),
        ([{**GOOD, 5: "x"}], "[0].5: unknown key"),
        ([{**GOOD, "a\nb": "x"}], r"[0].'a\nb': unknown key"),
        ([changed(signature=None)], "[0]: give exactly one of fingerprint and signature"),
        (
            [changed(fingerprint="0123456789ab")],
            "[0]: give exactly one of fingerprint and signature",
        ),
        *[
            ([changed(signature=None, fingerprint=value)], FINGERPRINT + repr(value))
            for value in (123456789012, "0123456789a", "0123456789abc", "0123456789AB", "é" * 12)
        ],
        (
            [{**GOOD, "signature": None}],
            "[0].signature: must be a category such as netdev_watchdog, is empty",
        ),
        (
            [changed(signature="NETDEV WATCHDOG")],
            "[0].signature: must be a category such as netdev_watchdog, is 'NETDEV WATCHDOG'",
        ),
        ([changed(driver="")], "[0].driver: must be a driver's name, is ''"),
        ([changed(driver=5)], "[0].driver: must be a driver's name, is 5"),
        (
            [changed(signature="netdev_watchdgo")],
            "[0].signature: there is no category 'netdev_watchdgo'; "
            "did you mean 'netdev_watchdog'?",
        ),
        (
            [changed(signature=None, fingerprint="0123456789ab", driver="igb")],
            "[0].driver: narrows a signature only; leave it out with a fingerprint",
        ),
        ([changed(reason=None)], "[0].reason: missing; say what is wrong and who knows more"),
        ([{**GOOD, "reason": None}], "[0].reason: must be a text that can be read, is empty"),
        ([changed(reason=" \n")], r"[0].reason: must be a text that can be read, is ' \n'"),
        (
            [changed(reason="a\x1b[2Jb")],
            r"[0].reason: must be a text that can be read, is 'a\x1b[2Jb'",
        ),
        ([changed(driver="i g")], "[0].driver: must be a driver's name, is 'i g'"),
        ([changed(reason=12)], "[0].reason: must be a text that can be read, is 12"),
        (
            [changed(expires=None)],
            "[0].expires: missing; give the last day on which the issue is expected",
        ),
        *[
            ([changed(expires=value)], f"[0].expires: must be a date like 2027-01-31, is {value!r}")
            for value in (
                "soon",
                "2026-02-30",
                "2027-01-31T12:00:00",
                2027,
                datetime.datetime(2027, 1, 31, 12, 0),
            )
        ],
    ],
)
def test_what_is_wrong_is_named(data: Any, complaint: str) -> None:
    assert complaints(data) == [complaint]


def test_all_problems_come_together() -> None:
    assert complaints([{"driver": 5}, GOOD, changed(expires="2026-06-01", reason="x")]) == [
        "[0]: give exactly one of fingerprint and signature",
        "[0].driver: must be a driver's name, is 5",
        "[0].reason: missing; say what is wrong and who knows more",
        "[0].expires: missing; give the last day on which the issue is expected",
        "[2].expires: 2026-06-01 is past; fix the issue or set a new date (netdev_watchdog: x)",
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.dates() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
KEYS = st.sampled_from([field.name for field in attrs.fields(KnownIssue)]) | st.text(max_size=8)


@given(VALUES | st.lists(st.dictionaries(KEYS, VALUES) | VALUES, max_size=3))
def test_any_data_is_taken_or_refused_line_by_line(data: Any) -> None:
    try:
        issues = parse(data, "env.yaml", TODAY)
    except ConfigError as error:
        lines = str(error).split("\n")
        assert all(line.startswith("env.yaml: options.known_issues") for line in lines)
        assert all(line.isprintable() for line in lines)
    else:
        assert all(issue.expires >= TODAY and issue.reason for issue in issues)


# Matching


def issue(**values: Any) -> KnownIssue:
    (made,) = parse([changed(**values)], "env.yaml", TODAY)
    return made


def test_a_signature_covers_every_driver_unless_it_names_one() -> None:
    other = attrs.evolve(FINDING, driver="igb")
    unnamed = attrs.evolve(FINDING, driver=None)
    wide, narrow = issue(), issue(driver="am65-cpsw-nuss")
    assert [match([wide], finding) for finding in (FINDING, other, unnamed)] == [wide] * 3
    assert [match([narrow], finding) for finding in (FINDING, other, unnamed)] == [
        narrow,
        None,
        None,
    ]


def test_a_signature_is_a_whole_category() -> None:
    assert match([issue(signature="oops")], FINDING) is None


def test_a_fingerprint_covers_one_fault() -> None:
    known = issue(signature=None, fingerprint="0123456789ab")
    assert match([known], FINDING) is known
    assert match([known], attrs.evolve(FINDING, fingerprint="0123456789ac")) is None


def test_the_first_of_the_list_is_taken() -> None:
    first, second = issue(reason="first"), issue(reason="second")
    assert match([issue(signature="oops"), first, second], FINDING) is first
    assert match([], FINDING) is None
