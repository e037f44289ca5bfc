"""The virtual board's power: a QEMU process that exists exactly while the outlet is on."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from hil.clock import Deadline, wait_until
from hil.errors import LabError
from hil.virtual import qemu
from hil.virtual.process import end, start
from hil.virtual.tools import ToolTree

# QEMU reports a bad option or a taken port at once; after that it runs.
_START_CHECK_S = 0.15
KVM_PROBE_DEADLINE_S = 5.0


class VirtualBoard:
    """An outlet for the power unit: on() starts QEMU, off() ends it.

    `open_taps` gives fresh tap descriptors at each power-on.
    """

    def __init__(
        self,
        tools: ToolTree,
        machine: qemu.Machine,
        log_file: Path,
        open_taps: Callable[[], tuple[int, ...]],
    ) -> None:
        self._tools = tools
        self._machine = machine
        self._log_file = log_file
        self._open_taps = open_taps
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def powered(self) -> bool:
        """Whether QEMU runs; a QEMU that ended by itself counts as a board without power."""
        return self._process is not None and self._process.poll() is None

    def on(self) -> None:
        """Power the board. LabError with QEMU's own message when it ends at once."""
        if self.powered:
            return
        taps = self._open_taps()
        try:
            arguments = qemu.arguments(qemu.with_taps(self._machine, taps))
            self._process = start(
                self._tools.argv("qemu-system-aarch64", *arguments),
                log_file=self._log_file,
                pass_fds=taps,
            )
        finally:
            for descriptor in taps:
                os.close(descriptor)
        process = self._process
        wait_until(lambda: process.poll() is not None, deadline=Deadline(_START_CHECK_S))
        if not self.powered:
            raise LabError(f"QEMU ended at once: {self._last_line()} (log: {self._log_file})")

    def off(self) -> None:
        if self._process is not None:
            self._process.kill()  # power does not say good-bye
            end(self._process)
            self._process = None

    def _last_line(self) -> str:
        lines = self._log_file.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "no message"


def dump_dtb(tools: ToolTree, accelerator: str, target: Path) -> None:
    """Write the device tree of the virtual machine to `target`. LabError when QEMU refuses."""
    run = subprocess.run(
        tools.argv("qemu-system-aarch64", *qemu.dtb_arguments(accelerator, tools.firmware, target)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
    )
    if run.returncode != 0 or not target.exists():
        raise LabError(f"QEMU wrote no device tree: {run.stderr.strip() or 'no message'}")


def choose_accelerator(tools: ToolTree, architecture: str = "aarch64") -> str:
    """`kvm` only when a guest really runs under it, else `tcg`.

    A /dev/kvm that is present may still be unusable, so U-Boot is started and has to speak.
    """
    if platform.machine() != architecture or not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    argv = tools.argv(
        "qemu-system-aarch64", *qemu.probe_arguments("kvm", tools.firmware, tools.qemu_data)
    )
    with tempfile.TemporaryFile() as console:
        probe = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.DEVNULL
        )
        try:
            spoke = wait_until(
                lambda: b"U-Boot" in os.pread(console.fileno(), 4096, 0) or probe.poll(),
                deadline=Deadline(KVM_PROBE_DEADLINE_S),
            )
        finally:
            probe.kill()
            probe.wait()
    return "kvm" if spoke is True else "tcg"
