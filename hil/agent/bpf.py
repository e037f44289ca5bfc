"""XDP programs without compiler or library: instructions, maps and links by the bpf() system call.

Layouts and numbers are those of linux/bpf.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

from .events import Refused
from .frames import ETHERTYPE

# The system call's number by machine (from the kernel's syscall tables).
_SYSCALLS = {"x86_64": 321, "aarch64": 280, "armv7l": 386, "armv8l": 386, "riscv64": 280}
_MAP_CREATE, _MAP_UPDATE_ELEM, _PROG_LOAD, _LINK_CREATE = 0, 2, 5, 28
_MAP_TYPE_XSKMAP = 17
_PROG_TYPE_XDP = 6
_ATTACH_TYPE_XDP = 37
_FUNC_REDIRECT_MAP = 51
_PSEUDO_MAP_FD = 1
XDP_PASS = 2
# XDP_FLAGS_SKB_MODE and XDP_FLAGS_DRV_MODE of linux/if_link.h
MODES = {"skb": 1 << 1, "native": 1 << 2}

_LOG_BYTES = 1 << 16
_libc = ctypes.CDLL(None, use_errno=True)


def instruction(code: int, dst: int = 0, src: int = 0, offset: int = 0, value: int = 0) -> bytes:
    """One instruction in the kernel's eight bytes."""
    return struct.pack("=BBhi", code, dst | src << 4, offset, value)


def redirect_program(map_fd: int) -> bytes:
    """Test frames go to the socket of their receive queue, all others on to the stack.

    So ARP, ssh and ping go on living on a port that is under test. A queue without a socket passes
    its frames as well.
    """
    # What a 16-bit load gives for the two bytes on the wire.
    ethertype = struct.unpack("=H", struct.pack("!H", ETHERTYPE))[0]
    return b"".join(
        (
            instruction(0xBF, dst=6, src=1),  # r6 = context
            instruction(0x61, dst=2, src=1, offset=0),  # r2 = data
            instruction(0x61, dst=3, src=1, offset=4),  # r3 = data_end
            instruction(0xBF, dst=4, src=2),  # r4 = r2 + 14
            instruction(0x07, dst=4, value=14),
            instruction(0x2D, dst=4, src=3, offset=8),  # a shorter frame passes
            instruction(0x69, dst=4, src=2, offset=12),  # r4 = ethertype
            instruction(0x55, dst=4, offset=6, value=ethertype),  # another one passes
            instruction(0x61, dst=2, src=6, offset=16),  # r2 = rx_queue_index
            instruction(0x18, dst=1, src=_PSEUDO_MAP_FD, value=map_fd),  # r1 = map
            instruction(0x00),
            instruction(0xB7, dst=3, value=XDP_PASS),  # r3 = verdict without a socket
            instruction(0x85, value=_FUNC_REDIRECT_MAP),
            instruction(0x95),
            instruction(0xB7, dst=0, value=XDP_PASS),
            instruction(0x95),
        )
    )


def create_xskmap(entries: int) -> int:
    """A map from receive queue to AF_XDP socket; its descriptor."""
    attributes = struct.pack("=IIII", _MAP_TYPE_XSKMAP, 4, 4, entries)
    return _bpf("create a socket map", _MAP_CREATE, attributes)


def update_map(map_fd: int, key: int, value: int) -> None:
    keys = ctypes.create_string_buffer(struct.pack("=I", key), 4)
    values = ctypes.create_string_buffer(struct.pack("=I", value), 4)
    pointers = (map_fd, 0, ctypes.addressof(keys), ctypes.addressof(values), 0)
    _bpf("enter the socket into the map", _MAP_UPDATE_ELEM, struct.pack("=IIQQQ", *pointers))


def load_program(instructions: bytes) -> int:
    """Load an XDP program; its descriptor. Refused with the verifier's last line."""
    code = ctypes.create_string_buffer(instructions, len(instructions))
    licence = ctypes.create_string_buffer(b"GPL")
    log = ctypes.create_string_buffer(_LOG_BYTES)
    attributes = struct.pack(
        "=IIQQIIQII16s",
        _PROG_TYPE_XDP,
        len(instructions) // 8,
        ctypes.addressof(code),
        ctypes.addressof(licence),
        1,
        _LOG_BYTES,
        ctypes.addressof(log),
        0,
        0,
        b"hil",
    )
    try:
        return _bpf("load the XDP program", _PROG_LOAD, attributes)
    except Refused as error:
        said = log.value.decode(errors="replace").strip().splitlines()
        reason = f"{error.reason}: {said[-1]}" if said else error.reason
        raise Refused("attach", error.number, reason) from error


def attach(program_fd: int, ifindex: int, mode: str) -> int:
    """Attach a program by a link; its descriptor. The program goes when the descriptor does."""
    attributes = struct.pack("=IIII", program_fd, ifindex, _ATTACH_TYPE_XDP, MODES[mode])
    return _bpf(f"attach an XDP program in {mode} mode", _LINK_CREATE, attributes)


def _bpf(what: str, command: int, attributes: bytes) -> int:
    number = _SYSCALLS.get(platform.machine())
    if number is None and platform.machine().startswith("i") and sys.maxsize < 2**32:
        number = 357
    if number is None:
        raise Refused("attach", errno.ENOSYS, f"bpf() is not known on {platform.machine()}")
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    result: int = _libc.syscall(number, command, buffer, len(attributes))
    if result < 0:
        code = ctypes.get_errno()
        raise Refused("attach", code, f"{what}: {os.strerror(code)}")
    return result
