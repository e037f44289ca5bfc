"""Limits of a boot's phases: what expires when, what is measured, and what profiles say."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import attr
import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from labgrid.driver import NetworkPowerDriver

from hil.boards import load
from hil.boards.load import board_names, load_board, parse_profile
from hil.boards.model import Phases
from hil.console.model import Phase
from hil.console.phases import Expired, Limits, PhaseWatch
from hil.errors import ConfigError

DATA = Path(load.__file__).parent / "data"
ENVIRONMENTS = Path(__file__).parents[2] / "environments"
LIMITS = {
    Phase.POWER: Limits(20, 15),
    Phase.SPL: Limits(20, 5),
    Phase.HANDOVER: Limits(15, 15),
    Phase.KERNEL: Limits(100, 30),
}


def started(now_s: float = 1000.0) -> PhaseWatch:
    watch = PhaseWatch(LIMITS)
    watch.start(now_s)
    return watch


# What expires


def test_power_without_a_byte_is_silent() -> None:
    watch = started()
    assert watch.next_due_s() == 1015
    assert watch.expired(1014.9) is None
    assert watch.expired(1016.2) == Expired(Phase.POWER, "silence", 15, None, 1015)


def test_bytes_end_a_silence_but_not_the_deadline() -> None:
    watch = started()
    watch.activity(1010)
    assert watch.expired(1015) is None
    assert watch.next_due_s() == 1020
    assert watch.expired(1020) == Expired(Phase.POWER, "deadline", 20, 1010, 1020)


def test_an_expiry_stays_until_something_happens() -> None:
    watch = started()
    first = watch.expired(1015)
    assert first is not None
    assert watch.expired(1500) == first
    assert watch.next_due_s() == 1015
    watch.activity(1500)
    assert watch.expired(1500) == Expired(Phase.POWER, "deadline", 20, 1500, 1020)
    watch.enter(Phase.SPL, 1500)
    assert watch.expired(1500) is None


def test_silence_counts_from_the_entry_when_that_is_later() -> None:
    watch = started()
    watch.activity(1001)
    watch.enter(Phase.SPL, 1003)
    assert watch.next_due_s() == 1008
    assert watch.expired(1008) == Expired(Phase.SPL, "silence", 5, 1001, 1008)


def test_of_two_limits_at_once_the_silence_is_told() -> None:
    watch = started()
    watch.enter(Phase.HANDOVER, 1002)
    assert watch.expired(1017) == Expired(Phase.HANDOVER, "silence", 15, None, 1017)


def test_the_phase_that_goes_on_starts_nothing_anew() -> None:
    watch = started()
    watch.enter(Phase.SPL, 1001)
    watch.enter(Phase.SPL, 1005)
    assert watch.next_due_s() == 1006


def test_an_earlier_phase_starts_its_limits_anew_and_adds_its_time() -> None:
    """K3: the SPL of the R5, then firmware, then the SPL of the A53."""
    watch = started()
    watch.enter(Phase.SPL, 1001)
    watch.activity(1004)
    watch.enter(Phase.FIRMWARE, 1005)
    watch.enter(Phase.SPL, 1006)
    assert watch.next_due_s() == 1011
    watch.activity(1008)
    watch.activity(1010)
    watch.enter(Phase.UBOOT, 1010.5)
    assert watch.durations() == {
        Phase.POWER: 1,
        Phase.SPL: 8.5,
        Phase.FIRMWARE: 1,
        Phase.UBOOT: 0,
    }
    assert watch.silences()[Phase.SPL] == 3


def test_a_phase_without_limits_never_expires() -> None:
    watch = started()
    watch.enter(Phase.UBOOT, 1001)
    assert watch.next_due_s() is None
    assert watch.expired(1e9) is None


# What is measured


def test_the_open_phase_and_the_open_silence_count() -> None:
    watch = started()
    watch.activity(1002)
    assert watch.expired(1009) is None
    assert watch.durations() == {Phase.POWER: 9}
    assert watch.silences() == {Phase.POWER: 7}


def test_the_silence_before_a_phase_belongs_to_the_one_before() -> None:
    watch = started()
    watch.enter(Phase.HANDOVER, 1001)
    watch.activity(1004)
    watch.enter(Phase.KERNEL, 1004)
    assert watch.silences() == {Phase.POWER: 1, Phase.HANDOVER: 3, Phase.KERNEL: 0}


def test_times_from_another_thread_never_take_time_back() -> None:
    watch = started()
    assert watch.expired(1010) is None
    watch.activity(1009)
    watch.enter(Phase.SPL, 1008)
    assert watch.durations() == {Phase.POWER: 10, Phase.SPL: 0}
    assert watch.next_due_s() == 1015


def test_stop_keeps_what_was_measured() -> None:
    watch = started()
    watch.enter(Phase.KERNEL, 1003)
    watch.activity(1010)
    watch.stop()
    measured = {Phase.POWER: 3.0, Phase.KERNEL: 7.0}
    assert (watch.durations(), watch.silences()) == (measured, measured)
    watch.activity(1100)
    watch.enter(Phase.SPL, 1101)
    watch.stop()
    assert watch.next_due_s() is None
    assert watch.expired(2000) is None
    assert (watch.durations(), watch.silences()) == (measured, measured)


def test_start_forgets_the_boot_before() -> None:
    watch = started()
    watch.enter(Phase.KERNEL, 1003)
    watch.activity(1004)
    watch.stop()
    watch.start(3000)
    assert watch.durations() == watch.silences() == {Phase.POWER: 0}
    assert watch.expired(3015) == Expired(Phase.POWER, "silence", 15, None, 3015)


def test_before_the_start_nothing_counts() -> None:
    watch = PhaseWatch(LIMITS)
    watch.activity(1)
    watch.enter(Phase.SPL, 2)
    assert watch.next_due_s() is None
    assert watch.expired(1e9) is None
    assert watch.durations() == watch.silences() == {}


# All of it, for any boot. Quarters of seconds add up without rounding.

QUARTERS = st.integers(0, 400).map(lambda n: n / 4)
EVENTS = st.lists(st.tuples(QUARTERS, st.none() | st.sampled_from(Phase)), max_size=30)


def play(watch: PhaseWatch, events: list[tuple[float, Phase | None]], look: Callable) -> float:
    """Run the events (seconds after the one before; None means bytes); the time at the end."""
    now_s = 1000.0
    watch.start(now_s)
    look(now_s)
    for after_s, phase in events:
        now_s += after_s
        if phase is None:
            watch.activity(now_s)
        else:
            watch.enter(phase, now_s)
        look(now_s)
    return now_s


@given(EVENTS)
def test_next_due_and_expired_agree(events: list[tuple[float, Phase | None]]) -> None:
    watch = PhaseWatch(LIMITS)

    def look(now_s: float) -> None:
        due_s = watch.next_due_s()
        if due_s is None:
            assert copy.copy(watch).expired(now_s + 1e6) is None
            return
        if due_s > now_s:
            assert copy.copy(watch).expired(math.nextafter(due_s, 0)) is None
        expired = copy.copy(watch).expired(max(due_s, now_s))
        assert expired is not None
        assert expired.at_s == due_s

    play(watch, events, look)


@given(EVENTS)
def test_durations_add_up_to_the_time_that_has_passed(
    events: list[tuple[float, Phase | None]],
) -> None:
    watch = PhaseWatch(LIMITS)

    def look(now_s: float) -> None:
        assert sum(watch.durations().values()) == now_s - 1000

    play(watch, events, look)


@given(EVENTS)
def test_silences_are_the_longest_gaps(events: list[tuple[float, Phase | None]]) -> None:
    watch = PhaseWatch({})
    end_s = play(watch, events, lambda now_s: None)
    # the same by hand: the moments of each visit to a phase, from its entry to the next one's
    visits: list[tuple[Phase, list[float]]] = [(Phase.POWER, [1000.0])]
    now_s = 1000.0
    for after_s, phase in events:
        now_s += after_s
        if phase is None or phase is not visits[-1][0]:
            visits[-1][1].append(now_s)
        if phase is not None and phase is not visits[-1][0]:
            visits.append((phase, [now_s]))
    visits[-1][1].append(end_s)
    longest: dict[Phase, float] = {}
    for phase, moments in visits:
        gap = max(later - earlier for earlier, later in pairwise(moments))
        longest[phase] = max(longest.get(phase, 0), gap)
    assert watch.silences() == longest
    watch.stop()
    assert watch.silences() == longest


# The profiles


def test_every_phase_can_have_limits_in_a_profile() -> None:
    assert [field.name for field in attrs.fields(Phases)] == [phase.value for phase in Phase]


def with_phases(phases: Any) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((DATA / "am64x.yaml").read_text())
    return {**data, "phases": phases}


def test_a_profile_becomes_limits() -> None:
    phases = {"spl": {"deadline": 20, "silence": 5}, "kernel": {"deadline": 9.5, "silence": 9.5}}
    profile = parse_profile(with_phases({**phases, "nfs": None}), "x.yaml")
    assert profile.phases.limits() == {Phase.SPL: Limits(20, 5), Phase.KERNEL: Limits(9.5, 9.5)}


def test_a_profile_may_have_no_limits() -> None:
    data = with_phases({})
    assert parse_profile(data, "x.yaml").phases.limits() == {}
    del data["phases"]
    assert parse_profile(data, "x.yaml").phases.limits() == {}


@pytest.mark.parametrize(
    ("phases", "complaint"),
    [
        ([], "phases: must be a mapping, is []"),
        ({"kernl": {}}, "phases.kernl: unknown key; did you mean 'kernel'?"),
        ({"spl": {"deadline": 3}}, "phases.spl.silence: missing"),
        ({"spl": 3}, "phases.spl: must be a mapping, is 3"),
        (
            {"spl": {"deadline": "3", "silence": 1}},
            "phases.spl.deadline: must be a number, is '3'",
        ),
        (
            {"spl": {"deadline": 3, "silence": 0}},
            "phases.spl.silence: must be more than 0 seconds, and finite",
        ),
        (
            {"spl": {"deadline": math.nan, "silence": 1}},
            "phases.spl.deadline: must be more than 0 seconds, and finite",
        ),
        (
            {"spl": {"deadline": math.inf, "silence": 1}},
            "phases.spl.deadline: must be more than 0 seconds, and finite",
        ),
        (
            {"uboot_handover": {"deadline": 3, "silence": 3.5}},
            "phases.uboot_handover.silence: must not be more than the deadline, 3 seconds",
        ),
    ],
)
def test_what_is_wrong_with_limits_is_named(phases: Any, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_profile(with_phases(phases), "x.yaml")
    assert str(caught.value) == f"x.yaml: {complaint}"


@pytest.mark.parametrize("name", board_names())
def test_limits_fit_the_deadlines(name: str) -> None:
    """No phase may be given up for good before what is done in it has had its own time."""
    profile = load_board(name)
    limits, deadlines = profile.phases.limits(), profile.deadlines
    for phase in (Phase.POWER, Phase.SPL, Phase.FIRMWARE):
        if phase in limits:
            assert limits[phase].deadline_s <= deadlines.power_on_to_prompt
    # the prompt comes in U-Boot's phase, and the link for DHCP is awaited in it
    assert limits[Phase.UBOOT].deadline_s >= deadlines.power_on_to_prompt
    assert limits[Phase.TFTP].deadline_s >= deadlines.dhcp + deadlines.tftp
    assert limits[Phase.HANDOVER].deadline_s <= deadlines.kernel_start
    for phase in (Phase.KERNEL, Phase.NETWORK, Phase.NFS, Phase.INIT):
        assert limits[phase].deadline_s <= deadlines.login
    # ssh is given up by its own deadline, which has the better message
    assert limits[Phase.LOGIN].silence_s > deadlines.ssh
    # tests run then
    assert Phase.SSH not in limits


@pytest.mark.parametrize("name", board_names())
def test_power_may_be_silent_for_longer_than_it_is_off(name: str) -> None:
    data = yaml.safe_load((ENVIRONMENTS / f"{name}.yaml").read_text())
    driver = data["targets"]["main"]["drivers"]["NetworkPowerDriver"]
    off_s = driver.get("delay", attr.fields_dict(NetworkPowerDriver)["delay"].default)
    assert load_board(name).phases.limits()[Phase.POWER].silence_s > off_s
