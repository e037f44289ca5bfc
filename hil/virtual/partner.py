"""The virtual link partner: a network namespace with one tap a data port of the board.

A tap is persistent and lives in the namespace; its descriptor is opened anew for each QEMU. So the
partner's port exists while the board is off, and then has no carrier, like the end of a real cable.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from pyroute2 import IPRoute, netns

from hil.errors import LabError

# From linux/if_tun.h
_TUNSETIFF = 0x400454CA
_TUNSETPERSIST = 0x400454CB
_IFF_TAP = 0x0002
_IFF_NO_PI = 0x1000
_IFF_VNET_HDR = 0x4000


class Partner:
    """Owns the namespace and its taps from start() to stop()."""

    def __init__(self, namespace: str, ports: int) -> None:
        self.namespace = namespace
        self.interfaces = tuple(f"tap{index}" for index in range(ports))

    def start(self) -> None:
        """Create namespace and taps, all interfaces up. LabError when that is not permitted."""
        try:
            netns.create(self.namespace)
            with inside(self.namespace):
                for interface in self.interfaces:
                    descriptor = _open_tap(interface)
                    fcntl.ioctl(descriptor, _TUNSETPERSIST, 1)
                    os.close(descriptor)
                    # Only test frames may cross the cable: no router or neighbour discovery.
                    Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6").write_text("1")
                _set_up(("lo", *self.interfaces))
        except OSError as error:
            raise LabError(
                f"network namespace {self.namespace} could not be made: {error}; "
                "the virtual lab needs root and /dev/net/tun"
            ) from error

    def open_taps(self) -> tuple[int, ...]:
        """Descriptors for QEMU, one a port; the caller closes them after QEMU has started."""
        with inside(self.namespace):
            return tuple(_open_tap(interface) for interface in self.interfaces)

    def stop(self) -> None:
        remove_namespace(self.namespace)


def remove_namespace(namespace: str) -> None:
    """Remove a namespace and with it the taps inside; it may be gone already."""
    with contextlib.suppress(FileNotFoundError):
        netns.remove(namespace)


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Move the calling thread into a network namespace and back again."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        netns.setns(namespace)
        try:
            yield
        finally:
            netns.setns(home)
    finally:
        os.close(home)


def _open_tap(interface: str) -> int:
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    try:
        # The headers of virtio let QEMU hand over checksum and segmentation information.
        flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", interface.encode(), flags))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _set_up(interfaces: tuple[str, ...]) -> None:
    with IPRoute() as ip:
        for interface in interfaces:
            ip.link("set", index=ip.link_lookup(ifname=interface)[0], state="up")
