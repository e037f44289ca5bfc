"""One boot of an environment's board, from its lab to a verdict."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
from labgrid import Target

from hil import environment
from hil.bench import Bench
from hil.console.model import Verdict
from hil.errors import ConfigError, HilError
from hil.results import recorder
from hil.results.progress import BootProgress
from hil.results.recorder import Recorder
from hil.strategies.netboot import Status
from hil.strategies.watch import WatchStrategy
from hil.virtual import replay
from hil.virtual.session import SessionLab


@attrs.frozen
class Request:
    """What to boot: an environment file, and what is to differ from what it says."""

    environment: str
    kernel: Path | None = None
    variant: str | None = None
    keep_power: bool = False

    def problems(self) -> Iterator[str]:
        if self.kernel is not None and not self.kernel.is_dir():
            yield f"--kernel {self.kernel}: no such directory"


@attrs.frozen
class Report:
    """How a boot went: the verdict, and the directory with its console log.

    `error` is what the strategy says when it ended the boot; None when the board is up.
    """

    verdict: Verdict
    directory: Path
    error: HilError | None = None


def boot(
    request: Request, results: Path, *, say: Callable[[str], None], show: Callable[[str], None]
) -> Report:
    """Boot once and switch the board off again, unless its power is to be kept.

    `say` gets lines for the user, `show` texts that the next one replaces. ConfigError for what is
    wrong with files and options, other HilErrors when the lab fails before the console can tell.
    """
    if problems := list(request.problems()):
        raise ConfigError("\n".join(problems))
    directory = results / recorder.run_name()
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(_target(request, say))
        record = Recorder(directory)
        stack.callback(record.stop)
        record.start()
        progress = BootProgress(show=show, say=say)
        stack.callback(progress.stop)
        progress.start()
        strategy = target.get_driver("Strategy", activate=False)
        strategy.learn(results)
        record.follow(strategy.console.set_logs)
        bring_up = _way_up(request, target, strategy, stack)
        if not request.keep_power:
            stack.callback(_switch_off, strategy)
        try:
            bring_up()
        except HilError as error:
            verdict = getattr(error, "verdict", None)
            if verdict is None:
                raise
            return Report(verdict, directory, error)
        return Report(strategy.console.verdict(), directory)


@contextlib.contextmanager
def _target(request: Request, say: Callable[[str], None]) -> Iterator[Target]:
    """The environment's main target, its virtual lab up when it needs one."""
    path = environment.find(request.environment)
    env = environment.load(path)
    board = environment.watched_board(env)
    if board is not None:
        _refuse_changes(request)
        lab = SessionLab(board, virtual=board == replay.BOARD)
    else:
        profile = environment.board_profile(env)
        lab = SessionLab(profile.name, virtual=profile.virtual is not None)
    with contextlib.ExitStack() as stack:
        stack.callback(lab.leave)
        environment.complete(env, lab.enter(say=say))
        stack.callback(env.cleanup)
        yield environment.make_target(env)


def _way_up(
    request: Request, target: Target, strategy: Any, stack: contextlib.ExitStack
) -> Callable[[], None]:
    """What boots the board as far as its strategy can; `stack` releases what that needs."""
    if isinstance(strategy, WatchStrategy):
        return functools.partial(strategy.transition, "login")
    strategy.kernel = str(request.kernel or strategy.kernel)
    strategy.variant = request.variant or strategy.variant
    build = stack.enter_context(tempfile.TemporaryDirectory(prefix="hil-agent-"))
    bench = Bench(target, Path(build))
    stack.callback(bench.close)
    return functools.partial(bench.require, Status.ssh)


def _refuse_changes(request: Request) -> None:
    given = {"--kernel": request.kernel, "--variant": request.variant}
    for option, value in given.items():
        if value is not None:
            raise ConfigError(
                f"{option}: {request.environment} only watches its board; leave {option} out"
            )


def _switch_off(strategy: Any) -> None:
    if strategy.boots:
        strategy.transition("off")
