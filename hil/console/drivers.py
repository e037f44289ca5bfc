"""Which driver a call trace belongs to, by the shipped table. Pure but for the file."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from importlib import resources

import attrs
import yaml

# What a compiler adds to the name of a copy of a function.
_COPY = re.compile(r"(?:\.(?:isra|constprop|part|cold|llvm|lto_priv|cfi|__uniq)(?:\.\d+)*)+$")
# A threaded interrupt is named after its device: irq/41-tidss.
_IRQ_TASK = re.compile(r"^irq/\d+-(?:s-)?(?P<device>[\w.-]+)")


@attrs.frozen
class Frame:
    """One function of a call trace and its module, where the kernel names one."""

    function: str
    module: str | None = None


@attrs.frozen
class Culprit:
    """First function of a trace that is no core helper, its driver, and the core function above."""

    function: str | None = None
    driver: str | None = None
    core_function: str | None = None


class Drivers:
    """The table of drivers.yaml."""

    def __init__(self, data: dict[str, object]) -> None:
        def union(patterns: Iterable[str]) -> re.Pattern[str]:
            return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))

        self._core = union(data["core"])  # type: ignore[arg-type]
        self._core_modules = union(data["core_modules"])  # type: ignore[arg-type]
        self._modules: dict[str, str] = data["modules"]  # type: ignore[assignment]
        functions: dict[str, str] = data["functions"]  # type: ignore[assignment]
        self._functions = [(re.compile(p), name) for p, name in functions.items()]

    @functools.lru_cache(maxsize=4096)  # noqa: B019 - there is one table
    def of_frame(self, frame: Frame) -> str | None:
        """The driver that a frame is in; None for core code and what nobody knows."""
        if frame.module and not self._core_modules.match(frame.module):
            return self.of_module(frame.module)
        for pattern, name in self._functions:
            if pattern.match(frame.function):
                return name
        return None

    def of_module(self, name: str) -> str:
        """The driver that a module, or a message in its name, belongs to."""
        return self._modules.get(name, name)

    def of_task(self, task: str | None) -> str | None:
        """The driver whose interrupt thread a task is."""
        match = _IRQ_TASK.match(task or "")
        return match["device"] if match else None

    def is_core(self, frame: Frame) -> bool:
        return self.of_frame(frame) is None and bool(self._core.match(frame.function))

    def culprit(self, trace: Sequence[Frame]) -> Culprit:
        """Whom a trace, innermost first, points at."""
        core = trace[0].function if trace and self.is_core(trace[0]) else None
        for frame in trace:
            if driver := self.of_frame(frame):
                return Culprit(frame.function, driver, core)
        first = next((frame for frame in trace if not self.is_core(frame)), None)
        return Culprit(first.function if first else None, None, core)


def plain(function: str) -> str:
    """A function's name without what the compiler added to it."""
    return _COPY.sub("", function)


@functools.cache
def load() -> Drivers:
    """The shipped table."""
    text = resources.files("hil.console").joinpath("drivers.yaml").read_text(encoding="utf-8")
    return Drivers(yaml.safe_load(text))
