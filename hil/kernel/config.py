"""The running kernel's configuration: where it is found, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterable

from hil.errors import Unsupported
from hil.runners import Host

# In order: the kernel itself, then the copies that `make modules_install` and packages leave.
_COMMANDS = (
    ("/proc/config.gz", "zcat /proc/config.gz"),
    ("/lib/modules/RELEASE/config", "cat /lib/modules/$(uname -r)/config"),
    ("/boot/config-RELEASE", "cat /boot/config-$(uname -r)"),
)


def find_config(host: Host) -> tuple[str, str]:
    """The .config text of the running kernel and where it came from.

    Unsupported when the kernel was built without IKCONFIG and no copy is installed.
    """
    host.run(["modprobe", "-q", "configs"])  # IKCONFIG may be a module
    for source, command in _COMMANDS:
        result = host.run(["sh", "-c", command])
        if result.status == 0 and "CONFIG_" in result.stdout:
            return result.stdout, source
    places = ", ".join(source for source, _ in _COMMANDS)
    raise Unsupported(f"the kernel's configuration is not to be had: none of {places}")


def missing_options(config: str, required: Iterable[str]) -> list[str]:
    """Required options that the configuration does not meet, each with what it has instead.

    A requirement is `CONFIG_NAME=y` or with alternatives, `CONFIG_NAME=y|m`.
    """
    values = dict(line.split("=", 1) for line in config.splitlines() if line.startswith("CONFIG_"))
    problems = []
    for requirement in required:
        name, _, wanted = requirement.partition("=")
        have = values.get(name, "n")
        if have not in wanted.split("|"):
            problems.append(f"{name} is {have}, required: {wanted}")
    return problems
