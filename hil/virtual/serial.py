"""The virtual board's serial port: a TCP port that outlives the board's power cycles.

QEMU's own TCP serial dies with QEMU. Here the lab owns both listening sockets, QEMU connects to the
inner one each time it is powered, and one client at a time holds the outer one, as with ser2net.
Like a USB bridge it keeps a little of what was printed while nobody listened.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from pathlib import Path
from typing import Any

# What a closed port remembers; Linux' tty buffer holds 64 KiB as well (TTYB_DEFAULT_MEM_LIMIT).
BACKLOG_BYTES = 65536
# A client that does not read is cut off here instead of stopping the board.
CLIENT_LIMIT_BYTES = 16 << 20


class SerialBridge:
    """Carries bytes between the board's console (a UNIX socket) and one TCP client.

    Without a path the board's socket has no file, only the name `board_address`. A `patient` bridge
    lets the board wait for a client that does not read, which a replayed board can do.
    """

    def __init__(self, board_socket: Path | None = None, *, patient: bool = False) -> None:
        self._patient = patient
        self._board_listener = socket.socket(socket.AF_UNIX)
        self._board_listener.bind(str(board_socket or ""))  # "": the kernel finds a name
        self._client_listener = socket.create_server(("127.0.0.1", 0))
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._board: socket.socket | None = None
        self._client: socket.socket | None = None
        self._to_client = bytearray()
        self._to_board = bytearray()
        self._thread = threading.Thread(target=self._serve, name="serial")

    @property
    def port(self) -> int:
        return int(self._client_listener.getsockname()[1])

    @property
    def board_address(self) -> str | bytes:
        """Where the board connects at each power-on."""
        address: str | bytes = self._board_listener.getsockname()
        return address

    def resource(self) -> dict[str, Any]:
        """The values of labgrid's NetworkSerialPort."""
        return {"host": "127.0.0.1", "port": self.port}

    def start(self) -> None:
        self._board_listener.listen()
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._wake_sender.send(b"x")
            self._thread.join()
        for sock in (
            self._board,
            self._client,
            self._board_listener,
            self._client_listener,
            self._wake_receiver,
            self._wake_sender,
        ):
            if sock is not None:
                sock.close()

    def _serve(self) -> None:
        while True:
            with selectors.DefaultSelector() as selector:
                for sock, events in self._interests():
                    selector.register(sock, events)
                ready = {key.fileobj: events for key, events in selector.select()}
            if self._wake_receiver in ready:
                return
            if self._board_listener in ready:
                self._replace_board()
            if self._client_listener in ready:
                self._replace_client()
            if self._board in ready:
                self._serve_board(ready[self._board])
            if self._client in ready:
                self._serve_client(ready[self._client])

    def _interests(self) -> list[tuple[socket.socket, int]]:
        """What to wait for now: output is watched only while there is something to send."""
        read, write = selectors.EVENT_READ, selectors.EVENT_WRITE
        interests = [
            (self._wake_receiver, read),
            (self._board_listener, read),
            (self._client_listener, read),
        ]
        events = (0 if self._client_is_behind() else read) | (write if self._to_board else 0)
        if self._board and events:
            interests.append((self._board, events))
        if self._client:
            interests.append((self._client, read | (write if self._to_client else 0)))
        return interests

    def _client_is_behind(self) -> bool:
        """Whether a patient bridge takes nothing from the board now."""
        return self._patient and self._client is not None and len(self._to_client) > BACKLOG_BYTES

    def _replace_board(self) -> None:
        self._drop_board()
        self._board, _ = self._board_listener.accept()
        self._board.setblocking(False)

    def _replace_client(self) -> None:
        client, _ = self._client_listener.accept()
        if self._client is not None:
            # One holder at a time, as with a real port: the newcomer is turned away.
            client.close()
            return
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client = client

    def _serve_board(self, events: int) -> None:
        assert self._board is not None
        data = _receive(self._board) if events & selectors.EVENT_READ else None
        if data == b"":
            self._drop_board()
            return
        self._to_client += data or b""
        if self._client is None:
            del self._to_client[:-BACKLOG_BYTES]
        elif len(self._to_client) > CLIENT_LIMIT_BYTES:
            self._drop_client()
        if events & selectors.EVENT_WRITE:
            _send(self._board, self._to_board)

    def _serve_client(self, events: int) -> None:
        assert self._client is not None
        data = _receive(self._client) if events & selectors.EVENT_READ else None
        if data == b"":
            self._drop_client()
            return
        if self._board is not None:  # a board without power hears nothing
            self._to_board += data or b""
        if events & selectors.EVENT_WRITE:
            _send(self._client, self._to_client)

    def _drop_board(self) -> None:
        if self._board is not None:
            self._board.close()
        self._board = None
        self._to_board.clear()

    def _drop_client(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None
        del self._to_client[:-BACKLOG_BYTES]


def _receive(sock: socket.socket) -> bytes | None:
    """Bytes that are there; b"" at the end of the connection, None when nothing came."""
    try:
        return sock.recv(65536)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _send(sock: socket.socket, buffer: bytearray) -> None:
    # A peer that has gone shows up as end of file at the next read, where it is handled.
    with contextlib.suppress(OSError):
        del buffer[: sock.send(buffer)]
