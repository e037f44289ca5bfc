"""The profiles against the real device trees of Debian's kernels (fixture `ti_dtbs`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hil.boards.load import board_names, load_board
from hil.boards.model import BoardProfile
from hil.errors import ConfigError
from hil.kernel.dtb import DeviceTree

# `compatible` of the controller -> what its driver in mainline calls itself in `ethtool -i`.
DRIVERS = {
    "ti,am642-cpsw-nuss": "am65-cpsw-nuss",
    "ti,am642-icssg-prueth": "icssg-prueth",
    "ti,cpsw-switch": "cpsw-switch",
}
BOARDS = {name: load_board(name) for name in board_names()}
MAINLINE = [name for name, board in BOARDS.items() if board.netboot.dtb_source == "mainline"]
TI = [name for name, board in BOARDS.items() if board.netboot.dtb_source != "lab"]
PORTS = [
    pytest.param(name, port, id=f"{name}-{port.name}")
    for name in MAINLINE
    for port in BOARDS[name].ports
]
DtbDirectories = dict[str, Path]


def _tree(directories: DtbDirectories, board: BoardProfile) -> DeviceTree:
    return DeviceTree(directories[board.arch] / board.netboot.dtb)


@pytest.mark.parametrize(("name", "port"), PORTS)
def test_data_port_is_there_and_enabled(ti_dtbs: DtbDirectories, name: str, port) -> None:
    tree = _tree(ti_dtbs, BOARDS[name])
    assert port.device_tree in tree.ethernet_ports()
    assert tree.enabled(port.device_tree)


@pytest.mark.parametrize(("name", "port"), PORTS)
def test_data_port_belongs_to_its_driver(ti_dtbs: DtbDirectories, name: str, port) -> None:
    tree = _tree(ti_dtbs, BOARDS[name])
    controller = port.device_tree.rsplit("/ethernet-ports/", 1)[0]
    drivers = {DRIVERS.get(text) for text in tree.strings(controller, "compatible")}
    assert port.driver in drivers


@pytest.mark.parametrize("name", MAINLINE)
def test_management_port_is_the_first(ti_dtbs: DtbDirectories, name: str) -> None:
    """U-Boot and kernel both take ethernet0, and the profile says which node that is."""
    board = BOARDS[name]
    tree = _tree(ti_dtbs, board)
    assert board.management.device_tree == tree.alias("ethernet0")
    assert tree.enabled(board.management.device_tree)


@pytest.mark.parametrize("name", MAINLINE)
def test_management_and_data_ports_are_all_ports_in_use(ti_dtbs: DtbDirectories, name: str) -> None:
    board = BOARDS[name]
    tree = _tree(ti_dtbs, board)
    named = {board.management.device_tree, *(port.device_tree for port in board.ports)}
    assert named == {node for node in tree.ethernet_ports() if tree.enabled(node)}
    aliases = {tree.alias(f"ethernet{number}") for number in range(len(named))}
    assert named == aliases


@pytest.mark.parametrize("name", ["am64x", "am62x-sk"])
def test_k3_ports_are_macs_of_their_own(ti_dtbs: DtbDirectories, name: str) -> None:
    """Without `ti,mac-only` a port would forward to the other, and counts would mean nothing."""
    board = BOARDS[name]
    tree = _tree(ti_dtbs, board)
    cpsw = [node for node in tree.ethernet_ports() if "/ethernet@8000000/" in node]
    assert len(cpsw) == 2
    assert all(tree.has(node, "ti,mac-only") for node in cpsw)


def test_cpsw_ports_are_separated_by_vlan(ti_dtbs: DtbDirectories) -> None:
    tree = _tree(ti_dtbs, BOARDS["cpsw"])
    assert all(tree.has(node, "ti,dual-emac-pvid") for node in tree.ethernet_ports())


def test_the_evm_has_only_one_port(ti_dtbs: DtbDirectories) -> None:
    """Why the profile `cpsw` is the Starter Kit and not the EVM."""
    evm = DeviceTree(ti_dtbs["arm"] / "am335x-evm.dtb")
    assert [evm.enabled(node) for node in evm.ethernet_ports()] == [True, False]


def test_icssg_firmware_is_what_the_device_tree_asks_for(ti_dtbs: DtbDirectories) -> None:
    board = BOARDS["am64x"]
    wanted = _tree(ti_dtbs, board).strings("/icssg1-eth", "firmware-name")
    assert board.firmware == tuple(f"/lib/firmware/{name}" for name in wanted)


@pytest.mark.parametrize("name", MAINLINE)
def test_linux_console_is_the_standard_output(ti_dtbs: DtbDirectories, name: str) -> None:
    """ttySn is the UART behind the alias serialn, and the one that the boot loader uses."""
    board = BOARDS[name]
    tree = _tree(ti_dtbs, board)
    number = board.console.device.removeprefix("ttyS")
    assert tree.alias(f"serial{number}") == _standard_output(tree)


@pytest.mark.parametrize("name", TI)
def test_early_console_has_the_address_of_the_console(ti_dtbs: DtbDirectories, name: str) -> None:
    """On K3 the node's own unit address is absolute; on AM335x it is the sum along the path."""
    board = BOARDS[name]
    node = _standard_output(_tree(ti_dtbs, board))
    units = [int(unit, 16) for unit in re.findall(r"@([0-9a-f]+)", node)]
    address = sum(units) if board.arch == "arm" else units[-1]
    assert board.console.earlycon is not None
    assert int(board.console.earlycon.rsplit(",", 1)[1], 16) == address


def test_am62l_needs_the_device_tree_of_tis_kernel(ti_dtbs: DtbDirectories) -> None:
    """The mainline file has no Ethernet at all, so the paths of this profile are not proved here.

    When this fails, mainline has got the ports: take `dtb_source` out of the profile, and the
    tests above prove it too.
    """
    board = BOARDS["am62l"]
    assert board.netboot.dtb_source == "ti-linux"
    tree = _tree(ti_dtbs, board)
    assert tree.ethernet_ports() == ()
    assert all(not tree.exists(port.device_tree or "") for port in board.ports)


def test_a_path_of_the_wrong_board_is_told_with_what_is_there(ti_dtbs: DtbDirectories) -> None:
    tree = _tree(ti_dtbs, BOARDS["am64x"])
    with pytest.raises(ConfigError) as caught:
        tree.status("/bus@f4000/ethernet@8000000/ethernet-ports/port@3")
    assert "/bus@f4000/ethernet@8000000/ethernet-ports is there and has port@1, port@2" in str(
        caught.value
    )


def _standard_output(tree: DeviceTree) -> str:
    (path,) = tree.strings("/chosen", "stdout-path")
    name = path.split(":")[0]
    return tree.alias(name) or name
