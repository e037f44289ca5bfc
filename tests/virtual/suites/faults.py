"""What real kernels do wrong, each provoked on the virtual board with what its kernel has.

Run by test_faults.py as a suite of its own; most of these are meant to fail.
"""

from __future__ import annotations

import contextlib
import socket

from pexpect import TIMEOUT

from hil.bench import Bench
from hil.clock import Deadline, wait_until

PORT1, PORT2 = "0000:01:00.0", "0000:02:00.0"


# One thread faults on a page that nobody brings (userfaultfd) while it holds a pipe's lock; another
# waits for that lock, and no signal can end it.
WAITS_FOR_LOCK = """
import ctypes, fcntl, mmap, os, struct, threading, time
page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
start = ctypes.addressof(ctypes.c_char.from_buffer(page))
USERFAULTFD, UFFDIO_API, UFFDIO_REGISTER, MISSING = 282, 0xC018AA3F, 0xC020AA00, 1
faults = ctypes.CDLL(None).syscall(USERFAULTFD, 0)
fcntl.ioctl(faults, UFFDIO_API, struct.pack("<3Q", 0xAA, 0, 0))
fcntl.ioctl(faults, UFFDIO_REGISTER, struct.pack("<4Q", start, mmap.PAGESIZE, MISSING, 0))
_, pipe = os.pipe()
threading.Thread(target=os.write, args=(pipe, page), daemon=True).start()
os.read(faults, 32)
os.write(pipe, b"x")
"""


def sh(board: Bench, script: str) -> str:
    return board.board.run(["sh", "-c", script], timeout_s=60).check().stdout


def good(board: Bench) -> None:
    assert sh(board, "uname -s") == "Linux"


def test_good(board: Bench) -> None:
    good(board)


def test_driver_warns(board: Bench) -> None:
    """igb warns when its registers do not answer: the port's memory decoding is off."""
    sh(
        board,
        f"printf '\\000' | dd of=/sys/bus/pci/devices/{PORT2}/config bs=1 seek=4 conv=notrunc",
    )
    sh(board, f"ip link set $(ls /sys/bus/pci/devices/{PORT2}/net) up || true")


def test_good_after_a_warning(board: Bench) -> None:
    good(board)


def test_oops(board: Bench) -> None:
    """A driver is bound to a device that it does not know, and reads what nobody gave it."""
    sh(
        board,
        f"""
        modprobe rtw89_8852ae
        echo {PORT1} > /sys/bus/pci/drivers/igb/unbind
        echo rtw89_8852ae > /sys/bus/pci/devices/{PORT1}/driver_override
        echo {PORT1} > /sys/bus/pci/drivers/rtw89_8852ae/bind
        """,
    )


def test_good_after_an_oops(board: Bench) -> None:
    good(board)


def test_hung_task(board: Bench) -> None:
    sh(board, "echo 2 > /proc/sys/kernel/hung_task_timeout_secs")
    board.board.run(["python3", "-c", WAITS_FOR_LOCK], timeout_s=60).check()


def test_serial_link_is_cut_and_back(board: Bench) -> None:
    """As when a serial server restarts."""
    console = board.strategy.console
    console.serial.serial._socket.shutdown(socket.SHUT_RDWR)

    def is_back() -> bool:
        # of a priority that the console shows after labgrid's login too
        sh(board, "echo '<0>still there' > /dev/kmsg")
        with contextlib.suppress(TIMEOUT):
            console.expect("still there", timeout=1)
            return True
        return False

    assert wait_until(is_back, deadline=Deadline(20))


def test_reset_on_purpose(board: Bench) -> None:
    with board.expected_reset(), board.board.start(["sh", "-c", "echo b > /proc/sysrq-trigger"]):
        board.monitor.expect("U-Boot 20", timeout=20)


def test_good_after_a_reset_on_purpose(board: Bench) -> None:
    good(board)


def test_reset(board: Bench) -> None:
    """The board starts anew and nothing said why."""
    sh(board, "echo b > /proc/sysrq-trigger")
