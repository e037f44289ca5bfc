"""The strategy that netboots a board through U-Boot: one class for every board.

What differs between boards is data in the board profile; what differs between labs is data in the
environment. A failed transition leaves the board off the books (`unknown`), and the next one starts
with its power, so one failure does not spoil the rest of a session.
"""

from __future__ import annotations

import contextlib
import enum
import math
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attr
from labgrid.binding import BindingState
from labgrid.driver.exception import ExecutionError
from labgrid.factory import target_factory
from labgrid.step import step as labgrid_step
from labgrid.strategy import Strategy
from labgrid.util.managedfile import ManagedFileError

from hil.boards.load import load_board
from hil.boards.model import BoardProfile
from hil.console.model import Phase
from hil.console.phases import Limits
from hil.errors import ConfigError, LabError, TargetError
from hil.kernel.artifacts import KernelArtifact, variant_of
from hil.kernel.stage import stage_modules, unique_names
from hil.results.history import BoardHistory
from hil.strategies import recipe
from hil.strategies.failures import (
    console_errors,
    last_line,
    power_errors,
    serial_errors,
    ssh_errors,
    telling_line,
)
from hil.strategies.recipe import Payload, StagedFile

_IPV4 = re.compile(r"inet (\d+\.\d+\.\d+\.\d+)/")


class Status(enum.Enum):
    """States in the order in which a boot passes them."""

    unknown = 0
    off = 1
    bootloader = 2
    kernel = 3
    shell = 4
    ssh = 5


def _status(status: Status | str) -> Status:
    if isinstance(status, Status):
        return status
    if status not in Status.__members__:
        raise ConfigError(f"no state {status!r}; there are {', '.join(Status.__members__)}")
    return Status[status]


