"""How far a boot is, and whether it began anew without being asked. Pure."""

from __future__ import annotations

import attrs

from hil.console.model import Phase
from hil.console.signatures import PhaseMark

# K3 boards print the SPL banner for their R5 and then for their A53 processor.
SPL_BANNERS = 2
# Without SPL: somebody may have typed `reset` once.
UBOOT_BANNERS = 2


@attrs.frozen
class Reset:
    """The boot began anew by itself: the stage in which it did, and how many boots that makes."""

    stage: str
    boots: int


class BootTracker:
    """Follows the marks of phases. `phase` is None until the first one.

    `boot` counts restarts from 0; `transitions` are the phases entered, with line numbers.
    """

    def __init__(self, spl_banners: int = SPL_BANNERS) -> None:
        self._spl_limit = spl_banners
        self.phase: Phase | None = None
        self.transitions: list[tuple[Phase, int]] = []
        self.boot = 0
        self.reached_login = False
        self._spl = 0
        self._uboot = 0
        # The next restart is on purpose, or follows from what was found already.
        self._explained = False

    @property
    def stage(self) -> str | None:
        return self.phase.stage if self.phase else None

    @property
    def kernel_began(self) -> bool:
        """The boot loader has done its part."""
        return self.phase is not None and self.phase.rank >= Phase.HANDOVER.rank

    @property
    def awaits_kernel(self) -> bool:
        """The boot loader was seen and the kernel has not spoken yet."""
        return self.phase is not None and self.phase.rank < Phase.KERNEL.rank

    def explain_restart(self) -> None:
        """The restart that comes now is no surprise: asked for, or the end of a crash."""
        self._explained = True

    def mark(self, mark: PhaseMark, number: int) -> Reset | None:
        """Take a mark; the Reset when it means that the boot began anew by itself."""
        phase, now = mark.phase, self.phase
        if phase is Phase.TFTP and now in (Phase.SPL, Phase.FIRMWARE):
            # SPL itself boots from the network
            return None
        reset = None
        if mark.restart and now is not None and self._is_restart(phase, now):
            reset = self._restart(phase, now)
        elif now is not None and phase.rank < now.rank and not self._steps_back(mark, now):
            return None
        if mark.restart:
            self._spl += phase is Phase.SPL
            self._uboot += phase is Phase.UBOOT
        if phase is not self.phase:
            self.phase = phase
            self.transitions.append((phase, number))
        self.reached_login |= phase in (Phase.LOGIN, Phase.SSH)
        return reset

    def _is_restart(self, phase: Phase, now: Phase) -> bool:
        if phase is Phase.SPL:
            return now.rank > Phase.FIRMWARE.rank or self._spl >= self._spl_limit
        if phase is Phase.UBOOT:
            return now.rank >= Phase.UBOOT.rank and self._uboot > 0
        # an early console's messages are printed again by the real one, banner included
        return phase is Phase.KERNEL and now.rank > Phase.KERNEL.rank

    def _steps_back(self, mark: PhaseMark, now: Phase) -> bool:
        """Whether an earlier phase comes again; the A53's SPL follows the R5's firmware."""
        if now is Phase.INIT:
            return mark.steps_back
        return mark.phase is Phase.SPL and now is Phase.FIRMWARE

    def _restart(self, phase: Phase, now: Phase) -> Reset | None:
        loops = (
            self.kernel_began
            or (phase is Phase.SPL and self._spl >= self._spl_limit)
            or (phase is Phase.UBOOT and self._uboot >= UBOOT_BANNERS)
        )
        stage, boots = now.stage, self._boots(phase) + 1
        explained, self._explained = self._explained, False
        self.boot += 1
        self.reached_login = False
        self.phase = None
        if explained:
            self._spl = self._uboot = 0
            return None
        return Reset(stage, boots) if loops else None

    def _boots(self, phase: Phase) -> int:
        banners = self._spl if phase is Phase.SPL else self._uboot
        return max(self.boot + 1, banners)
