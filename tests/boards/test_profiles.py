"""The profiles that come with the framework, and the command lines that they make."""

from __future__ import annotations

import pytest

from hil.boards.load import board_names, load_board
from hil.errors import ConfigError

NFS = {"nfs_server": "192.0.2.1", "nfs_path": "/export/x", "nfs_options": "v3,tcp"}


def test_the_boards_of_the_project() -> None:
    assert board_names() == ("am62l", "am62x-sk", "am64x", "cpsw", "virtual-arm64")


@pytest.mark.parametrize("name", board_names())
def test_profile_is_named_like_its_file_and_has_ports(name: str) -> None:
    board = load_board(name)
    assert board.name == name
    assert board.ports
    tested = [port.device_tree for port in board.ports if port.device_tree]
    assert board.management.device_tree not in tested


@pytest.mark.parametrize("name", board_names())
def test_load_addresses_leave_room(name: str) -> None:
    """A distribution's Image is about 50 MB and must not run into what is loaded behind it."""
    netboot = load_board(name).netboot
    assert netboot.dtb_address - netboot.kernel_address >= 64 << 20
    if netboot.initramfs_address is not None:
        assert netboot.initramfs_address - netboot.dtb_address >= 512 << 10
    assert netboot.kernel_address % (2 << 20) == 0
    assert netboot.boot_command == {"arm64": "booti", "arm": "bootz"}[load_board(name).arch]


def test_command_line_of_a_ti_board() -> None:
    assert load_board("am64x").command_line(NFS) == (
        "console=ttyS2,115200n8 earlycon=ns16550a,mmio32,0x02800000 root=/dev/nfs "
        "nfsroot=192.0.2.1:/export/x,v3,tcp rw ip=:::::eth0:dhcp net.ifnames=0 panic=10"
    )


def test_command_line_of_the_virtual_board() -> None:
    values = {**NFS, "nfs_server": "10.0.2.2", "nfs_options": "vers=4.0,port=2049,tcp"}
    assert load_board("virtual-arm64").command_line(values) == (
        "console=ttyAMA0,115200n8 root=/dev/nfs "
        "nfsroot=10.0.2.2:/export/x,vers=4.0,port=2049,tcp rw "
        "ip=10.0.2.15::10.0.2.2:255.255.255.0::eth0:off panic=10"
    )


@pytest.mark.parametrize("name", board_names())
def test_command_line_names_what_is_missing(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"board {name}: bootargs need nfs_options, nfs_path;"):
        load_board(name).command_line({"nfs_server": "192.0.2.1", "nfs_path": ""})


@pytest.mark.parametrize("name", board_names())
def test_command_line_fits_a_line_of_uboot(name: str) -> None:
    """1024 bytes (SYS_CBSIZE on ARM), with room for setenv, labgrid's markers and a long path."""
    assert len(load_board(name).command_line(NFS)) < 512
