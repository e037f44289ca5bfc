"""A board as data: how it boots, where its data ports are, what it needs. Pure.

Every class is one mapping of a board's YAML file (`load.py` reads it); a field without a default
is a key that must be there. `problems()` of a class yields (key, text) for what types cannot say.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import attrs

from hil.console.model import Phase
from hil.console.phases import Limits
from hil.errors import ConfigError

# A memory address of the boot loader.
Address = Annotated[int, "address"]
Problems = Iterator[tuple[str, str]]
_OPTION = re.compile(r"CONFIG_[A-Z0-9_]+=(y|m|y\|m)")

# What the lab, not the profile, says about the NFS root.
LAB_VALUES = ("nfs_server", "nfs_path", "nfs_options")


@attrs.frozen
class Console:
    """The kernel's serial console; `earlycon` is the value of that kernel argument."""

    device: str
    baud: int = 115200
    earlycon: str | None = None

    @property
    def argument(self) -> str:
        """Value of the kernel argument `console`: 8 data bits and no parity, as every board has."""
        return f"{self.device},{self.baud}n8"


@attrs.frozen
class Bootloader:
    """U-Boot. `ethact` is its name of the management port; None leaves U-Boot's own choice.

    `environment` is set before anything else at each boot. Its prompt stands in the environment
    file, where labgrid's driver reads it.
    """

    ethact: str | None = None
    environment: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Netboot:
    """What is fetched by TFTP, to where, and the command that starts it.

    `kernel` and `initramfs` are file names of a kernel artifact, `dtb` one below its `dtbs/`;
    `dtb_source` is the kernel tree whose `dtb` has the profile's ports.
    """

    kernel: str
    dtb: str
    boot_command: Literal["booti", "bootz"]
    kernel_address: Address
    dtb_address: Address
    dtb_source: Literal["mainline", "ti-linux", "lab"] = "mainline"
    initramfs: str | None = None
    initramfs_address: Address | None = None
    overlay_address: Address | None = None

    def problems(self) -> Problems:
        if self.initramfs and self.initramfs_address is None:
            yield "initramfs_address", "missing; an initramfs needs its load address"


@attrs.frozen
class Management:
    """The port of NFS root and ssh, which is never tested.

    `address` is dhcp (asked on the console after boot) or static (fixed by `bootargs` and by the
    environment's NetworkService).
    """

    interface: str
    address: Literal["dhcp", "static"]
    device_tree: str | None = None


@attrs.frozen
class Port:
    """One data port. Its place finds its interface at run time: names change between kernels.

    Exactly one of `device_tree` (path of the port's node, which is also its `of_node` in sysfs)
    and `pci` (address) is given. `driver` is what `ethtool -i` says. `zero_copy` informs; what
    counts is a probe.
    """

    name: str
    driver: str
    device_tree: str | None = None
    pci: str | None = None
    zero_copy: Literal["expected", "unknown"] = "unknown"

    def problems(self) -> Problems:
        if (self.device_tree is None) == (self.pci is None):
            yield "device_tree", "give exactly one of device_tree and pci"


@attrs.frozen
class Deadlines:
    """Longest time in seconds for each phase of a boot, and for a link to come up again."""

    power_on_to_prompt: float
    dhcp: float
    tftp: float
    kernel_start: float
    login: float
    ssh: float
    link_up: float

    def problems(self) -> Problems:
        for field in attrs.fields(Deadlines):
            if getattr(self, field.name) <= 0:
                yield field.name, "must be more than 0 seconds"


@attrs.frozen
class PhaseLimits:
    """Longest time in one phase of a boot and longest silence in it, in seconds."""

    deadline: float
    silence: float

    def problems(self) -> Problems:
        for field in attrs.fields(PhaseLimits):
            if not 0 < getattr(self, field.name) < math.inf:
                yield field.name, "must be more than 0 seconds, and finite"
        if self.silence > self.deadline:
            yield "silence", f"must not be more than the deadline, {self.deadline:g} seconds"


@attrs.frozen
class Phases:
    """First limits of the phases of a boot, by the names of `hil.console.model.Phase`.

    They hold until enough boots of the board are known. A phase that is left out has none.
    """

    power: PhaseLimits | None = None
    spl: PhaseLimits | None = None
    firmware: PhaseLimits | None = None
    uboot: PhaseLimits | None = None
    tftp: PhaseLimits | None = None
    uboot_handover: PhaseLimits | None = None
    kernel: PhaseLimits | None = None
    network: PhaseLimits | None = None
    nfs: PhaseLimits | None = None
    init: PhaseLimits | None = None
    login: PhaseLimits | None = None
    ssh: PhaseLimits | None = None

    def limits(self) -> dict[Phase, Limits]:
        """What PhaseWatch wants."""
        named = ((phase, getattr(self, phase.value)) for phase in Phase)
        return {phase: Limits(given.deadline, given.silence) for phase, given in named if given}


@attrs.frozen
class Virtual:
    """The board is a machine of the virtual lab."""

    machine: Literal["qemu-arm64"]


@attrs.frozen
class BoardProfile:
    """All that the framework knows about one kind of board.

    `kernel_options` are lines like `CONFIG_NFS_FS=y`, or `CONFIG_IGB=y|m` where a module will do.
    `modules` are loaded for the data ports; `firmware` are files of the root filesystem.
    """

    name: str
    description: str
    arch: Literal["arm64", "arm"]
    console: Console
    bootloader: Bootloader
    netboot: Netboot
    bootargs: tuple[str, ...]
    management: Management
    ports: tuple[Port, ...]
    deadlines: Deadlines
    kernel_options: tuple[str, ...]
    phases: Phases = attrs.field(factory=Phases)
    modules: tuple[str, ...] = ()
    firmware: tuple[str, ...] = ()
    virtual: Virtual | None = None

    def own_values(self) -> dict[str, str]:
        """Values for the placeholders in `bootargs` that the profile itself knows."""
        values = {"console": self.console.argument, "management": self.management.interface}
        if self.console.earlycon:
            values["earlycon"] = self.console.earlycon
        return values

    def command_line(self, values: Mapping[str, str]) -> str:
        """The kernel's command line, from the profile and the lab's values (`LAB_VALUES`).

        ConfigError names the placeholders that nobody gave, or gave empty.
        """
        known = self.own_values() | {key: value for key, value in values.items() if value}
        missing = sorted(placeholders(" ".join(self.bootargs)) - known.keys())
        if missing:
            raise ConfigError(
                f"board {self.name}: bootargs need {', '.join(missing)}; set NFSRoot in the "
                "environment or lab.yaml"
            )
        return " ".join(self.bootargs).format_map(known)

    def problems(self) -> Problems:
        known = [*self.own_values(), *LAB_VALUES]
        for index, argument in enumerate(self.bootargs):
            where = f"bootargs[{index}]"
            try:
                unknown = sorted(placeholders(argument) - set(known))
            except ValueError as error:
                yield where, f"{argument!r}: {error}"
                continue
            for name in unknown:
                yield where, f"no value for {{{name}}}; there are {', '.join(known)}"
        for index, option in enumerate(self.kernel_options):
            if not _OPTION.fullmatch(option):
                yield f"kernel_options[{index}]", f"{option!r} is not like CONFIG_NAME=y or =y|m"
        names = [port.name for port in self.ports]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield "ports", f"two ports have the name {name!r}"


def placeholders(text: str) -> set[str]:
    """Names in braces. ValueError when a brace stands alone."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
