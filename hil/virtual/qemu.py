"""QEMU's command line for a virtual board. Pure: it decides everything and starts nothing."""

from __future__ import annotations

from pathlib import Path

import attrs

# QEMU's own prefix for locally administered addresses; the last octet tells the port.
_MAC_PREFIX = "52:54:00:48:49"
MANAGEMENT_MAC = f"{_MAC_PREFIX}:01"

PROCESSORS = 2
MEMORY_MIB = 1024

# The user network's fixed addresses: gateway, TFTP and NFS are 10.0.2.2, the guest is 10.0.2.15.
HOST_ADDRESS = "10.0.2.2"
GUEST_ADDRESS = "10.0.2.15"


def data_port_mac(index: int) -> str:
    """MAC address of data port `index` (0, 1, ...) on the board's side."""
    return f"{_MAC_PREFIX}:{0x10 + index:02x}"


@attrs.frozen
class Machine:
    """What a virtual board is made of.

    `tap_fds` has one open tap descriptor a data port, in port order; None leaves the port
    without a cable. `serial_socket` is a UNIX socket on which somebody already listens.
    """

    bios: Path
    data_directory: Path
    tftp_directory: Path
    ssh_port: int
    serial_socket: Path
    accelerator: str = "tcg"
    memory_mib: int = MEMORY_MIB
    processors: int = PROCESSORS
    data_ports: int = 2
    tap_fds: tuple[int, ...] | None = None


def with_taps(machine: Machine, tap_fds: tuple[int, ...]) -> Machine:
    """The same machine with cables in its data ports."""
    return attrs.evolve(machine, tap_fds=tap_fds)


def dtb_arguments(accelerator: str, bios: Path, target: Path) -> list[str]:
    """Arguments that make QEMU write its device tree to `target` and end.

    The firmware has to be named: without one the machine has a GPIO block that it lacks with one,
    and a kernel that touches it there is reset.
    """
    return [
        *_hardware(accelerator, PROCESSORS, MEMORY_MIB),
        *("-bios", str(bios)),
        *("-machine", f"dumpdtb={target}"),
    ]


def probe_arguments(accelerator: str, bios: Path, data_directory: Path) -> list[str]:
    """Arguments for a machine that only shows its boot loader's banner on standard output."""
    return [
        *_hardware(accelerator, 1, 256),
        *("-L", str(data_directory), "-bios", str(bios), "-serial", "stdio"),
    ]


def _hardware(accelerator: str, processors: int, memory_mib: int) -> list[str]:
    return [
        *("-nodefaults", "-display", "none", "-no-user-config"),
        # version 3 because that is what KVM offers on servers
        *("-machine", "virt,gic-version=3"),
        *("-cpu", "host" if accelerator == "kvm" else "cortex-a57"),
        *("-accel", "kvm" if accelerator == "kvm" else "tcg,thread=multi"),
        *("-smp", str(processors), "-m", str(memory_mib)),
    ]


def arguments(machine: Machine) -> list[str]:
    """Arguments for qemu-system-aarch64, program name excluded."""
    management = (
        f"user,id=management,tftp={machine.tftp_directory},"
        f"hostfwd=tcp:127.0.0.1:{machine.ssh_port}-{GUEST_ADDRESS}:22"
    )
    argv = [
        *_hardware(machine.accelerator, machine.processors, machine.memory_mib),
        *("-L", str(machine.data_directory)),
        *("-bios", str(machine.bios)),
        # The listening side is the lab: its serial port outlives every power cycle.
        *("-chardev", f"socket,id=console,path={machine.serial_socket},server=off"),
        *("-serial", "chardev:console"),
        *("-netdev", management),
        *("-device", f"virtio-net-pci,netdev=management,mac={MANAGEMENT_MAC},romfile="),
    ]
    for index in range(machine.data_ports):
        argv += _data_port(index, machine.tap_fds)
    return argv


def _data_port(index: int, tap_fds: tuple[int, ...] | None) -> list[str]:
    number = index + 1
    kind = f"tap,fd={tap_fds[index]}" if tap_fds else f"hubport,hubid={number}"
    cable = f"{kind},id=data{number}"
    # A root port each: two 82576 on one bus collide in their virtual-function slots.
    return [
        *("-device", f"pcie-root-port,id=slot{number},chassis={number},bus=pcie.0"),
        *("-netdev", cable),
        "-device",
        f"igb,bus=slot{number},netdev=data{number},mac={data_port_mac(index)},romfile=",
    ]
