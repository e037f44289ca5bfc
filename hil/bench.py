"""A bench as the suites see it: the board, its data ports, and the machine at their other ends."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
from labgrid import Target
from labgrid.exceptions import NoResourceFoundError

from hil.agents import Agent
from hil.boards.model import BoardProfile, Port
from hil.clock import Deadline, wait_until
from hil.console.kmsg import KernelLogFollower
from hil.console.monitor import ConsoleMonitor
from hil.errors import ConfigError, HilError, LabError, TargetError
from hil.link_partner import connect
from hil.resources import LinkPartner
from hil.runners import BoardHost, Host
from hil.strategies.netboot import NetbootStrategy, Status

# A board that is alive answers within this time, however busy it is.
ANSWER_DEADLINE_S = 10.0

# One line an interface: name, then the real paths of what it hangs on ("-" where it has none).
_LIST_INTERFACES = (
    "for i in /sys/class/net/*; do echo ${i##*/} "
    "$(readlink -f $i/device || echo -) $(readlink -f $i/of_node || echo -) "
    "$(readlink -f $i/device/of_node || echo -); done"
)
_DEVICE_TREE_BASE = re.compile(r".*/firmware/devicetree/base")


@attrs.frozen
class DataPort:
    """One cabled data port of the board: what the profile says, and its names at both ends."""

    port: Port
    interface: str
    partner_interface: str

    @property
    def name(self) -> str:
        return self.port.name


class Bench:
    """Board and link partner of one environment; close() releases the partner's connection.

    `build_directory` is where the agent's single file is made.
    """

    def __init__(self, target: Target, build_directory: Path) -> None:
        self.target = target
        self.strategy: NetbootStrategy = target.get_driver("NetbootStrategy", activate=False)
        self.profile: BoardProfile = self.strategy.profile
        self.board = BoardHost(self.strategy.ssh, target.name)
        self.agent = Agent(self.board, build_directory)
        self._build_directory = build_directory
        self._stack = contextlib.ExitStack()
        self._partner: Host | None = None
        self._partner_agent: Agent | None = None
        self._boots_seen = -1
        self._interfaces: str | None = None
        self._kernel_lines_seen = 0
        # a host of its own: what ends a test's commands does not end this
        self._follower_host = BoardHost(self.strategy.ssh, target.name)
        self.kernel_log_follower = KernelLogFollower(
            self._follower_host, self.monitor.take_kernel_line, self.monitor.settle_kernel_log
        )

    @property
    def monitor(self) -> ConsoleMonitor:
        """The board's console."""
        monitor: ConsoleMonitor = self.strategy.console
        return monitor

    def interrupt(self, error: HilError, *, dead: bool) -> None:
        """End what waits for the board, from any thread; a dead one is not asked again."""
        self.board.interrupt(error, dead=dead)
        if dead:
            self._follower_host.interrupt(error, dead=True)

    @contextlib.contextmanager
    def expected_reset(self) -> Iterator[None]:
        """Around what restarts the board on purpose; the next use boots it anew."""
        with self.monitor.expect_reset():
            yield
        self.strategy.give_up()

    def require(self, status: Status) -> None:
        """Have the board in this state, booting it when it is not, or when it no longer answers."""
        failed = self.monitor.failure is not None
        if self.strategy.status is Status.ssh and (failed or not self._answers()):
            self.strategy.give_up()
        if self.strategy.status is not status:
            self.kernel_log_follower.stop()
        self.strategy.transition(status)
        if status is Status.ssh and self.strategy.boots != self._boots_seen:
            self._boots_seen = self.strategy.boots
            self.agent.forget()
            self.forget_ports()
            self._kernel_lines_seen = 0
            self.board.revive()
            self._follower_host.revive()
            self.kernel_log_follower.start()
            if self.profile.modules:
                # a kernel may have them built in, and a port that lacks its driver tells itself
                self.board.run(["modprobe", "-a", "-q", *self.profile.modules])
            # what the kernel said while it booted is the boot's
            self.kernel_log_follower.sync()

    def _answers(self) -> bool:
        try:
            return self.board.run(["true"], timeout_s=ANSWER_DEADLINE_S).status == 0
        except LabError:
            return False

    def kernel_log(self) -> list[str]:
        """All lines of the board's kernel log since it booted."""
        return self.board.run(["dmesg"]).check().stdout.splitlines()

    def new_kernel_messages(self) -> list[str]:
        """Lines of the kernel log that no earlier call of this boot has given."""
        lines = self.kernel_log()
        new = lines[self._kernel_lines_seen :]
        self._kernel_lines_seen = len(lines)
        return new

    def data_port(self, name: str) -> DataPort:
        """The port of this name. TargetError when the board has no such interface.

        Interfaces are looked at once a boot; a test that makes them anew calls forget_ports().
        """
        port = next(port for port in self.profile.ports if port.name == name)
        if self._interfaces is None:
            self._interfaces = self.board.run(["sh", "-c", _LIST_INTERFACES]).check().stdout
        found = find_interface(port, self._interfaces)
        if found is None:
            where = port.device_tree or port.pci
            raise TargetError(f"port {name}: the board has no network interface at {where}")
        other = self.link_partner.interface(name)
        if other is None:
            raise ConfigError(f"port {name}: LinkPartner.ports names no interface for it")
        return DataPort(port, found, other)

    def forget_ports(self) -> None:
        """Look at the board's interfaces again at the next question."""
        self._interfaces = None

    def set_up(self, port: DataPort) -> None:
        """Set the port up and wait for its link. TargetError when none comes in time."""
        self._await_link(self.board, port.interface, port.name)

    def await_partner_link(self, port: DataPort) -> None:
        """Wait until the other end of the cable has a link, which may come later than the board's.

        TargetError when none comes in time.
        """
        self._await_link(self.partner, port.partner_interface, port.name)

    def _await_link(self, host: Host, interface: str, port_name: str) -> None:
        up = f"ip link set dev {interface} up && cat /sys/class/net/{interface}/carrier"
        deadline_s = self.profile.deadlines.link_up
        if not wait_until(
            lambda: host.run(["sh", "-c", up]).check().stdout.strip() == "1",
            deadline=Deadline(deadline_s),
        ):
            raise TargetError(
                f"{host.name}: {interface} has no link within {deadline_s:g} s; "
                f"is {port_name} cabled?"
            )

    @property
    def link_partner(self) -> LinkPartner:
        try:
            partner: LinkPartner = self.target.get_resource(LinkPartner)
            return partner
        except NoResourceFoundError as error:
            raise ConfigError(
                "this environment has no LinkPartner; add it as docs/lab.md shows"
            ) from error

    @property
    def partner(self) -> Host:
        """The link partner, connected at the first use."""
        if self._partner is None:
            self._partner = self._stack.enter_context(connect(self.link_partner))
            if self._partner.run(["true"]).status != 0:
                raise LabError(f"link partner {self._partner.name} runs no commands")
        return self._partner

    @property
    def partner_agent(self) -> Agent:
        """The agent on the link partner, which is not started anew with the board."""
        if self._partner_agent is None:
            self._partner_agent = Agent(self.partner, self._build_directory)
        return self._partner_agent

    def close(self) -> None:
        self.kernel_log_follower.stop()
        self._stack.close()
        self._partner = self._partner_agent = None


def find_interface(port: Port, listing: str) -> str | None:
    """Name of the interface that is this port, from the output of the listing command.

    The port's place decides (device-tree node or PCI address), never its name: names change with
    the order in which drivers come up.
    """
    for line in listing.splitlines():
        name, *places = line.split()
        if port.pci and places and Path(places[0]).name == port.pci:
            return name
        nodes = {_DEVICE_TREE_BASE.sub("", place) for place in places[1:]}
        if port.device_tree and port.device_tree in nodes:
            return name
    return None


def describe(event: dict[str, Any]) -> str:
    """An agent's event as one line, for assertion messages."""
    return ", ".join(f"{key}={value}" for key, value in event.items() if key != "event")
