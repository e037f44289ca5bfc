"""What the kernel says about a network interface: sysfs, ethtool, route and generic netlink.

Numbers are those of linux/rtnetlink.h, if_link.h, genetlink.h, netdev.h and ethtool.h.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import platform
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

from .events import Refused

_SIOCETHTOOL = 0x8946
_ETHTOOL_GDRVINFO, _ETHTOOL_GCHANNELS = 0x03, 0x3C
_NETLINK_ROUTE, _NETLINK_GENERIC = 0, 16
_NLM_F_REQUEST, _NLM_F_ACK = 1, 4
_NLMSG_ERROR = 2
_RTM_NEWLINK, _RTM_GETLINK = 16, 18
_IFLA_XDP, _IFLA_XDP_ATTACHED, _IFLA_XDP_PROG_ID = 43, 2, 4
_GENL_ID_CTRL, _CTRL_CMD_GETFAMILY = 0x10, 3
_CTRL_ATTR_FAMILY_ID, _CTRL_ATTR_FAMILY_NAME = 1, 2
_NETDEV_CMD_DEV_GET = 1
_NETDEV_A_DEV_IFINDEX, _NETDEV_A_DEV_XDP_FEATURES, _NETDEV_A_DEV_ZC_MAX_SEGS = 1, 3, 4
_TYPE_MASK = 0x3FFF  # without the flags for nested attributes and byte order

# Bits of enum netdev_xdp_act, by the names of the netdev netlink specification.
XDP_FEATURES = (
    *("basic", "redirect", "ndo-xmit", "xsk-zerocopy"),
    *("hw-offload", "rx-sg", "ndo-xmit-sg"),
)
# enum of IFLA_XDP_ATTACHED
_ATTACHED = {0: None, 1: "native", 2: "skb", 3: "hardware", 4: "several"}


def require(ifname: str) -> int:
    """The interface's index. Refused when there is none of this name."""
    try:
        return socket.if_nametoindex(ifname)
    except OSError:
        names = ", ".join(name for _, name in socket.if_nameindex())
        reason = f"{ifname}: no such interface; there are {names}"
        raise Refused("interface", errno.ENODEV, reason) from None


def mac(ifname: str) -> str:
    return _sysfs(ifname, "address")


def is_up(ifname: str) -> bool:
    return bool(int(_sysfs(ifname, "flags"), 16) & 1)


def has_carrier(ifname: str) -> bool:
    """False also for an interface that is down, where sysfs refuses the answer.

    The operational state follows the carrier when the transmit queues are started: until then
    frames are dropped.
    """
    try:
        state = _sysfs(ifname, "operstate")
        return _sysfs(ifname, "carrier") == "1" and state in ("up", "unknown")
    except OSError:
        return False


def describe(ifname: str) -> dict[str, Any]:
    """All that the `probe` command tells; what the kernel cannot say is None."""
    ifindex = require(ifname)
    features, segments = xdp_capabilities(ifindex)
    driver, bus_info = driver_info(ifname)
    return {
        "ifname": ifname,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "driver": driver,
        "bus_info": bus_info,
        "mac": mac(ifname),
        "mtu": int(_sysfs(ifname, "mtu")),
        "up": is_up(ifname),
        "carrier": has_carrier(ifname),
        "xdp_features": features,
        "zc_max_segs": segments,
        "channels": channels(ifname),
    }


def _sysfs(ifname: str, name: str) -> str:
    return (Path("/sys/class/net") / ifname / name).read_text().strip()


def driver_info(ifname: str) -> tuple[Optional[str], Optional[str]]:
    """Driver and bus address, as `ethtool -i` shows them."""
    answer = _ethtool(ifname, struct.pack("=I192s", _ETHTOOL_GDRVINFO, b""))
    if answer is None:
        return None, None
    _, driver, _, _, bus_info = struct.unpack_from("=I32s32s32s32s", answer)
    return _text(driver), _text(bus_info)


def channels(ifname: str) -> Optional[dict[str, int]]:
    """Current numbers of queues, as `ethtool -l` shows them."""
    answer = _ethtool(ifname, struct.pack("=9I", _ETHTOOL_GCHANNELS, *[0] * 8))
    if answer is None:
        return None
    rx, tx, other, combined = struct.unpack("=9I", answer)[5:]
    return {"rx": rx, "tx": tx, "other": other, "combined": combined}


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode(errors="replace")


