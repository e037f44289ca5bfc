"""Live progress of boots: which state a board is coming to, and what each took."""

from __future__ import annotations

from collections.abc import Callable

from labgrid.step import StepEvent, steps


class BootProgress:
    """Follows a strategy's steps from start() to stop().

    `show` gets a text that may be overwritten by the next one, `say` one that stays.
    """

    def __init__(self, show: Callable[[str], None], say: Callable[[str], None]) -> None:
        self._show = show
        self._say = say
        self._took: list[str] = []
        self._total_s = 0.0

    def start(self) -> None:
        steps.subscribe(self._on_step)

    def stop(self) -> None:
        steps.unsubscribe(self._on_step)

    def _on_step(self, event: StepEvent) -> None:
        if event.step.title != "reach" or not event.step.args:
            return
        board, state = event.step.source.board, event.step.args["status"].name
        if event.data.get("state") == "start":
            self._show(f"{board}: {state} ...")
        elif event.data.get("state") == "stop":
            if state == "off":
                self._took, self._total_s = [], 0.0
                return
            duration_s = event.data.get("duration", 0.0)
            self._total_s += duration_s
            self._took.append(f"{state} {duration_s:.1f}")
            if event.step.exception is not None:
                self._say(f"{board}: {state} failed after {duration_s:.1f} s")
            elif state == "ssh":
                self._say(f"{board}: booted in {self._total_s:.1f} s ({', '.join(self._took)})")
