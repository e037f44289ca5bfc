"""The serial port outlives the board: power cycles, clients that come and go, floods."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.virtual.serial import BACKLOG_BYTES, SerialBridge


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[SerialBridge]:
    bridge = SerialBridge(tmp_path / "console.sock")
    bridge.start()
    yield bridge
    bridge.stop()


def board(tmp_path: Path) -> socket.socket:
    """The board's end of the line, as QEMU opens it at power-on."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(5)
    sock.connect(str(tmp_path / "console.sock"))
    return sock


def client(bridge: SerialBridge) -> socket.socket:
    return socket.create_connection(("127.0.0.1", bridge.port), 5)


def read(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (chunk := sock.recv(size - len(data))):
        data += chunk
    return data


def test_both_directions(bridge: SerialBridge, tmp_path: Path) -> None:
    with board(tmp_path) as qemu, client(bridge) as user:
        qemu.sendall(b"=> ")
        assert read(user, 3) == b"=> "
        user.sendall(b"dhcp\n")
        assert read(qemu, 5) == b"dhcp\n"


def test_port_stays_open_over_a_power_cycle(bridge: SerialBridge, tmp_path: Path) -> None:
    with client(bridge) as user:
        for text in (b"first boot", b"second boot"):
            with board(tmp_path) as qemu:
                qemu.sendall(text)
                assert read(user, len(text)) == text


def test_output_before_the_first_client_is_kept(bridge: SerialBridge, tmp_path: Path) -> None:
    with board(tmp_path) as qemu:
        qemu.sendall(b"U-Boot SPL")
        with client(bridge) as user:
            assert read(user, 10) == b"U-Boot SPL"


def test_only_the_end_of_unread_output_is_kept(bridge: SerialBridge, tmp_path: Path) -> None:
    with board(tmp_path) as qemu:
        qemu.sendall(b"a" * (4 * BACKLOG_BYTES) + b"end")
        qemu.shutdown(socket.SHUT_WR)
        assert qemu.recv(1) == b""  # the bridge has read everything and hung up
    with client(bridge) as user:
        kept = read(user, BACKLOG_BYTES)
    assert len(kept) == BACKLOG_BYTES
    assert kept.endswith(b"aend")


def test_a_second_client_is_turned_away(bridge: SerialBridge, tmp_path: Path) -> None:
    with board(tmp_path) as qemu, client(bridge) as holder:
        holder.sendall(b"x")
        assert read(qemu, 1) == b"x"  # the bridge knows its holder now
        with client(bridge) as intruder:
            assert intruder.recv(1) == b""
        holder.sendall(b"y")
        assert read(qemu, 1) == b"y"
