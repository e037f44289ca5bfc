"""Boots that fail in the kernel or before it, for real: each ends with a typed verdict.

What takes long waits for `make check-faults`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.clock import Deadline, wait_until
from hil.console.failure import BootFailure, LabBootFailure
from hil.console.log import StampedLog
from hil.console.model import Verdict
from hil.errors import HilError
from hil.strategies.netboot import Status
from hil.virtual.supervisor import Lease
from tests.conftest import needs_root
from tests.virtual.breaking import quick_profile, strategy

pytestmark = needs_root

# Looser than a busy host needs, and the tests still end.
SILENCE_S = 8


def verdict(lab: Lease, kind: type[HilError], profile: Path, **keys: str) -> Verdict:
    """The verdict with which a boot to ssh fails."""
    with strategy(lab, NetbootStrategy={"board": str(profile), **keys}) as board:
        with pytest.raises(kind) as caught:
            board.transition(Status.ssh)
        assert board.status is Status.unknown
    found: Verdict = caught.value.verdict  # type: ignore[attr-defined]
    return found


@pytest.fixture
def nfs_server(spare_lab: Lease) -> Iterator[int]:
    """Process id of the lab's NFS server, which goes on when the test is over."""
    pid = int((Path(spare_lab.state["disk"]) / "nfs/ganesha.pid").read_text())
    yield pid
    os.kill(pid, signal.SIGCONT)


def test_init_does_not_exist(spare_lab: Lease, tmp_path: Path) -> None:
    """The initramfs ends when it cannot hand over, and the kernel with it."""
    profile = quick_profile(tmp_path, bootargs=["init=/nonexistent"])
    found = verdict(spare_lab, BootFailure, profile)
    assert (found.verdict, found.category, found.blame) == ("bad", "init_died", "userspace")
    assert found.first_bad_line is not None and "Attempted to kill init" in found.first_bad_line


def test_kernel_falls_back_to_a_bare_shell(spare_lab: Lease, tmp_path: Path) -> None:
    """Its prompt must not pass for a login."""
    profile = quick_profile(tmp_path, bootargs=["rdinit=/nonexistent"])
    found = verdict(spare_lab, BootFailure, profile)
    assert (found.verdict, found.category) == ("bad", "root_mount_failed")


def test_no_root_at_all(spare_lab: Lease, tmp_path: Path) -> None:
    """Without initramfs this kernel has no NFS."""
    found = verdict(spare_lab, BootFailure, quick_profile(tmp_path, initramfs=False))
    assert (found.verdict, found.category) == ("bad", "root_mount_failed")


def test_silence_after_starting_kernel(spare_lab: Lease, tmp_path: Path) -> None:
    phases = {"uboot_handover": SILENCE_S}
    found = verdict(spare_lab, BootFailure, quick_profile(tmp_path, phases=phases, console="ttyS9"))
    assert (found.category, found.stage) == ("kernel_silent", "uboot_handover")
    assert found.details["limit"] == f"uboot_handover: no byte for {SILENCE_S} s"
    assert "earlycon" in found.details["hint"]


def test_device_tree_of_another_board(
    spare_lab: Lease, tmp_path: Path, ti_dtbs: dict[str, Path]
) -> None:
    [tree] = ti_dtbs["arm64"].rglob("k3-am642-evm.dtb")
    profile = quick_profile(tmp_path, phases={"uboot_handover": SILENCE_S})
    found = verdict(spare_lab, BootFailure, profile, dtb=str(tree))
    assert (found.category, found.stage) == ("kernel_silent", "uboot_handover")


def test_boot_loader_resets_again_and_again(spare_lab: Lease) -> None:
    with strategy(spare_lab) as board:
        board.transition(Status.bootloader)
        with pytest.raises(LabBootFailure) as caught:
            while True:
                board.console.sendline("reset")
                board.console.expect("Hit any key", timeout=30)
                board.console.sendline("")
                board.console.expect("=> ", timeout=30)
    found = caught.value.verdict
    assert (found.category, found.blame, found.stage) == ("reset_loop", "bootloader", "uboot")


@pytest.mark.faults
def test_nfs_server_stops_before_the_mount(
    spare_lab: Lease, tmp_path: Path, nfs_server: int
) -> None:
    profile = quick_profile(tmp_path, phases={"nfs": 2 * SILENCE_S})
    os.kill(nfs_server, signal.SIGSTOP)
    found = verdict(spare_lab, BootFailure, profile)
    assert (found.category, found.stage) == ("kernel_silent", "kernel")
    assert found.details["limit"] == f"nfs: no byte for {2 * SILENCE_S} s"
    assert "NFS" in found.details["hint"]


@pytest.mark.faults
def test_nfs_server_stops_after_the_mount(
    spare_lab: Lease, tmp_path: Path, nfs_server: int
) -> None:
    profile = quick_profile(tmp_path, phases={"init": 4 * SILENCE_S})
    log = tmp_path / "console.log"

    def stop_when_mounted() -> None:
        if wait_until(lambda: "VFS: Mounted root" in log.read_text(), deadline=Deadline(120)):
            os.kill(nfs_server, signal.SIGSTOP)

    with strategy(spare_lab, NetbootStrategy={"board": str(profile)}) as board:
        with log.open("w") as file:
            board.console.set_logs(StampedLog(file))
            stopper = threading.Thread(target=stop_when_mounted)
            stopper.start()
            with pytest.raises(HilError) as caught:
                board.transition(Status.ssh)
            stopper.join()
            board.console.set_logs()
    text = str(caught.value)
    assert text.startswith("userspace_silent in userspace: last line 'VFS: Mounted root")
    assert f"init: no byte for {4 * SILENCE_S} s" in text
