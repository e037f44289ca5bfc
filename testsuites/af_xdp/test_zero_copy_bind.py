"""AF_XDP sockets really get the mode that was asked for, and carry every frame unharmed.

Each mode is proved three ways: the kernel's XDP_OPTIONS, the attached program's mode, and 1,000
frames in each direction that the other end counts and checks byte by byte.
"""

from __future__ import annotations

from fixtures.xdp import Mode
from hil.agents import AgentRun, Event
from hil.bench import Bench, DataPort, describe
from hil.clock import Deadline

FRAMES = 1000
FRAME_SIZE_BYTES = 256
TIMEOUT_S = 30
# Far below what the slowest board takes, so that a lost frame is a fault and not an overload.
RATE_PPS = 2000

_DAMAGE = ("missing", "duplicates", "reordered", "corrupt")


def frame_options(stream: int) -> list[str | int]:
    return [
        *("--count", FRAMES, "--frame-size", FRAME_SIZE_BYTES),
        *("--stream", stream, "--timeout", TIMEOUT_S),
    ]


def assert_mode(event: Event, mode: Mode) -> None:
    """Asked zero copy and got copy is a failure that says so."""
    xdp, bind = mode
    assert event["mode"] == bind, f"asked {bind}, got {event['mode']}"
    assert event["xdp_mode"] == xdp, f"asked an XDP program in {xdp} mode, got {event['xdp_mode']}"


def assert_intact(event: Event) -> None:
    """All frames, once each, in order and with every byte."""
    damage = {what: event[what] for what in _DAMAGE if event[what]["count"]}
    assert event["frames"] == FRAMES and not damage, describe(event)


def test_bind(xsk: AgentRun, mode: Mode) -> None:
    """The kernel's own answer after bind() names the mode that was asked for."""
    assert_mode(xsk.first("ready"), mode)


def test_receive(xsk: AgentRun, data_port: DataPort, board: Bench, mode: Mode) -> None:
    """1,000 frames of the link partner arrive once each, in order, with their payload."""
    xsk.order("recv", *frame_options(stream=1), until="receiving")
    board.partner_agent.call(
        "packet-send",
        *("--ifname", data_port.partner_interface, "--dst", xsk.first("ready")["mac"]),
        *("--rate", RATE_PPS),
        *frame_options(stream=1),
    )
    received = xsk.wait_for("received")
    assert_mode(received, mode)
    assert_intact(received)


def test_transmit(xsk: AgentRun, data_port: DataPort, board: Bench, mode: Mode) -> None:
    """1,000 frames leave the port for real: the link partner receives and checks each."""
    options = ["--ifname", data_port.partner_interface, *frame_options(stream=2)]
    with board.partner_agent.start("packet-recv", *options) as receiver:
        to = ["--dst", receiver.wait_for("ready")["mac"], "--rate", RATE_PPS]
        sent = xsk.order("send", *to, *frame_options(stream=2), until="sent")
        received = receiver.result(deadline=Deadline(TIMEOUT_S + 10))
    assert_mode(sent, mode)
    assert sent["completed"] == FRAMES, describe(sent)
    assert_intact(received)
