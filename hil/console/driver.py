"""labgrid's serial driver, without its byte-by-byte reading of network consoles."""

from __future__ import annotations

import os
import select

import attr
from labgrid.driver import SerialDriver
from labgrid.factory import target_factory

_CHUNK_BYTES = 65536


@target_factory.reg_driver
@attr.s(eq=False)
class ConsoleDriver(SerialDriver):
    """A SerialDriver that takes at once all that has arrived on a raw TCP port.

    pyserial cannot tell how much waits on a socket, so labgrid reads single bytes there, and
    pexpect rests after each and searches all it has for every pattern: 2 KB/s, less than a kernel
    prints while it boots. Other kinds of ports know what waits and are read as they were.
    """

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        # a pause for slow ptys, of no use here
        self._expect.delayafterread = None

    def _read(self, size: int = 1, timeout: float = 0.0, max_size: int | None = None) -> bytes:
        data: bytes = super()._read(size, timeout, max_size)
        if max_size is None and getattr(self.port, "protocol", "") == "raw":
            descriptor = self.serial.fileno()
            if select.select([descriptor], [], [], 0)[0]:
                data += os.read(descriptor, _CHUNK_BYTES)
        return data
