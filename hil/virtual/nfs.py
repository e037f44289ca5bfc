"""The lab's NFS server: nfs-ganesha, in user space, version 4 only, on a loopback port.

The settings that are not obvious: no rpcbind is needed because only version 4 is served; minor
version 0 because 4.1 and 4.2 of this server gave "Remote I/O error" on directories to 7.x kernels;
directory contents are not cached because the lab stages modules while the server runs.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from hil.clock import Deadline, wait_until
from hil.errors import LabError
from hil.virtual.ports import answers, free_port
from hil.virtual.process import end, start
from hil.virtual.tools import ToolTree

START_DEADLINE_S = 20.0
# What a client mounts; the server's own path stays hidden behind it.
EXPORT_PATH = "/root"

_CONFIG = """\
NFS_CORE_PARAM {{
    Protocols = 4;
    NFS_Port = {port};
    Bind_addr = 127.0.0.1;
    Enable_UDP = false;
    Enable_NLM = false;
    Enable_RQUOTA = false;
    allow_set_io_flusher_fail = true;
    Plugins_Dir = "{plugins}";
}}
NFSv4 {{
    UseGetpwnam = true;
    Only_Numeric_Owners = true;
    Graceless = true;
    Minor_Versions = 0;
    RecoveryRoot = "{state}";
}}
MDCACHE {{ Dir_Chunk = 0; }}
EXPORT_DEFAULTS {{ Attr_Expiration_Time = 0; }}
EXPORT {{
    Export_Id = 1;
    Path = "{root}";
    Pseudo = "{export}";
    Access_Type = RW;
    Squash = No_Root_Squash;
    SecType = sys;
    Protocols = 4;
    Transports = TCP;
    FSAL {{ Name = VFS; }}
}}
LOG {{ Default_Log_Level = EVENT; }}
"""


class NfsServer:
    """Exports `root` read-write from start() to stop(); `directory` holds its files and log."""

    def __init__(self, tools: ToolTree, root: Path, directory: Path) -> None:
        self._tools = tools
        self._directory = directory
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.log_file = directory / "ganesha.log"

    def start(self) -> None:
        """Start serving. LabError with the server's own last words when it does not come up."""
        _require_mount_table()
        state = self._directory / "state"
        state.mkdir(parents=True, exist_ok=True)
        config = self._directory / "ganesha.conf"
        # Another program may take the port between the look and the start; then look again.
        for _ in range(3):
            self.port = free_port()
            config.write_text(
                _CONFIG.format(
                    port=self.port,
                    plugins=self._tools.libraries / "ganesha",
                    state=state,
                    root=self._root,
                    export=EXPORT_PATH,
                )
            )
            if self._start_once(config):
                return
        raise LabError(f"nfs-ganesha did not start: {self._last_words()}")

    def _start_once(self, config: Path) -> bool:
        process = start(
            self._tools.argv(
                "ganesha.nfsd",
                *("-F", "-x"),
                *("-f", config, "-L", self.log_file, "-p", self._directory / "ganesha.pid"),
            ),
            log_file=self._directory / "ganesha.out",
        )
        self._process = process
        deadline = Deadline(START_DEADLINE_S)
        wait_until(
            lambda: process.poll() is not None or answers(self.port),
            deadline=deadline,
        )
        if process.poll() is None and answers(self.port):
            return True
        self.stop()
        return False

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        if self._process is not None:
            end(self._process)
            self._process = None

    def _last_words(self) -> str:
        if not self.log_file.exists():
            return "no log was written"
        lines = self.log_file.read_text(errors="replace").splitlines()
        telling = [line for line in lines if ":CRIT :" in line or ":FATAL :" in line]
        return (telling or lines or ["empty log"])[0] + f" (log: {self.log_file})"


def _require_mount_table() -> None:
    """Make /etc/mtab, which nfs-ganesha reads: a system has it only once it has been booted."""
    table = Path("/etc/mtab")
    if not table.exists():
        table.symlink_to("../proc/self/mounts")
