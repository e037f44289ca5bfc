"""Checks of an environment that need no boot: files, tools, servers, ports, the place.

Each check says what it found, or what to do. They go on after a failure, so that one run tells all.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import attrs
import serial
from labgrid import Target
from labgrid.exceptions import NoResourceFoundError
from labgrid.resource.remote import RemotePlace

from hil import environment
from hil.errors import ConfigError, HilError, LabError
from hil.kernel.artifacts import KernelArtifact
from hil.link_partner import connect
from hil.virtual import qemu, registry

CONNECT_TIMEOUT_S = 5.0
_NFS_PORT = 2049


@attrs.frozen
class Check:
    """One line of the doctor: `good` is None for what could not be looked at from here."""

    what: str
    good: bool | None
    says: str


def examine(name: str, kernel: Path | None) -> Iterator[Check]:
    """All checks of one environment, in the order in which a boot would need them."""
    yield _pyserial()
    yield from _tools()
    path = environment.find(name)
    values: dict[str, Any] = {}
    profile = environment.board_profile(environment.load(path))
    yield Check("environment", True, f"{path}, board {profile.name}")
    if profile.virtual is not None:
        states = (lab.state() for lab in registry.labs() if lab.alive)
        lab = next((state for state in states if state and state["board"] == profile.name), None)
        if lab is None:
            says = "not up; pytest brings one up for itself, `hil lab up` one that stays"
            yield Check("virtual lab", None, says)
            return
        yield Check("virtual lab", True, f"process {lab['pid']}")
        values = lab["environment"]
    env = environment.load(path, values)
    try:
        target = environment.make_target(env)
    except HilError as error:
        yield Check("place", False, str(error))
        return
    yield from _place(target)
    strategy = target.get_driver("NetbootStrategy", activate=False)
    strategy.kernel = str(kernel) if kernel else strategy.kernel
    for what, look in (
        ("kernel", lambda: _kernel(strategy)),
        ("TFTP directory", lambda: _tftp(strategy)),
        ("NFS root", lambda: _nfs(strategy)),
        ("firmware", lambda: _firmware(strategy)),
        ("serial port", lambda: _serial(strategy)),
        ("power", lambda: _power(strategy)),
        ("link partner", lambda: _partner(target)),
    ):
        yield _look(what, look)


def _look(what: str, look: Callable[[], tuple[bool | None, str]]) -> Check:
    try:
        good, says = look()
    except HilError as error:
        return Check(what, False, str(error))
    return Check(what, good, says)


def _pyserial() -> Check:
    if pyserial_is_fork():
        return Check("pyserial", True, "labgrid's fork")
    return Check(
        "pyserial",
        False,
        "plain pyserial lies over labgrid's fork; "
        "`pip uninstall -y pyserial pyserial-labgrid && pip install pyserial-labgrid`",
    )


def pyserial_is_fork() -> bool:
    """Whether the module that gets imported is the fork's: the last of both installed wins."""
    try:
        files = distribution("pyserial-labgrid").files or []
    except PackageNotFoundError:
        return False
    recorded = next(file for file in files if str(file) == "serial/rfc2217.py")
    data = (Path(serial.__file__).parent / "rfc2217.py").read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return recorded.hash is not None and recorded.hash.value == digest


def _tools() -> Iterator[Check]:
    for program, package in (("ssh", "openssh-client"), ("ip", "iproute2")):
        found = shutil.which(program)
        yield Check(
            f"program {program}", bool(found), found or f"missing; `apt-get install {package}`"
        )


def _place(target: Target) -> Iterator[Check]:
    try:
        place = target.get_resource(RemotePlace, wait_avail=False)
    except NoResourceFoundError:
        return
    acquired = place.avail
    says = "acquired" if acquired else f"not acquired; `labgrid-client -p {place.name} acquire`"
    yield Check(f"place {place.name}", acquired, says)


