"""Running commands: on the board over ssh, on the link partner, in a network namespace.

All three look the same to their users: argv in, text and exit status out, or a running command
whose lines are read as they come.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import shlex
import subprocess
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

from hil.clock import Deadline
from hil.errors import HilError, LabError, TargetError

log = logging.getLogger("hil.commands")

STOP_GRACE_S = 10.0
COMPLAINT_GRACE_S = 1.0


@attrs.frozen
class Result:
    """What a finished command said."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str

    def check(self) -> Result:
        """Itself when the status is 0, else TargetError with the command and its complaint."""
        if self.status != 0:
            complaint = (self.stderr or self.stdout).strip().splitlines()
            raise TargetError(
                f"{shlex.join(self.argv)}: exit status {self.status}: "
                f"{complaint[-1] if complaint else 'no message'}"
            )
        return self


class Running:
    """A command that goes on; use it as a context manager, so that it never outlives its user."""

    def __init__(
        self,
        argv: Sequence[str],
        lines: Iterable[str],
        wait: Callable[[float], int],
        stop: Callable[[], None],
        complaint: Callable[[], str],
        write: Callable[[str], None],
    ) -> None:
        self.argv = tuple(argv)
        self._wait = wait
        self._stop = stop
        self._complaint = complaint
        self._write = write
        self._lines: queue.Queue[str | HilError | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(lines,), daemon=True)
        self._reader.start()
        self._status: int | None = None

    def _read(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def interrupt(self, error: HilError) -> None:
        """Have whoever waits for output get this error instead; safe from any thread."""
        self._lines.put(error)

    def line(self, *, deadline: Deadline) -> str | None:
        """The next line of standard output; None at its end. LabError when the time is over.

        Raises what interrupt() was given.
        """
        try:
            line = self._lines.get(timeout=max(deadline.remaining_s, 0.001))
        except queue.Empty:
            raise LabError(
                f"{shlex.join(self.argv)}: no output within {deadline.seconds:g} s"
            ) from None
        if isinstance(line, HilError):
            raise line
        if line is None:
            self._lines.put(None)
        return line

    def write(self, line: str) -> None:
        """Give the command a line of input. LabError when it reads no more."""
        try:
            self._write(line + "\n")
        except OSError as error:
            raise LabError(f"{shlex.join(self.argv)}: takes no input: {error}") from error

    def wait(self, *, deadline: Deadline) -> Result:
        """Collect the rest of the output and the exit status."""
        rest = []
        while (line := self.line(deadline=deadline)) is not None:
            rest.append(line)
        self._status = self._wait(deadline.remaining_s)
        return Result(self.argv, self._status, "\n".join(rest), self._complaint())

    @property
    def alive(self) -> bool:
        """Whether standard output is still open."""
        return self._reader.is_alive()

    def stop(self) -> None:
        """Ask the command to end; it may have ended already."""
        if self._status is None:
            self._stop()
            self._status = self._wait(STOP_GRACE_S)

    @property
    def stop_with(self) -> Callable[[], None]:
        """The way in which the command is ended."""
        return self._stop

    def set_stop(self, stop: Callable[[], None]) -> None:
        """Replace the way in which the command is ended."""
        self._stop = stop

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Host(ABC):
    """Something that runs commands; `name` tells which in messages."""

    name: str

    @abstractmethod
    def start(self, argv: Sequence[str]) -> Running:
        """Start a command and leave it running. LabError when the machine does not answer."""

    @abstractmethod
    def put(self, source: Path, target: str) -> None:
        """Copy a file of this machine there."""

    def run(self, argv: Sequence[str], *, timeout_s: float = 30.0) -> Result:
        """Run a command to its end. LabError when that does not come in time."""
        with self.start(argv) as running:
            return running.wait(deadline=Deadline(timeout_s))


def start_local(argv: Sequence[str], shown: Sequence[str]) -> Running:
    """Start a process of this machine; `shown` is the command line for messages."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    assert stdin is not None and stdout is not None and stderr is not None
    complaints: list[str] = []
    collector = threading.Thread(target=complaints.extend, args=(stderr,), daemon=True)
    collector.start()

    def write(text: str) -> None:
        stdin.write(text)
        stdin.flush()

    def wait(seconds: float) -> int:
        try:
            status = process.wait(max(seconds, 0.001))
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        # not for ever: ssh hands its error output to the master of the connection, which keeps it
        # open as long as a dead board does not answer
        collector.join(COMPLAINT_GRACE_S)
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
        return status

    return Running(shown, stdout, wait, process.terminate, lambda: "".join(complaints), write)


class NamespaceHost(Host):
    """This machine inside a network namespace; the virtual link partner."""

    def __init__(self, namespace: str) -> None:
        self.name = f"namespace {namespace}"
        # `ip netns exec` also mounts the namespace's own /sys, which lists its interfaces
        self._prefix = ("ip", "netns", "exec", namespace)

    def start(self, argv: Sequence[str]) -> Running:
        log.info("%s$ %s", self.name, shlex.join(argv))
        return start_local([*self._prefix, *argv], argv)

    def put(self, source: Path, target: str) -> None:
        log.info("%s: %s -> %s", self.name, source, target)
        Path(target).write_bytes(source.read_bytes())


class BoardHost(Host):
    """The board, over the connection that labgrid's SSHDriver holds.

    labgrid's driver runs one command at a time; a command that goes on is a session of its own on
    the same connection.
    """

    def __init__(self, ssh: Any, name: str) -> None:
        self.name = name
        self._ssh = ssh
        self._commands: weakref.WeakSet[Running] = weakref.WeakSet()
        self._failure: HilError | None = None

    def interrupt(self, error: HilError, *, dead: bool) -> None:
        """End all that waits for the board, from any thread; of a dead one, until revive()."""
        if dead:
            self._failure = error
        for running in list(self._commands):
            running.interrupt(error)

    def revive(self) -> None:
        """The board has booted anew."""
        self._failure = None

    def start(self, argv: Sequence[str]) -> Running:
        if self._failure is not None:
            raise self._failure
        log.info("%s$ %s", self.name, shlex.join(argv))
        # Closing a session does not end its command: the shell tells its pid, then becomes it.
        remote = f"echo $$; exec {shlex.join(argv)}"
        running = start_local([*self._session(), remote], argv)
        self._commands.add(running)
        end_session = running.stop_with
        with contextlib.ExitStack() as undo:
            undo.callback(running.stop)
            first = running.line(deadline=Deadline(STOP_GRACE_S))
            if first is None:
                complaint = running.wait(deadline=Deadline(STOP_GRACE_S)).stderr.strip()
                raise LabError(f"{self.name}: ssh session failed: {complaint or 'no message'}")
            undo.pop_all()
        pid = int(first)
        running.set_stop(lambda: end_session() if self._failure else self._kill(pid))
        return running

    def put(self, source: Path, target: str) -> None:
        log.info("%s: %s -> %s", self.name, source, target)
        self._ssh.put(str(source), target)

    def _session(self) -> list[str]:
        service = self._ssh.networkservice
        user = ["-l", self._ssh._get_username()]
        return ["ssh", "-x", *self._ssh.ssh_prefix, "-p", str(service.port), *user, service.address]

    def _kill(self, pid: int) -> None:
        # a board that does not answer has no command any more that could be ended
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [*self._session(), f"kill {pid} 2>/dev/null || true"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=STOP_GRACE_S,
            )
