"""The board has really booted the way it was meant to: over NFS, with its ports and a clean log."""

from __future__ import annotations

import uuid
from pathlib import Path

from hil.bench import Bench, DataPort, describe
from hil.console.classify import Classifier
from hil.kernel.config import find_config, missing_options


def test_root_is_the_nfs_export(board: Bench) -> None:
    """The root filesystem is the environment's NFS export, mounted for writing."""
    mounts = board.board.run(["cat", "/proc/mounts"]).check().stdout
    roots = [line.split() for line in mounts.splitlines() if line.split()[1] == "/"]
    source, _, kind, options, *_ = roots[-1]
    assert kind in ("nfs", "nfs4"), f"/ is {kind} from {source}"
    nfsroot = board.strategy.nfsroot
    assert source == f"{nfsroot.server}:{nfsroot.path}"
    assert "rw" in options.split(",")


def test_root_is_writable(board: Bench) -> None:
    """What the board writes is read back, and lands in the exported tree."""
    token = uuid.uuid4().hex
    name = f"/root/hil-write-{token}"
    board.board.run(["sh", "-c", f"echo {token} > {name} && sync {name}"]).check()
    try:
        assert board.board.run(["cat", name]).check().stdout == token
        if local := board.strategy.nfsroot.local:
            assert (Path(local) / name.lstrip("/")).read_text().strip() == token
    finally:
        board.board.run(["rm", "-f", name]).check()


def test_running_kernel_is_the_staged_one(board: Bench) -> None:
    """The kernel that runs has its own modules in the root filesystem."""
    release = board.board.run(["uname", "-r"]).check().stdout
    assert board.board.run(["test", "-d", f"/lib/modules/{release}"]).status == 0, (
        f"kernel {release} runs, but the root filesystem has no modules for it"
    )


def test_driver_is_bound(port_name: str, board: Bench) -> None:
    """The port's network interface is driven by the driver that the profile expects."""
    port = board.data_port(port_name)
    event = board.agent.call("probe", "--ifname", port.interface)
    assert event["driver"] == port.port.driver


def test_link_is_up(data_port: DataPort, board: Bench) -> None:
    """The port has a carrier once it is up, within the profile's deadline."""
    event = board.agent.call("probe", "--ifname", data_port.interface)
    assert event["up"] and event["carrier"], describe(event)


def test_kernel_options(board: Bench) -> None:
    """The kernel was built with the options that the profile requires."""
    text, source = find_config(board.board)
    missing = missing_options(text, board.profile.kernel_options)
    assert not missing, f"{source}: " + "; ".join(missing)


def test_kernel_log_is_clean(board: Bench) -> None:
    """No warning, oops, lockdep report, stall or hung task since the kernel started."""
    classifier = Classifier()
    classifier.feed("".join(f"{line}\n" for line in board.kernel_log()).encode())
    found = [one for one in classifier.verdict().findings if one.severity != "warning"]
    assert not found, "\n".join(one.summary for one in found)
