"""ssh keys of the virtual lab."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from hil.errors import LabError


def make_key(path: Path) -> None:
    """Make a key pair without a passphrase, `path` and `path`.pub. LabError without ssh-keygen."""
    if not shutil.which("ssh-keygen"):
        raise LabError("ssh-keygen is missing; `apt-get install openssh-client`")
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "hil", "-f", str(path)], check=True
    )
