"""The replay board: a recorded console log with its timing, behind a power switch and serial port.

To labgrid it is a board like any other, as far as the console goes. It needs neither QEMU nor a
network nor root, and any log that a user sends can be run through everything that reads a console.
"""

from __future__ import annotations

import bisect
import contextlib
import math
import os
import socket
import threading
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any

from hil.clock import monotonic
from hil.errors import ConfigError
from hil.virtual.pdu import OUTLET, Pdu
from hil.virtual.recording import Piece, parse
from hil.virtual.serial import SerialBridge

# What a replay lab calls its board; there is no profile of this name.
BOARD = "replay"

# Sockets cannot wait as long as a slow replay may be silent.
_LONGEST_WAIT_S = 60.0
# So much goes out at once when many pieces are due.
_PIECES_AT_ONCE = 256


class ReplayBoard:
    """An outlet for the power unit: on() starts the recording from the beginning, off() stops it.

    What is typed is read and thrown away. After its end the recording is silent, like a board that
    hangs.
    """

    def __init__(self, pieces: Sequence[Piece], console: str | bytes, speed: float = 1.0) -> None:
        self._pieces = pieces
        self._console = console
        self._speed = speed
        self._line: socket.socket | None = None
        self._player: threading.Thread | None = None

    @property
    def powered(self) -> bool:
        return self._line is not None

    def on(self) -> None:
        if self._line is not None:
            return
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(self._console)
        except OSError:
            line.close()
            raise
        self._line = line
        self._player = threading.Thread(target=self._play, name="replay", args=(line,))
        self._player.start()

    def off(self) -> None:
        if self._line is None or self._player is None:
            return
        # the player notices, whether it waits or sends
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        self._player.join()
        self._line.close()
        self._line = self._player = None

    def _play(self, line: socket.socket) -> None:
        start_s = monotonic()
        position = 0
        # Without power the line is shut, and every use of it fails or ends.
        with contextlib.suppress(OSError):
            while position < len(self._pieces):
                _listen(line, until_s=start_s + self._pieces[position].at_s / self._speed)
                due = bisect.bisect_right(
                    self._pieces,
                    (monotonic() - start_s) * self._speed,
                    lo=position + 1,
                    hi=min(position + _PIECES_AT_ONCE, len(self._pieces)),
                    key=attrgetter("at_s"),
                )
                line.settimeout(None)
                line.sendall(b"".join(piece.data for piece in self._pieces[position:due]))
                position = due
            _listen(line, until_s=math.inf)


def _listen(line: socket.socket, *, until_s: float) -> None:
    """Throw away what is typed until then. OSError when the power has gone."""
    while (wait_s := until_s - monotonic()) > 0:
        line.settimeout(min(wait_s, _LONGEST_WAIT_S))
        with contextlib.suppress(TimeoutError):
            if not line.recv(65536):
                raise ConnectionError("no power")


def check(log: Path, speed: float) -> None:
    """ConfigError for a log that cannot be read and for a speed that is none."""
    if not (math.isfinite(speed) and speed > 0):
        raise ConfigError(f"speed {speed:g}: must be more than 0, and finite")
    if log.exists() and not log.is_file():
        raise ConfigError(f"{log}: no regular file; give a console log")
    try:
        log.open("rb").close()
    except OSError as error:
        raise ConfigError(f"{log}: {error.strerror}; give a readable console log") from error


class ReplayLab:
    """Power unit, serial port and replay board; acquired on entering, released on leaving.

    `speed` is how many times faster than recorded the log is played; ConfigError as by check().
    """

    def __init__(self, log: Path, *, speed: float = 1.0) -> None:
        check(log, speed)
        self._log = log.absolute()
        self._speed = speed
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> ReplayLab:
        with contextlib.ExitStack() as stack:
            self._serial = SerialBridge(patient=True)
            stack.callback(self._serial.stop)
            self._serial.start()
            pieces = parse(self._log.read_bytes())
            board = ReplayBoard(pieces, self._serial.board_address, self._speed)
            stack.callback(board.off)
            self._pdu = Pdu({OUTLET: board})
            stack.callback(self._pdu.stop)
            self._pdu.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def state(self) -> dict[str, Any]:
        """What the registry tells others about this lab."""
        return {
            "board": BOARD,
            "pid": os.getpid(),
            "log": str(self._log),
            "speed": self._speed,
            "serial": f"127.0.0.1:{self._serial.port}",
            "power": self._pdu.url,
            "environment": self.environment(),
        }

    def environment(self) -> dict[str, Any]:
        """This lab's values for the environment file, in the form of a lab.yaml section."""
        return {
            "resources": {
                "NetworkSerialPort": self._serial.resource(),
                "NetworkPowerPort": self._pdu.resource(),
            },
        }
