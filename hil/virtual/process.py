"""Child processes that cannot outlive the lab."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

END_GRACE_S = 5.0


def start(
    argv: Sequence[str], *, log_file: Path, pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a child that the kernel kills when the thread that started it ends.

    So nothing is left behind even after `kill -9` of the lab; the calling thread must therefore
    live as long as the child is wanted. Output is appended to `log_file`.
    """
    with log_file.open("ab") as output:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=pass_fds,
            start_new_session=True,  # Ctrl-C is for the lab, which ends its children in order
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask the child to end, then make it; its exit status is collected in every case."""
    process.terminate()
    try:
        process.wait(END_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