def _ethtool(ifname: str, command: bytes) -> Optional[bytes]:
    data = array.array("B", command)
    request = struct.pack("16sP16x", ifname.encode(), data.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            fcntl.ioctl(sock, _SIOCETHTOOL, request)
        except OSError:
            return None
    return data.tobytes()


def attached_program(ifindex: int) -> tuple[Optional[str], Optional[int]]:
    """Mode and id of the XDP program on an interface; (None, None) without one."""
    request = struct.pack("=BBHiII", 0, 0, 0, ifindex, 0, 0)
    for kind, message in _ask(_NETLINK_ROUTE, _RTM_GETLINK, request):
        if kind == _RTM_NEWLINK:
            xdp = dict(attributes(dict(attributes(message[16:])).get(_IFLA_XDP, b"")))
            mode = _ATTACHED[xdp.get(_IFLA_XDP_ATTACHED, b"\0")[0]]
            number = xdp.get(_IFLA_XDP_PROG_ID)
            return mode, struct.unpack("=I", number)[0] if number else None
    return None, None


def xdp_capabilities(ifindex: int) -> tuple[Optional[list[str]], Optional[int]]:
    """The driver's XDP features and its zero-copy segments; None where the kernel is too old."""
    try:
        family = _family(b"netdev")
        body = attribute(_NETDEV_A_DEV_IFINDEX, struct.pack("=I", ifindex))
        request = struct.pack("=BBH", _NETDEV_CMD_DEV_GET, 1, 0) + body
        for kind, message in _ask(_NETLINK_GENERIC, family, request):
            if kind == family:
                found = dict(attributes(message[4:]))
                bits = struct.unpack("=Q", found[_NETDEV_A_DEV_XDP_FEATURES])[0]
                segments = found.get(_NETDEV_A_DEV_ZC_MAX_SEGS)
                return (
                    [name for bit, name in enumerate(XDP_FEATURES) if bits >> bit & 1],
                    struct.unpack("=I", segments)[0] if segments else None,
                )
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EOPNOTSUPP):
            raise
    return None, None


def _family(name: bytes) -> int:
    """Number of a generic netlink family. OSError ENOENT when the kernel has none of this name."""
    body = attribute(_CTRL_ATTR_FAMILY_NAME, name + b"\0")
    request = struct.pack("=BBH", _CTRL_CMD_GETFAMILY, 1, 0) + body
    for kind, message in _ask(_NETLINK_GENERIC, _GENL_ID_CTRL, request):
        if kind == _GENL_ID_CTRL:
            number = dict(attributes(message[4:]))[_CTRL_ATTR_FAMILY_ID]
            return int(struct.unpack("=H", number)[0])
    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))


def attribute(kind: int, value: bytes) -> bytes:
    """One netlink attribute, padded."""
    padding = b"\0" * (-len(value) % 4)
    return struct.pack("=HH", len(value) + 4, kind) + value + padding


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Types and values of a run of netlink attributes; ends at the first that is cut off."""
    offset = 0
    while offset + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, offset)
        if length < 4 or offset + length > len(data):
            return
        yield kind & _TYPE_MASK, data[offset + 4 : offset + length]
        offset += length + (-length % 4)


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Types and bodies of the netlink messages in one datagram."""
    offset = 0
    while offset + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, offset)
        if length < 16:
            return
        yield kind, data[offset + 16 : offset + length]
        offset += length + (-length % 4)


def _ask(protocol: int, kind: int, body: bytes) -> list[tuple[int, bytes]]:
    """Send one request and collect its answers. OSError with the kernel's error number."""
    header = struct.pack("=IHHII", 16 + len(body), kind, _NLM_F_REQUEST | _NLM_F_ACK, 1, 0)
    answers = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as sock:
        sock.settimeout(5)
        sock.send(header + body)
        while True:
            for number, message in messages(sock.recv(1 << 17)):
                if number != _NLMSG_ERROR:
                    answers.append((number, message))
                    continue
                code = -struct.unpack_from("=i", message)[0]
                if code:
                    raise OSError(code, os.strerror(code))
                return answers
