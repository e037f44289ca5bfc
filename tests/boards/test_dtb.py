"""The device-tree reader, on small trees made here."""

from __future__ import annotations

from pathlib import Path

import libfdt
import pytest

from hil.errors import ConfigError
from hil.kernel.dtb import DeviceTree


@pytest.fixture
def tree(tmp_path: Path) -> DeviceTree:
    """/bus@1 (disabled) with a switch of two ports, and /uart@2 behind an alias."""
    writer = libfdt.FdtSw()
    writer.finish_reservemap()
    with writer.add_node(""):
        with writer.add_node("aliases"):
            writer.property_string("serial0", "/uart@2")
        with writer.add_node("bus@1"):
            writer.property_string("status", "disabled")
            writer.property("compatible", b"vendor,new\0vendor,old\0")
            with writer.add_node("ethernet-ports"):
                with writer.add_node("port@1"):
                    writer.property("ti,mac-only", b"")
                with writer.add_node("port@2"):
                    writer.property_string("status", "disabled")
        with writer.add_node("uart@2"):
            writer.property_string("status", "ok")
    path = tmp_path / "small.dtb"
    path.write_bytes(writer.as_fdt().as_bytearray())
    return DeviceTree(path)


def test_nodes_exist_by_their_exact_path(tree: DeviceTree) -> None:
    assert tree.exists("/")
    assert tree.exists("/bus@1/ethernet-ports/port@1")
    assert not tree.exists("/bus@1/ethernet-ports/port@3")
    # libfdt itself would take these two
    assert not tree.exists("/bus/ethernet-ports/port@1")
    assert not tree.exists("serial0")


def test_status_of_node_and_of_what_is_above_it(tree: DeviceTree) -> None:
    port1, port2 = tree.ethernet_ports()
    assert (tree.status(port1), tree.status(port2)) == ("okay", "disabled")
    assert not tree.enabled(port1)
    assert tree.enabled("/uart@2")


def test_properties(tree: DeviceTree) -> None:
    assert tree.strings("/bus@1", "compatible") == ("vendor,new", "vendor,old")
    assert tree.strings("/bus@1", "model") == ()
    assert tree.has("/bus@1/ethernet-ports/port@1", "ti,mac-only")
    assert not tree.has("/bus@1/ethernet-ports/port@2", "ti,mac-only")


def test_aliases(tree: DeviceTree) -> None:
    assert tree.alias("serial0") == "/uart@2"
    assert tree.alias("serial1") is None


def test_ethernet_ports_are_found_in_order(tree: DeviceTree) -> None:
    assert tree.ethernet_ports() == tuple(f"/bus@1/ethernet-ports/port@{n}" for n in (1, 2))


def test_a_missing_node_is_told_with_the_nearest_one(tree: DeviceTree) -> None:
    with pytest.raises(ConfigError) as caught:
        tree.status("/bus@1/ethernet-ports/port@3")
    assert str(caught.value) == (
        f"{tree.path}: no node /bus@1/ethernet-ports/port@3; "
        "/bus@1/ethernet-ports is there and has port@1, port@2"
    )
    with pytest.raises(ConfigError, match=r"no node port@9; / is there and has aliases, bus@1"):
        tree.status("port@9")


def test_files_that_are_no_device_tree(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        DeviceTree(tmp_path / "none.dtb")
    for content in (b"", b"\xd0\x0d", b"no device tree" * 10):
        (tmp_path / "bad.dtb").write_bytes(content)
        with pytest.raises(ConfigError, match="not a device tree"):
            DeviceTree(tmp_path / "bad.dtb")
