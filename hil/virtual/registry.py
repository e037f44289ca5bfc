"""Which virtual labs there are on this machine, and which of them are dead.

A lab's supervisor holds a file lock for as long as it lives, and the kernel drops it however the
supervisor ends. So "lock free but directory there" means a killed lab, whatever its pid is now.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import platformdirs

from hil.clock import Deadline, wait_until
from hil.errors import ConfigError, LabError
from hil.virtual.partner import remove_namespace

# A supervisor that has been told to end needs this long at most.
END_DEADLINE_S = 20.0


def run_directory() -> Path:
    """Where labs keep sockets and state: `$HIL_RUN`, else /run/hil.

    Who is not root cannot write there and has them in his own state directory (`hil/run`).
    """
    own = Path(platformdirs.user_state_dir("hil"), "run")
    return Path(os.environ.get("HIL_RUN") or ("/run/hil" if os.geteuid() == 0 else own))


@attrs.frozen
class LabRecord:
    """One lab's place in the registry; nothing is acquired by making one."""

    name: str

    @classmethod
    def named(cls, name: str) -> LabRecord:
        """ConfigError for a name that could not be a directory, a namespace and a lock."""
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,23}", name):
            raise ConfigError(f"lab name {name!r}: use at most 24 small letters, digits and dashes")
        return cls(name)

    @property
    def directory(self) -> Path:
        return run_directory() / self.name

    @property
    def namespace(self) -> str:
        return f"hil-{self.name}"

    @property
    def log_file(self) -> Path:
        return run_directory() / f"{self.name}.log"

    @property
    def _lock_file(self) -> Path:
        return run_directory() / f"{self.name}.lock"

    @property
    def alive(self) -> bool:
        """Whether a supervisor holds the lab now."""
        if not self._lock_file.exists():
            return False
        with self._lock_file.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    @property
    def abandoned(self) -> bool:
        """Whether the process for which the lab is kept has gone."""
        owner = (self._read("claim.json") or {}).get("owner")
        return owner is not None and not Path(f"/proc/{owner}").exists()

    @contextlib.contextmanager
    def hold(self, *, disk: Path | None, owner: int | None = None) -> Iterator[None]:
        """Be the supervisor of this lab; what a dead one left under this name is removed first.

        `disk` is the lab's directory on disk, noted before anything is made in it (None when it
        needs none); `owner` the process for which the lab is kept, if any.
        LabError when the lab is up already.
        """
        run_directory().mkdir(parents=True, exist_ok=True)
        with self._lock_file.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LabError(f"lab {self.name!r} is up already; see `hil lab status`") from None
            self._remove_remains()
            self.directory.mkdir()
            self._write("claim.json", {"disk": disk and str(disk), "owner": owner})
            try:
                yield
            finally:
                self._remove_remains()

    def publish(self, state: dict[str, Any]) -> None:
        """Tell everybody that the lab is ready, and how to reach it."""
        self._write("state.json", state)

    def state(self) -> dict[str, Any] | None:
        """What publish() wrote; None while the lab is not ready."""
        return self._read("state.json")

    def wait_dead(self, *, deadline: Deadline) -> bool:
        return bool(wait_until(lambda: not self.alive, deadline=deadline))

    def reap(self) -> bool:
        """Remove what a dead lab left; False when the lab is alive or there is nothing."""
        if self.alive or not self.directory.exists():
            return False
        self._remove_remains()
        return True

    def forget(self) -> None:
        """Remove lock and log too; only for a dead lab whose name nobody will use again."""
        self._lock_file.unlink(missing_ok=True)
        self.log_file.unlink(missing_ok=True)

    def _remove_remains(self) -> None:
        remove_namespace(self.namespace)
        claim = self._read("claim.json")
        if claim and claim["disk"]:
            shutil.rmtree(claim["disk"], ignore_errors=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _write(self, name: str, value: dict[str, Any]) -> None:
        temporary = self.directory / f".{name}"
        temporary.write_text(json.dumps(value, indent=2))
        temporary.rename(self.directory / name)

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            value: dict[str, Any] = json.loads((self.directory / name).read_text())
        except FileNotFoundError:
            return None
        return value


def labs() -> list[LabRecord]:
    """All labs that have a directory, dead or alive, by name."""
    directories = run_directory().glob("*/claim.json")
    return sorted((LabRecord(path.parent.name) for path in directories), key=lambda lab: lab.name)


def reap_dead_labs() -> list[str]:
    """Clean up after killed runs; names of the labs that were removed.

    A lab whose owner was killed is still taking itself down: that is waited for.
    """
    reaped = []
    for lab in labs():
        if lab.abandoned:
            lab.wait_dead(deadline=Deadline(END_DEADLINE_S))
        if lab.reap():
            lab.forget()
            reaped.append(lab.name)
    return reaped
