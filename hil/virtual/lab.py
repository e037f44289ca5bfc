"""One virtual lab: a board with switched power, serial port, TFTP, NFS root, ssh and link partner.

To labgrid it is a lab like any other: the result of `environment()` has the same resources, with
other hosts and ports, as a bench with a TI board.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from hil.boards.model import BoardProfile
from hil.virtual import qemu, rootfs
from hil.virtual.assets import Assets
from hil.virtual.board import VirtualBoard, choose_accelerator, dump_dtb
from hil.virtual.keys import make_key
from hil.virtual.nfs import EXPORT_PATH, NfsServer
from hil.virtual.partner import Partner
from hil.virtual.pdu import OUTLET, Pdu
from hil.virtual.ports import free_port
from hil.virtual.registry import LabRecord
from hil.virtual.serial import SerialBridge


class VirtualLab:
    """Everything is acquired on entering and released on leaving, in reverse order.

    `record` must be held by the caller; `disk` is a directory of the lab's own, made here.
    """

    def __init__(self, record: LabRecord, board: BoardProfile, assets: Assets, disk: Path) -> None:
        self._record = record
        self._board = board
        self._assets = assets
        self._disk = disk
        self._stack = contextlib.ExitStack()
        self._accelerator = choose_accelerator(assets.tools)
        self._ssh_port = free_port()
        self._key = disk / "id_ed25519"
        self._dtb = disk / board.netboot.dtb

    def __enter__(self) -> VirtualLab:
        with contextlib.ExitStack() as stack:
            self._make_disk()
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _make_disk(self) -> None:
        self._disk.mkdir(parents=True)
        (self._disk / "tftp").mkdir()
        (self._disk / "nfs").mkdir()
        make_key(self._key)
        root = self._disk / "root"
        subprocess.run(["cp", "-a", "--reflink=auto", self._assets.rootfs, root], check=True)
        rootfs.authorize(root, self._key.with_suffix(".pub").read_text())
        dump_dtb(self._assets.tools, self._accelerator, self._dtb)

    def _start(self, stack: contextlib.ExitStack) -> None:
        tools = self._assets.tools
        self._partner = Partner(self._record.namespace, len(self._board.ports))
        stack.callback(self._partner.stop)
        self._partner.start()

        self._nfs = NfsServer(tools, self._disk / "root", self._disk / "nfs")
        stack.callback(self._nfs.stop)
        self._nfs.start()

        serial_socket = self._record.directory / "serial.sock"
        self._serial = SerialBridge(serial_socket)
        stack.callback(self._serial.stop)
        self._serial.start()

        machine = qemu.Machine(
            bios=tools.firmware,
            data_directory=tools.qemu_data,
            tftp_directory=self._disk / "tftp",
            ssh_port=self._ssh_port,
            serial_socket=serial_socket,
            accelerator=self._accelerator,
            data_ports=len(self._board.ports),
        )
        board = VirtualBoard(tools, machine, self._disk / "qemu.log", self._partner.open_taps)
        stack.callback(board.off)
        self._pdu = Pdu({OUTLET: board})
        stack.callback(self._pdu.stop)
        self._pdu.start()

    def state(self) -> dict[str, Any]:
        """What the registry tells others about this lab."""
        return {
            "board": self._board.name,
            "pid": os.getpid(),
            "accelerator": self._accelerator,
            "serial": f"127.0.0.1:{self._serial.port}",
            "power": self._pdu.url,
            "ssh_port": self._ssh_port,
            "key": str(self._key),
            "link_partner": self._partner.namespace,
            "nfs_port": self._nfs.port,
            "disk": str(self._disk),
            "environment": self.environment(),
        }

    def environment(self) -> dict[str, Any]:
        """This lab's values for the environment file, in the form of a lab.yaml section."""
        interfaces = zip(self._board.ports, self._partner.interfaces, strict=True)
        return {
            "resources": {
                "NetworkSerialPort": self._serial.resource(),
                "NetworkPowerPort": self._pdu.resource(),
                "TFTPProvider": {"internal": str(self._disk / "tftp") + "/", "external": ""},
                "NetworkService": {"address": "127.0.0.1", "port": self._ssh_port},
                "NFSRoot": {
                    "server": qemu.HOST_ADDRESS,
                    "path": EXPORT_PATH,
                    "options": f"vers=4.0,port={self._nfs.port},tcp",
                    "local": str(self._disk / "root"),
                },
                "LinkPartner": {
                    "namespace": self._partner.namespace,
                    "ports": {port.name: interface for port, interface in interfaces},
                },
            },
            "drivers": {
                "SSHDriver": {"keyfile": str(self._key)},
                "NetbootStrategy": {
                    "kernel": str(self._assets.kernel),
                    "dtb": str(self._dtb),
                    "tftp_server": qemu.HOST_ADDRESS,
                },
            },
        }