def _kernel(strategy: Any) -> tuple[bool | None, str]:
    if not strategy.kernel:
        raise ConfigError("none named; use --kernel DIR, HIL_KERNEL or lab.yaml")
    artifact = KernelArtifact.load(Path(strategy.kernel))
    netboot = strategy.profile.netboot
    artifact.image(netboot.kernel)
    if not strategy.dtb:
        artifact.dtb(netboot.dtb)
    return True, f"{artifact.directory}, modules of {', '.join(artifact.releases) or 'no kernel'}"


def _tftp(strategy: Any) -> tuple[bool | None, str]:
    provider = strategy.tftp.provider
    if provider.host != "localhost":
        return None, f"{provider.host}:{provider.internal} is written through ssh at the first boot"
    path = Path(provider.internal)
    if not path.is_dir():
        raise LabError(f"{path}: no such directory; create it or correct TFTPProvider.internal")
    if not os.access(path, os.W_OK):
        raise LabError(f"{path}: not writable; `chown` or `chmod` it for this user")
    return True, f"{path} is writable"


def _nfs(strategy: Any) -> tuple[bool | None, str]:
    root = strategy.nfsroot
    named = re.search(r"(?:^|,)port=(\d+)", root.options)
    # the virtual board's name for this host
    host = "127.0.0.1" if root.server == qemu.HOST_ADDRESS else root.server
    port = int(named.group(1)) if named else _NFS_PORT
    _connect(host, port, "is the NFS server up, and does it speak TCP?")
    return True, f"{host}:{port} answers, export {root.path}"


def _firmware(strategy: Any) -> tuple[bool | None, str]:
    wanted, root = strategy.profile.firmware, strategy.nfsroot.local
    if not wanted:
        return True, "none needed"
    if not root:
        return None, f"NFSRoot.local is not set: see to it that {len(wanted)} files are there"
    missing = [name for name in wanted if not (Path(root) / name.lstrip("/")).exists()]
    if missing:
        raise LabError(f"{root}: lacks {', '.join(missing)}; copy them from linux-firmware")
    return True, f"all {len(wanted)} files are in {root}"


def _serial(strategy: Any) -> tuple[bool | None, str]:
    port = strategy.console.serial.port
    if not hasattr(port, "host"):
        if not os.access(port.port or "", os.R_OK | os.W_OK):
            raise LabError(f"{port.port}: cannot be opened; add the user to the group dialout")
        return True, str(port.port)
    _connect(port.host, port.port, "is the exporter's ser2net or the virtual lab up?")
    return True, f"{port.host}:{port.port} answers"


def _power(strategy: Any) -> tuple[bool | None, str]:
    port = getattr(strategy.power, "port", None)
    if port is None or not hasattr(port, "host"):
        return None, f"{type(strategy.power).__name__} can only be tried by switching"
    url = urlparse(port.host)
    host = url.hostname or port.host
    default = {"http": 80, "https": 443}.get(url.scheme)
    if url.port or default:
        _connect(host, url.port or default or 0, "is the power unit on the network?")
        return True, f"{port.host} answers"
    return None, f"{port.model} at {host} can only be tried by switching"


def _partner(target: Target) -> tuple[bool | None, str]:
    try:
        partner = target.get_resource("LinkPartner")
    except NoResourceFoundError:
        raise ConfigError("the environment has no LinkPartner (docs/lab.md)") from None
    with connect(partner) as host:
        for port, interface in partner.ports.items():
            if host.run(["ip", "link", "show", "dev", interface]).status != 0:
                raise LabError(
                    f"{host.name} has no interface {interface} (for {port}); correct ports"
                )
        return True, f"{host.name} has {', '.join(partner.ports.values())}"


def _connect(host: str, port: int, remedy: str) -> None:
    try:
        socket.create_connection((host, port), CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise LabError(f"{host}:{port}: {error.strerror or error}; {remedy}") from error
