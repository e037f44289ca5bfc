"""Errors by who has to act: the writer of a file, the lab's keeper, or the author of the kernel.

Every message is one line that names the thing (file and key, host and port, command) and the
remedy, because it is shown to the user as it is, without a traceback.
"""

import difflib
from collections.abc import Iterable


def suggestion(word: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the known one that it is most like, if any."""
    close = difflib.get_close_matches(str(word), list(known), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


class HilError(Exception):
    """Base of all errors that the framework raises on purpose."""

    kind = "error"
    exit_code = 1


class ConfigError(HilError):
    """A file, a key or an option is wrong: fix the file."""

    kind = "configuration error"
    exit_code = 2


class LabError(HilError):
    """Power, serial, TFTP, NFS, ssh or a tool failed: fix the lab. Never a vote on a kernel."""

    kind = "lab error"
    exit_code = 125


class TargetError(HilError):
    """The kernel or the board itself failed."""

    kind = "target failure"


class Unsupported(HilError):
    """A probe of the live kernel or NIC says that it cannot do this; the message is its answer."""

    kind = "unsupported"
    exit_code = 0
