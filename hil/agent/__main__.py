"""The agent's command line; every command prints JSON lines (see events.py)."""

from __future__ import annotations

import argparse
import sys
import time

from . import frames, netdev, packet, transfer
from .events import GOOD, MEASURED_FAILURE, Refused, Stop, emit
from .frames import Tally
from .pace import Pace
from .xsk import BIND_FLAGS, XskSocket

DEFAULT_RATE_PPS = 2000.0


def probe(options: argparse.Namespace, stop: Stop) -> int:
    """Tell what kernel and driver say about an interface."""
    emit("probe", **netdev.describe(options.ifname))
    return GOOD


def bind(options: argparse.Namespace, stop: Stop) -> int:
    """Bind an AF_XDP socket and read its mode back."""
    with _socket(options) as xsk:
        emit("bound", **xsk.proof())
    return GOOD


def recv(options: argparse.Namespace, stop: Stop) -> int:
    """Receive test frames through AF_XDP and check each."""
    with _socket(options) as xsk:
        emit("ready", **xsk.proof())
        tally = Tally(options.stream, options.count, options.frame_size)
        start = time.monotonic()
        transfer.receive(xsk, tally, options.timeout, stop)
        duration_s = round(time.monotonic() - start, 3)
        details = {"statistics": xsk.statistics(), "rings": xsk.rings()}
        emit("received", **tally.result(), **xsk.proof(), **details, duration_s=duration_s)
    return GOOD if tally.intact else MEASURED_FAILURE


def send(options: argparse.Namespace, stop: Stop) -> int:
    """Send test frames through AF_XDP and wait for their completions."""
    with _socket(options) as xsk:
        proof = xsk.proof()
        emit("ready", **proof)
        batch = _frames(options, proof["mac"])
        sent = transfer.send(xsk, batch, Pace(options.rate), stop)
        details = {"statistics": xsk.statistics(), "rings": xsk.rings()}
        emit("sent", **sent, **xsk.proof(), **details)
    return GOOD if sent["completed"] == options.count else MEASURED_FAILURE


def packet_recv(options: argparse.Namespace, stop: Stop) -> int:
    """Receive test frames through a packet socket and check each."""
    with packet.open_socket(options.ifname) as sock:
        emit("ready", ifname=options.ifname, mac=netdev.mac(options.ifname))
        tally = Tally(options.stream, options.count, options.frame_size)
        packet.receive(sock, tally, options.timeout, stop)
    emit("received", **tally.result())
    return GOOD if tally.intact else MEASURED_FAILURE


def packet_send(options: argparse.Namespace, stop: Stop) -> int:
    """Send test frames through a packet socket."""
    with packet.open_socket(options.ifname) as sock:
        batch = _frames(options, netdev.mac(options.ifname))
        sent = packet.send(sock, batch, Pace(options.rate), stop)
    emit("sent", **sent)
    return GOOD if sent["frames"] == options.count else MEASURED_FAILURE


def _socket(options: argparse.Namespace) -> XskSocket:
    return XskSocket(
        options.ifname,
        options.queue,
        xdp=options.xdp,
        bind=options.bind,
        busy_timeout_s=options.busy_timeout,
        carrier_timeout_s=options.carrier_timeout,
    )


def _frames(options: argparse.Namespace, source: str) -> list[bytes]:
    dst, src = (bytes.fromhex(mac.replace(":", "")) for mac in (options.dst, source))
    numbers = range(options.count)
    return [frames.build(options.stream, n, options.frame_size, dst, src) for n in numbers]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hil-agent", description="AF_XDP agent of hil")
    commands = parser.add_subparsers(dest="command", required=True)
    for run, with_socket, with_frames, with_destination in (
        (probe, False, False, False),
        (bind, True, False, False),
        (recv, True, True, False),
        (send, True, True, True),
        (packet_recv, False, True, False),
        (packet_send, False, True, True),
    ):
        name = run.__name__.replace("_", "-")
        command = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        command.set_defaults(run=run)
        command.add_argument("--ifname", required=True)
        if with_socket:
            command.add_argument("--queue", type=int, default=0)
            command.add_argument("--xdp", choices=("skb", "native"), required=True)
            command.add_argument("--bind", choices=sorted(BIND_FLAGS), required=True)
            command.add_argument("--busy-timeout", type=float, default=10.0, metavar="S")
            command.add_argument("--carrier-timeout", type=float, default=15.0, metavar="S")
        if with_frames:
            command.add_argument("--count", type=int, required=True)
            command.add_argument("--frame-size", type=_frame_size, required=True, metavar="BYTES")
            command.add_argument("--stream", type=int, required=True)
            command.add_argument("--timeout", type=float, default=30.0, metavar="S")
        if with_destination:
            command.add_argument("--dst", required=True, metavar="MAC")
            command.add_argument("--rate", type=float, default=DEFAULT_RATE_PPS, metavar="PPS")
    return parser


def _frame_size(text: str) -> int:
    size = int(text)
    if not frames.MIN_SIZE_BYTES <= size <= frames.MAX_SIZE_BYTES:
        raise argparse.ArgumentTypeError(
            f"use {frames.MIN_SIZE_BYTES} to {frames.MAX_SIZE_BYTES} bytes"
        )
    return size


def main() -> int:
    options = _parser().parse_args()
    stop = Stop()
    try:
        status: int = options.run(options, stop)
    except Refused as error:
        emit("refused", **error.event())
        status = error.exit_status
    return status


if __name__ == "__main__":
    sys.exit(main())
