"""Data ports are found by their place, whatever their interfaces are called."""

from __future__ import annotations

from hil.bench import find_interface
from hil.boards.load import load_board

# The listing command's output on an AM64x as its device tree lays it out.
_BASE = "/sys/firmware/devicetree/base/bus@f4000/ethernet@8000000"
_AM64X = f"""\
end0 /sys/devices/platform/bus@f4000/8000000.ethernet {_BASE}/ethernet-ports/port@1 {_BASE}
end1 /sys/devices/platform/bus@f4000/8000000.ethernet {_BASE}/ethernet-ports/port@2 {_BASE}
eth2 /sys/devices/platform/icssg1-eth \
/sys/firmware/devicetree/base/icssg1-eth/ethernet-ports/port@0 \
/sys/firmware/devicetree/base/icssg1-eth
lo - - -
"""
_PCI = """\
eth0 /sys/devices/platform/4010000000.pcie/pci0000:00/0000:00:01.0/virtio0 - -
enp9s0 /sys/devices/platform/4010000000.pcie/pci0000:00/0000:00:03.0/0000:02:00.0 - -
eth1 /sys/devices/platform/4010000000.pcie/pci0000:00/0000:00:02.0/0000:01:00.0 - -
"""


def found(board: str, listing: str) -> dict[str, str | None]:
    return {port.name: find_interface(port, listing) for port in load_board(board).ports}


def test_ports_of_one_switch_are_told_apart_by_their_nodes() -> None:
    assert found("am64x", _AM64X) == {"port2": "end1", "icssg1-port0": "eth2"}


def test_pci_ports() -> None:
    assert found("virtual-arm64", _PCI) == {"port1": "eth1", "port2": "enp9s0"}


def test_a_port_that_is_not_there() -> None:
    without = "\n".join(line for line in _AM64X.splitlines() if not line.startswith("end1"))
    assert found("am64x", without)["port2"] is None
