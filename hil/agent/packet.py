"""Test frames through an ordinary packet socket: the link partner's end, without XDP."""

from __future__ import annotations

import errno
import socket
import struct
import time
from typing import Any

from . import frames, netdev
from .events import Refused, Stop
from .pace import Pace, reception

# Room for some seconds of frames while the interpreter is busy.
_RECEIVE_BUFFER_BYTES = 16 << 20
_SO_RCVBUFFORCE = 33
_PACKET_OUTGOING = 4
_SOL_PACKET, _PACKET_STATISTICS = 263, 6


def open_socket(ifname: str) -> socket.socket:
    """A packet socket for test frames on one interface."""
    netdev.require(ifname)
    if not netdev.is_up(ifname):
        raise Refused("interface", errno.ENETDOWN, f"{ifname} is down; set it up first")
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER_BYTES)
    sock.bind((ifname, frames.ETHERTYPE))
    return sock


def receive(sock: socket.socket, tally: frames.Tally, timeout_s: float, stop: Stop) -> None:
    """Account for frames until all have come, the time is over, or it is asked to stop."""
    sock.settimeout(0.02)
    for _ in reception(tally, timeout_s, stop):
        try:
            data, address = sock.recvfrom(65536)
        except socket.timeout:
            continue
        if address[2] != _PACKET_OUTGOING:
            tally.add(data)


def statistics(sock: socket.socket) -> dict[str, int]:
    """Frames that the socket got and, of these, lost for want of room: the partner's own loss."""
    data = sock.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
    packets, drops = struct.unpack("=II", data)
    return {"packets": packets, "drops": drops}


def send(
    sock: socket.socket, batch: list[bytes], pace: Pace, timeout_s: float, stop: Stop
) -> dict[str, Any]:
    """Send frames in order; what the kernel accepted. A full queue is waited for."""
    accepted = refused = 0
    end = time.monotonic() + timeout_s
    while accepted < len(batch) and not stop and time.monotonic() < end:
        for _ in range(pace.allowed(len(batch) - accepted)):
            try:
                sock.send(batch[accepted])
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise Refused("send", error.errno or 0, f"send: {error.strerror}") from error
                refused += 1
                time.sleep(0.001)
                continue
            accepted += 1
    return {"frames": accepted, "queue_full": refused}
