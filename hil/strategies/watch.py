"""The strategy that only powers a board and watches it boot, without typing anything.

For boards that boot by themselves, and for recorded logs that a replay lab plays.
"""

from __future__ import annotations

import enum
import math
from pathlib import Path

import attr
from labgrid.factory import target_factory
from labgrid.step import step as labgrid_step
from labgrid.strategy import Strategy

from hil.console.model import Phase
from hil.console.phases import Limits
from hil.errors import ConfigError
from hil.strategies.failures import power_errors, serial_errors


class WatchStatus(enum.Enum):
    """What such a board can be brought to."""

    unknown = 0
    off = 1
    login = 2


@target_factory.reg_driver
@attr.s(eq=False)
class WatchStrategy(Strategy):
    """Brings a target to a `WatchStatus`.

    Args:
        board (str): name for messages, and of the virtual lab that plays the board
        deadline (float): longest time in one phase of the boot, in seconds
        silence (float): longest silence in one phase, in seconds
        quiet (float): silence in seconds that ends the watching when the login prompt has come
    """

    bindings = {  # noqa: RUF012 - labgrid's own form
        "power": "PowerProtocol",
        "console": "ConsoleMonitor",
    }

    board: str = attr.ib(validator=attr.validators.instance_of(str))
    deadline: float = attr.ib(default=300.0, converter=float, validator=attr.validators.gt(0))
    silence: float = attr.ib(default=30.0, converter=float, validator=attr.validators.gt(0))
    quiet: float = attr.ib(default=2.0, converter=float, validator=attr.validators.gt(0))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.status = WatchStatus.unknown
        self.boots = 0

    def learn(self, results: Path) -> None:
        """Nothing: what is watched may be another board each time."""

    def transition(self, status: WatchStatus | str) -> None:
        """Bring the board to `status`. Raises ConfigError, LabError or TargetError."""
        name = status if isinstance(status, str) else status.name
        if name not in ("off", "login"):
            raise ConfigError(f"a watched board has no state {name!r}; it has off and login")
        self.reach(WatchStatus.off)
        if name == "login":
            self.reach(WatchStatus.login)

    @labgrid_step(args=["status"])
    def reach(self, status: WatchStatus) -> None:
        """One step of transition()."""
        self.status = WatchStatus.unknown
        try:
            if status is WatchStatus.off:
                self._off()
            else:
                self._boot()
        finally:
            self.console.end_boot()
        self.status = status

    def _off(self) -> None:
        with power_errors(self.power):
            self.target.activate(self.power)
            self.power.off()
        self.console.power_off()

    def _boot(self) -> None:
        with serial_errors():
            self.target.activate(self.console)
        limits = Limits(self.deadline, min(self.silence, self.deadline))
        self.console.start_boot(dict.fromkeys(Phase, limits))
        with power_errors(self.power):
            self.power.on()
        self.boots += 1
        # the phases' limits end this, not a time-out
        self.console.await_phase(Phase.LOGIN, timeout_s=math.inf)
        self.console.end_boot()
        self.console.await_quiet(self.quiet)
