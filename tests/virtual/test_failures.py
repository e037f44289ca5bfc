"""What can be wrong with a lab or a kernel ends a boot with one line that says what and where.

Each test breaks one thing on the real chain, sees the error, and the last one boots the same board.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.bench import Bench
from hil.errors import ConfigError, LabError
from hil.strategies.netboot import Status
from hil.virtual.keys import make_key
from hil.virtual.ports import free_port
from hil.virtual.supervisor import Lease
from tests.conftest import BOARD, needs_root
from tests.virtual.breaking import failure, kernel_copy, quick_profile, strategy

pytestmark = needs_root


def test_missing_kernel_directory(spare_lab: Lease) -> None:
    text = failure(spare_lab, ConfigError, NetbootStrategy={"kernel": "/no/such/kernel"})
    assert text.startswith("/no/such/kernel: no such kernel directory")


def test_missing_kernel_image(spare_lab: Lease, tmp_path: Path) -> None:
    kernel = kernel_copy(spare_lab, tmp_path, "Image")
    text = failure(spare_lab, ConfigError, NetbootStrategy={"kernel": str(kernel)})
    assert text.startswith(f"{kernel}/Image: no such kernel image")


def test_missing_device_tree(spare_lab: Lease) -> None:
    text = failure(spare_lab, ConfigError, NetbootStrategy={"dtb": "/no/such.dtb"})
    assert text.startswith("/no/such.dtb: no such device tree")


def test_device_tree_missing_in_the_artifact(spare_lab: Lease) -> None:
    with strategy(spare_lab) as board:
        board.dtb = ""
        with pytest.raises(ConfigError, match=rf"dtbs/{BOARD}\.dtb: no such device tree"):
            board.transition(Status.bootloader)


def test_serial_port_refused(spare_lab: Lease) -> None:
    port = free_port()
    text = failure(spare_lab, LabError, NetworkSerialPort={"port": port})
    assert f"127.0.0.1:{port}" in text
    assert "Connection refused" in text


def test_power_refused(spare_lab: Lease) -> None:
    url = f"http://127.0.0.1:{free_port()}/outlet/{{index}}"
    text = failure(spare_lab, LabError, NetworkPowerPort={"host": url})
    assert text.startswith(f"power of main at {url}: ")
    assert "Connection refused" in text


def test_unknown_outlet(spare_lab: Lease) -> None:
    text = failure(spare_lab, LabError, NetworkPowerPort={"index": "7"})
    assert "404" in text


def test_file_missing_on_the_tftp_server(spare_lab: Lease, tmp_path: Path) -> None:
    for link in (Path(spare_lab.state["disk"]) / "tftp").iterdir():
        link.unlink()
    # staged where the board's server does not look
    text = failure(spare_lab, LabError, TFTPProvider={"internal": f"{tmp_path}/"})
    assert text.startswith("tftp_file_not_found in uboot: ")
    assert "File not found" in text
    assert "file 'hil-" in text


def test_tftp_directory_not_writable(spare_lab: Lease) -> None:
    text = failure(spare_lab, LabError, TFTPProvider={"internal": "/proc/nowhere/"})
    assert text.startswith("TFTP directory localhost:/proc/nowhere/")


def test_wrong_prompt(spare_lab: Lease, tmp_path: Path) -> None:
    text = failure(
        spare_lab,
        LabError,
        NetbootStrategy={
            "board": str(quick_profile(tmp_path, deadlines={"power_on_to_prompt": 5}))
        },
        UBootDriver={"prompt": "U-Boot# "},
    )
    assert text.startswith("no U-Boot prompt 'U-Boot# ' within 5 s")
    assert "the console's last line: '=>" in text


def test_nfs_export_missing(spare_lab: Lease) -> None:
    text = failure(spare_lab, LabError, NFSRoot={"path": "/nowhere"})
    assert text.startswith("nfs_root_mount_failed in kernel: ")
    assert "10.0.2.2:/nowhere" in text
    assert "nfsvers=" in text


def test_nfs_server_down(spare_lab: Lease) -> None:
    options = f"vers=4.0,port={free_port()},tcp"
    text = failure(spare_lab, LabError, NFSRoot={"options": options})
    assert text.startswith("nfs_root_mount_failed in kernel: ")
    assert "10.0.2.2:/root" in text
    assert "Connection refused" in text


def test_garbage_instead_of_a_kernel(spare_lab: Lease, tmp_path: Path) -> None:
    kernel = kernel_copy(spare_lab, tmp_path, "Image")
    (kernel / "Image").write_bytes(b"no kernel" * 1000)
    text = failure(spare_lab, LabError, NetbootStrategy={"kernel": str(kernel)})
    assert text.startswith("bad_image in uboot: 'Bad Linux ARM64 Image magic!'")


def test_foreign_key(spare_lab: Lease, tmp_path: Path) -> None:
    make_key(tmp_path / "stranger")
    profile = quick_profile(tmp_path, deadlines={"ssh": 4})
    text = failure(
        spare_lab,
        LabError,
        NetbootStrategy={"board": str(profile)},
        SSHDriver={"keyfile": str(tmp_path / "stranger")},
    )
    assert text.startswith("ssh to root@127.0.0.1:")


def test_the_same_board_boots_after_all_that(spare_lab: Lease) -> None:
    with strategy(spare_lab) as board:
        with pytest.raises(ConfigError):
            board.kernel, kept = "/no/such/kernel", board.kernel
            board.transition(Status.ssh)
        board.kernel = kept
        board.transition(Status.ssh)
        assert board.ssh.run_check("id -u") == ["0"]
        board.transition(Status.off)


def test_a_board_that_crashed_is_booted_anew(spare_lab: Lease, tmp_path: Path) -> None:
    with strategy(spare_lab) as board:
        bench = Bench(board.target, tmp_path)
        bench.require(Status.ssh)
        with bench.board.start(["sh", "-c", "echo c > /proc/sysrq-trigger"]):
            bench.require(Status.ssh)
        assert board.boots == 2
        assert bench.board.run(["true"]).status == 0
        board.transition(Status.off)
