"""The agent's command line; every command prints JSON lines (see events.py)."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from . import frames, netdev, packet, transfer
from .events import ENVIRONMENT, GOOD, MEASURED_FAILURE, Refused, Stop, emit, input_lines
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
    with _socket(options, stop) as xsk:
        emit("bound", **xsk.proof())
    return GOOD


def session(options: argparse.Namespace, stop: Stop) -> int:
    """Keep an AF_XDP socket open and obey `recv` and `send` lines on standard input, to its end.

    The status tells the worst of them.
    """
    status = GOOD
    with _socket(options, stop) as xsk:
        emit("ready", **xsk.proof())
        for line in input_lines(stop):
            order = _order_parser().parse_args(line.split())
            status = max(status, order.run(xsk, order, stop))
    return status


def _receive(xsk: XskSocket, order: argparse.Namespace, stop: Stop) -> int:
    """Receive test frames and check each."""
    tally = Tally(order.stream, order.count, order.frame_size, _mac(netdev.mac(xsk.ifname)))
    emit("receiving")
    transfer.receive(xsk, tally, order.timeout, stop)
    emit("received", **tally.result(), **_state(xsk))
    return GOOD if tally.intact else MEASURED_FAILURE


def _send(xsk: XskSocket, order: argparse.Namespace, stop: Stop) -> int:
    """Send test frames and wait for their completions."""
    batch = _frames(order, netdev.mac(xsk.ifname))
    sent = transfer.send(xsk, batch, Pace(order.rate), order.timeout, stop)
    emit("sent", **sent, **_state(xsk))
    return GOOD if sent["completed"] == order.count else MEASURED_FAILURE


def _state(xsk: XskSocket) -> dict[str, Any]:
    return {**xsk.proof(), "statistics": xsk.statistics(), "rings": xsk.rings()}


def packet_recv(options: argparse.Namespace, stop: Stop) -> int:
    """Receive test frames through a packet socket and check each."""
    with packet.open_socket(options.ifname) as sock:
        mac = netdev.mac(options.ifname)
        emit("ready", ifname=options.ifname, mac=mac)
        tally = Tally(options.stream, options.count, options.frame_size, _mac(mac))
        packet.receive(sock, tally, options.timeout, stop)
        statistics = packet.statistics(sock)
    emit("received", **tally.result(), statistics=statistics)
    return GOOD if tally.intact else MEASURED_FAILURE


def packet_send(options: argparse.Namespace, stop: Stop) -> int:
    """Send test frames through a packet socket."""
    with packet.open_socket(options.ifname) as sock:
        batch = _frames(options, netdev.mac(options.ifname))
        sent = packet.send(sock, batch, Pace(options.rate), options.timeout, stop)
    emit("sent", **sent)
    return GOOD if sent["frames"] == options.count else MEASURED_FAILURE


def _socket(options: argparse.Namespace, stop: Stop) -> XskSocket:
    return XskSocket(
        options.ifname,
        options.queue,
        xdp=options.xdp,
        bind=options.bind,
        busy_timeout_s=options.busy_timeout,
        carrier_timeout_s=options.carrier_timeout,
        stop=stop,
    )


def _frames(options: argparse.Namespace, source: str) -> list[bytes]:
    size, src, numbers = options.frame_size, _mac(source), range(options.count)
    return [frames.build(options.stream, n, size, options.dst, src) for n in numbers]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hil-agent", description="AF_XDP agent of hil")
    commands = parser.add_subparsers(dest="command", required=True)
    for run in (probe, bind, session, packet_recv, packet_send):
        name = run.__name__.replace("_", "-")
        command = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        command.set_defaults(run=run)
        command.add_argument("--ifname", required=True)
        if run in (bind, session):
            command.add_argument("--queue", type=int, default=0)
            command.add_argument("--xdp", choices=("skb", "native"), required=True)
            command.add_argument("--bind", choices=sorted(BIND_FLAGS), required=True)
            command.add_argument("--busy-timeout", type=float, default=10.0, metavar="S")
            command.add_argument("--carrier-timeout", type=float, default=15.0, metavar="S")
        if run in (packet_recv, packet_send):
            _add_frame_options(command)
        if run is packet_send:
            _add_destination_options(command)
    return parser


def _order_parser() -> argparse.ArgumentParser:
    """Orders to a session."""
    parser = argparse.ArgumentParser(prog="session", add_help=False)
    orders = parser.add_subparsers(required=True)
    receive, send = orders.add_parser("recv"), orders.add_parser("send")
    receive.set_defaults(run=_receive)
    send.set_defaults(run=_send)
    for order in (receive, send):
        _add_frame_options(order)
    _add_destination_options(send)
    return parser


def _add_frame_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=_count, required=True)
    parser.add_argument("--frame-size", type=_frame_size, required=True, metavar="BYTES")
    parser.add_argument("--stream", type=_stream, required=True)
    parser.add_argument("--timeout", type=float, default=30.0, metavar="S")


def _add_destination_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dst", type=_mac, required=True, metavar="MAC")
    parser.add_argument("--rate", type=float, default=DEFAULT_RATE_PPS, metavar="PPS")


def _count(text: str) -> int:
    if (count := int(text)) < 1:
        raise argparse.ArgumentTypeError("use 1 or more")
    return count


def _stream(text: str) -> int:
    if not 0 <= (stream := int(text)) < 1 << 32:
        raise argparse.ArgumentTypeError("use 0 to 4294967295")
    return stream


def _mac(text: str) -> bytes:
    address = bytes.fromhex(text.replace(":", ""))
    if len(address) != 6:
        raise argparse.ArgumentTypeError("use six bytes like 02:00:00:00:00:01")
    return address


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
    except BrokenPipeError:
        # nobody listens any more; what the interpreter flushes at its end must not fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = ENVIRONMENT
    except OSError as error:
        emit("refused", **Refused("system", error.errno or 0, str(error)).event())
        status = ENVIRONMENT
    return status


if __name__ == "__main__":
    sys.exit(main())
