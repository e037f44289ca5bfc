"""TCP ports on loopback."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from hil.errors import LabError

_LOWEST = 10000


def free_port() -> int:
    """A TCP port on loopback that nobody listens on.

    It lies below the range from which the kernel takes ports by itself, so that it is still free
    when a board is powered on again minutes later.
    """
    low, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    for port in random.sample(range(_LOWEST, int(low)), 200):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise LabError("no free TCP port was found on 127.0.0.1; end some listeners")


def answers(port: int) -> bool:
    """Whether something accepts connections on this loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
