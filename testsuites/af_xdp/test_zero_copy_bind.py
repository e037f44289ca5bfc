"""AF_XDP sockets really get the mode that was asked for, and carry every frame unharmed.

Each mode is proved three ways: the kernel's XDP_OPTIONS, the attached program's mode, and 1,000
frames in each direction that the other end counts and checks byte by byte.
"""

from __future__ import annotations

import pytest

from hil.agents import Event
from hil.bench import Bench, DataPort, describe
from hil.clock import Deadline

FRAMES = 1000
FRAME_SIZE_BYTES = 256
TIMEOUT_S = 30
# Far below what the slowest board takes, so that a lost frame is a fault and not an overload.
RATE_PPS = 1000

MODES = {
    "skb-copy": ("skb", "copy"),
    "native-copy": ("native", "copy"),
    "native-zero-copy": ("native", "zero-copy"),
}
_DAMAGE = ("missing", "duplicates", "reordered", "corrupt")


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> tuple[str, str]:
    """XDP mode and AF_XDP bind mode: the columns of the cover letters' tables."""
    return MODES[request.param]


def bind_arguments(port: DataPort, mode: tuple[str, str]) -> list[str]:
    xdp, bind = mode
    return ["--ifname", port.interface, "--queue", "0", "--xdp", xdp, "--bind", bind]


def frame_arguments(stream: int) -> list[str | int]:
    return [
        *("--count", FRAMES, "--frame-size", FRAME_SIZE_BYTES),
        *("--stream", stream, "--timeout", TIMEOUT_S),
    ]


def assert_mode(event: Event, mode: tuple[str, str]) -> None:
    """Asked zero copy and got copy is a failure that says so."""
    xdp, bind = mode
    assert event["mode"] == bind, f"asked {bind}, got {event['mode']}"
    assert event["xdp_mode"] == xdp, f"asked an XDP program in {xdp} mode, got {event['xdp_mode']}"


def assert_intact(event: Event) -> None:
    damage = {what: event[what] for what in _DAMAGE if _count(event[what])}
    assert event["frames"] == FRAMES and not damage, describe(event)


def _count(value: object) -> object:
    return value["count"] if isinstance(value, dict) else value


def test_bind(data_port: DataPort, board: Bench, mode: tuple[str, str]) -> None:
    """The kernel's own answer after bind() names the mode that was asked for."""
    event = board.agent.call("bind", *bind_arguments(data_port, mode))
    assert_mode(event, mode)


def test_receive(data_port: DataPort, board: Bench, mode: tuple[str, str]) -> None:
    """1,000 frames of the link partner arrive once each, in order, with their payload."""
    agent = board.agent.start("recv", *bind_arguments(data_port, mode), *frame_arguments(1))
    with agent as receiver:
        ready = receiver.wait_for("ready")
        board.partner_agent.call(
            "packet-send",
            *("--ifname", data_port.partner_interface, "--dst", ready["mac"]),
            *("--rate", RATE_PPS),
            *frame_arguments(1),
        )
        event = receiver.result(deadline=Deadline(TIMEOUT_S + 10))
    assert_mode(event, mode)
    assert_intact(event)


def test_transmit(data_port: DataPort, board: Bench, mode: tuple[str, str]) -> None:
    """1,000 frames leave the port for real: the link partner receives and checks each."""
    receiver_arguments = ["--ifname", data_port.partner_interface, *frame_arguments(2)]
    with board.partner_agent.start("packet-recv", *receiver_arguments) as receiver:
        ready = receiver.wait_for("ready")
        sent = board.agent.call(
            "send",
            *bind_arguments(data_port, mode),
            *("--dst", ready["mac"], "--rate", RATE_PPS),
            *frame_arguments(2),
        )
        received = receiver.result(deadline=Deadline(TIMEOUT_S + 10))
    assert_mode(sent, mode)
    assert sent["completed"] == FRAMES, describe(sent)
    assert_intact(received)
