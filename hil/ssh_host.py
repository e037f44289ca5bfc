"""A link partner that is another machine, reached with paramiko.

Boards inside labgrid go through labgrid's SSHDriver. A host key that is seen for the first time is
recorded; one that has changed is refused.
"""

from __future__ import annotations

import logging
import shlex
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import paramiko
import platformdirs

from hil.errors import LabError
from hil.runners import STOP_GRACE_S, Host, Running

log = logging.getLogger("hil.commands")

CONNECT_DEADLINE_S = 15.0
KEEPALIVE_S = 15


def known_hosts_file() -> Path:
    """Where hil records the keys of link partners."""
    return Path(platformdirs.user_data_dir("hil")) / "known_hosts"


class SshHost(Host):
    """A machine as `[user@]host[:port]`; connect with open(), or use it as a context manager."""

    def __init__(
        self, address: str, *, key_file: Path | None = None, known_hosts: Path | None = None
    ) -> None:
        user, _, rest = address.rpartition("@")
        host, _, port = rest.partition(":")
        self.name = host
        self._host, self._port = host, int(port or 22)
        self._user = user or "root"
        self._key_file = key_file
        self._known_hosts = known_hosts or known_hosts_file()
        self._client = paramiko.SSHClient()

    def open(self) -> SshHost:
        """LabError with the reason when the machine cannot be reached, or is not the one it was."""
        self._known_hosts.parent.mkdir(parents=True, exist_ok=True)
        self._known_hosts.touch()
        self._client.load_system_host_keys()
        self._client.load_host_keys(str(self._known_hosts))
        self._client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
        where = f"link partner {self._user}@{self._host}:{self._port}"
        try:
            self._client.connect(
                self._host,
                self._port,
                self._user,
                key_filename=str(self._key_file) if self._key_file else None,
                timeout=CONNECT_DEADLINE_S,
                banner_timeout=CONNECT_DEADLINE_S,
                auth_timeout=CONNECT_DEADLINE_S,
            )
        except paramiko.BadHostKeyException as error:
            raise LabError(
                f"{where}: its host key has changed; if that is right, remove its line from "
                f"{self._known_hosts}"
            ) from error
        except (paramiko.SSHException, OSError) as error:
            raise LabError(f"{where}: {error}; check the address, ssh-agent and key") from error
        transport = self._client.get_transport()
        assert transport is not None
        transport.set_keepalive(KEEPALIVE_S)
        return self

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> SshHost:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, argv: Sequence[str]) -> Running:
        log.info("%s$ %s", self.name, shlex.join(argv))
        try:
            # Closing a channel does not end its command: the shell tells its pid, then becomes it.
            given, output, errors = self._client.exec_command(f"echo $$; exec {shlex.join(argv)}")
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise LabError(f"{self.name}: ssh session failed: {error}") from error
        channel = output.channel
        pid = int(output.readline() or 0)
        complaints: list[str] = []
        collector = threading.Thread(target=complaints.extend, args=(errors,), daemon=True)
        collector.start()

        def lines() -> Iterator[str]:
            yield from output

        def wait(seconds: float) -> int:
            if not channel.status_event.wait(max(seconds, 0.001)):
                channel.close()
                raise LabError(f"{shlex.join(argv)}: did not end on {self.name}")
            collector.join(STOP_GRACE_S)
            return int(channel.recv_exit_status())

        def stop() -> None:
            if pid and not channel.exit_status_ready():
                self._client.exec_command(f"kill {pid}")

        def write(text: str) -> None:
            given.write(text)
            given.flush()

        return Running(argv, lines(), wait, stop, lambda: "".join(complaints), write)

    def put(self, source: Path, target: str) -> None:
        log.info("%s: %s -> %s", self.name, source, target)
        try:
            with self._client.open_sftp() as sftp:
                sftp.put(str(source), target)
        except (paramiko.SSHException, OSError) as error:
            raise LabError(f"{self.name}: {target} could not be written: {error}") from error