@target_factory.reg_driver
@attr.s(eq=False)
class NetbootStrategy(Strategy):
    """Brings a target to a `Status`; see the module's text.

    Args:
        board (str): name of the board profile
        kernel (str): kernel artifact directory
        dtb (str): device-tree file that is sent instead of the artifact's; "" for the artifact's
        variant (str): send the device tree NAME-VARIANT.dtb that lies beside it; "" for itself
        tftp_server (str): address that the board uses for TFTP; "" for the one that DHCP gives
    """

    bindings = {  # noqa: RUF012 - labgrid's own form
        "power": "PowerProtocol",
        "console": "ConsoleMonitor",
        "uboot": "UBootDriver",
        "shell": "ShellDriver",
        "ssh": "SSHDriver",
        "tftp": "TFTPProviderDriver",
        "nfsroot": "NFSRoot",
    }

    board: str = attr.ib(validator=attr.validators.instance_of(str))
    kernel: str = attr.ib(default="", validator=attr.validators.instance_of(str))
    dtb: str = attr.ib(default="", validator=attr.validators.instance_of(str))
    variant: str = attr.ib(default="", validator=attr.validators.instance_of(str))
    tftp_server: str = attr.ib(default="", validator=attr.validators.instance_of(str))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.profile: BoardProfile = load_board(self.board)
        deadlines = self.profile.deadlines
        # the profile knows how long the board takes; labgrid's drivers want whole seconds
        self.uboot.login_timeout = math.ceil(deadlines.power_on_to_prompt)
        self.shell.login_timeout = math.ceil(deadlines.login)
        self.ssh.connection_timeout = float(deadlines.ssh)
        self.status = Status.unknown
        self._payload: Payload | None = None
        self._history: BoardHistory | None = None
        # how often the board was powered on; tells users that what they left on it is gone
        self.boots = 0

    @labgrid_step(args=["status"])
    def transition(self, status: Status | str, *, step: Any) -> None:
        """Bring the board to `status`, through a power cycle where it has to go back.

        Raises ConfigError, LabError or TargetError, each with one line that says what to do.
        """
        wanted = _status(status)
        if wanted is Status.unknown:
            raise ConfigError("a board cannot be brought to the state 'unknown'")
        if wanted is self.status:
            step.skip(f"already {wanted.name}")
            return
        back = wanted.value < self.status.value
        if wanted is Status.off or self.status is Status.unknown or back:
            self._reach(Status.off)
        while self.status.value < wanted.value:
            self._reach(Status(self.status.value + 1))

    def force(self, status: Status | str) -> None:
        """Take the board as being in `status` already, without touching its power."""
        wanted = _status(status)
        drivers = {Status.bootloader: self.uboot, Status.shell: self.shell, Status.ssh: self.ssh}
        self.target.activate(self.power)
        self.target.activate(self.console)
        if wanted in drivers:
            self.target.activate(drivers[wanted])
        self.status = wanted

    def learn(self, results: Path) -> None:
        """Take limits of boots from the history in the results directory, and add to it."""
        self._history = BoardHistory(results, self.board)

    def _limits(self) -> Mapping[Phase, Limits]:
        limits = self.profile.phases.limits()
        return self._history.learned(limits) if self._history is not None else limits

    def give_up(self) -> None:
        """The board is no longer in its state: the next transition starts with the power."""
        self.status = Status.unknown

    @labgrid_step(title="reach", args=["status"])
    def _reach(self, status: Status) -> None:
        enter = {
            Status.off: self._off,
            Status.bootloader: self._bootloader,
            Status.kernel: self._kernel,
            Status.shell: self._shell,
            Status.ssh: self._ssh,
        }[status]
        try:
            enter()
        except BaseException:
            self.give_up()
            self.console.end_boot()
            raise
        self.status = status

    # One method a state; each starts from the state before it.

    def _off(self) -> None:
        self._release_console_drivers()
        with power_errors(self.power):
            self.target.activate(self.power)
            self.power.off()
        self.console.power_off()

    def _bootloader(self) -> None:
        payload = self._stage()
        with serial_errors():
            self.target.activate(self.console)
        self.console.start_boot(self._limits())
        with power_errors(self.power):
            self.power.on()
        self.boots += 1
        prompt = self.uboot.prompt
        with console_errors(
            self.console,
            LabError,
            f"no U-Boot prompt {prompt!r} within {self.uboot.login_timeout} s after power-on",
            "check UBootDriver.prompt, the power and the serial port",
        ):
            self.target.activate(self.uboot)
        self._payload = payload

    def _kernel(self) -> None:
        assert self._payload is not None
        for item in recipe.steps(self.profile, self._payload):
            self._run_step(item)
        line = recipe.boot_line(self.profile, self._payload)
        deadline_s = self.profile.deadlines.kernel_start
        with console_errors(
            self.console,
            TargetError,
            f"no word of the kernel within {deadline_s:g} s after {line!r}",
            "check load addresses, console= and earlycon= in the profile",
        ):
            self.console.sendline(line)
            index, before, _, _ = self.console.expect(
                [self.uboot.bootstring, rf"\n{self.uboot.prompt}"],
                timeout=deadline_s,
            )
        self.target.deactivate(self.uboot)
        if index == 1:
            self.console.check()
            raise TargetError(f"{line!r} came back to the prompt: {last_line(before)}")

    def _shell(self) -> None:
        seconds = self.profile.deadlines.login
        # prompts are only looked at: the shell driver has to see them
        prompt = f"(?={self.shell.login_prompt}|{self.shell.prompt})"
        with console_errors(
            self.console,
            TargetError,
            f"no login within {seconds:g} s after the kernel started",
            "see the console log",
        ):
            self.console.expect(prompt, timeout=seconds)
        with console_errors(
            self.console,
            TargetError,
            f"no shell prompt within {self.shell.login_timeout} s",
            "check ShellDriver.prompt, login_prompt and username in the environment",
        ):
            self.target.activate(self.shell)

    def _ssh(self) -> None:
        self.console.enter(Phase.SSH)
        if self.profile.management.address == "dhcp":
            self._find_address()
        with ssh_errors(self.ssh.networkservice):
            self.target.activate(self.ssh)
        watch = self.console.end_boot()
        if self._history is not None:
            self._history.append(watch.durations(), watch.silences(), kernel=self.kernel)

    # Helpers of the states

    def _stage(self) -> Payload:
        """Put the files of this boot into the TFTP directory and the modules into the NFS root."""
        if not self.kernel:
            raise ConfigError(
                f"no kernel for {self.board}; use --hil-kernel DIR, HIL_KERNEL or lab.yaml"
            )
        artifact = KernelArtifact.load(Path(self.kernel))
        netboot = self.profile.netboot
        dtb = Path(self.dtb) if self.dtb else artifact.dtb(netboot.dtb)
        if not dtb.is_file():
            raise ConfigError(f"{dtb}: no such device tree; NetbootStrategy.dtb must name a file")
        if self.variant:
            dtb = variant_of(dtb, self.variant)
        values = {
            "nfs_server": self.nfsroot.server,
            "nfs_path": self.nfsroot.path,
            "nfs_options": self.nfsroot.options,
        }
        files = [artifact.image(netboot.kernel), dtb]
        if netboot.initramfs:
            files.append(artifact.initramfs(netboot.initramfs))
        if self.nfsroot.local:
            stage_modules(artifact, Path(self.nfsroot.local))
        kernel, tree, *initramfs = self._stage_files(files)
        return Payload(
            kernel=kernel,
            dtb=tree,
            initramfs=initramfs[0] if initramfs else None,
            tftp_server=self.tftp_server,
            command_line=self.profile.command_line(values),
        )

    def _stage_files(self, files: list[Path]) -> list[StagedFile]:
        provider = self.tftp.provider
        where = f"TFTP directory {provider.host}:{provider.internal}"
        try:
            self.target.activate(self.tftp)
            with unique_names(*files) as links:
                return [
                    StagedFile(self.tftp.stage(str(link)), link.stat().st_size) for link in links
                ]
        except (OSError, ManagedFileError, ExecutionError) as error:
            raise LabError(f"{where}: {error}; make it writable for this user") from error

    def _run_step(self, item: recipe.Step) -> None:
        with console_errors(
            self.console,
            LabError,
            f"{item.what}: no answer to {item.command!r} within {item.deadline_s:g} s",
            "check the cable, the server and the board's boot loader",
        ):
            output, _, status = self.uboot.run(item.command, timeout=item.deadline_s)
        what = item.what + (f" file {item.file}" if item.file else "")
        if status != 0:
            # the console's verdict says more, where there is one
            self.console.check()
            raise LabError(f"{what} failed in U-Boot: {telling_line(output)}")
        if item.size_bytes is not None and f"filesize={item.size_bytes:x}" not in output:
            raise LabError(
                f"{what}: the board got {output[-1] if output else 'nothing'}, the file has "
                f"{item.size_bytes:x} (hex) bytes; does another server answer?"
            )

    def _find_address(self) -> None:
        interface = self.profile.management.interface
        output, _, _ = self.shell.run(f"ip -4 -o address show dev {interface}")
        match = _IPV4.search("\n".join(output))
        if match is None:
            raise LabError(
                f"the board has no IPv4 address on {interface}: {telling_line(output)}; check its "
                "DHCP server and management.interface in the profile"
            )
        self.ssh.networkservice.address = match.group(1)

    def _release_console_drivers(self) -> None:
        if self.ssh.state is BindingState.active:
            # labgrid waits up to a minute for the far end of a connection to a dead board
            subprocess.run(
                ["ssh", *self.ssh.ssh_prefix, "-O", "exit", self.ssh.networkservice.address],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        for driver in (self.ssh, self.shell, self.uboot):
            # the board may be gone, and with it the far end of what is closed here
            with contextlib.suppress(ExecutionError, OSError, subprocess.SubprocessError):
                self.target.deactivate(driver)
