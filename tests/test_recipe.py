"""What is typed at the U-Boot prompt, for real boards' profiles and for the virtual one."""

from __future__ import annotations

import attrs
import pytest

from hil.boards.load import board_names, load_board
from hil.strategies.recipe import LINE_LIMIT_BYTES, Payload, StagedFile, boot_line, steps

VALUES = {"nfs_server": "192.0.2.1", "nfs_path": "/srv/nfs", "nfs_options": "v3,tcp"}


def payload(name: str, **changes: object) -> Payload:
    board = load_board(name)
    initramfs = StagedFile("hil-3-initramfs", 0x300) if board.netboot.initramfs else None
    plain = Payload(
        kernel=StagedFile("hil-1-Image", 0x3140000),
        dtb=StagedFile("hil-2-board.dtb", 0x10000),
        initramfs=initramfs,
        tftp_server="192.0.2.1",
        command_line=board.command_line(VALUES),
    )
    return attrs.evolve(plain, **changes)


def lines(name: str, **changes: object) -> list[str]:
    return [step.command for step in steps(load_board(name), payload(name, **changes))]


def test_am64x_as_a_whole() -> None:
    assert lines("am64x") == [
        "setenv autoload no; setenv netretry no; setenv ethact ethernet@8000000port@1",
        "dhcp",
        "setenv serverip 192.0.2.1",
        "tftpboot 0x82000000 hil-1-Image && printenv filesize",
        "tftpboot 0x88000000 hil-2-board.dtb && printenv filesize",
        'setenv bootargs "console=ttyS2,115200n8 earlycon=ns16550a,mmio32,0x02800000 root=/dev/nfs '
        'nfsroot=192.0.2.1:/srv/nfs,v3,tcp rw ip=:::::eth0:dhcp net.ifnames=0 panic=10"',
    ]
    board = load_board("am64x")
    assert boot_line(board, payload("am64x")) == "booti 0x82000000 - 0x88000000"


def test_32_bit_boards_use_bootz() -> None:
    assert boot_line(load_board("cpsw"), payload("cpsw")).startswith("bootz 0x82000000 - ")


def test_initramfs_goes_with_its_size() -> None:
    line = boot_line(load_board("virtual-arm64"), payload("virtual-arm64"))
    assert line == "booti 0x41000000 0x50000000:0x300 0x4e000000"


def test_server_of_dhcp_is_kept_when_none_is_given() -> None:
    assert not any("serverip" in line for line in lines("am64x", tftp_server=""))


@pytest.mark.parametrize("name", board_names())
def test_server_is_set_after_dhcp_which_may_overwrite_it(name: str) -> None:
    typed = lines(name)
    assert typed.index("dhcp") < typed.index("setenv serverip 192.0.2.1")


@pytest.mark.parametrize("name", board_names())
def test_lines_fit_the_prompt(name: str) -> None:
    assert max(map(len, lines(name))) <= LINE_LIMIT_BYTES


def test_many_settings_are_split_over_lines() -> None:
    board = load_board("am64x")
    many = {f"variable{number}": "x" * 100 for number in range(30)}
    board = attrs.evolve(board, bootloader=attrs.evolve(board.bootloader, environment=many))
    typed = [step.command for step in steps(board, payload("am64x"))]
    assert max(map(len, typed)) <= LINE_LIMIT_BYTES
    assert sum(line.count("setenv variable") for line in typed) == 30


def test_every_transfer_knows_its_size() -> None:
    sizes = [step.size_bytes for step in steps(load_board("am64x"), payload("am64x")) if step.file]
    assert sizes == [0x3140000, 0x10000]
