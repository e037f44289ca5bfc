"""Programs of the lab's own tool tree (QEMU, nfs-ganesha, kmod, cpio), run without installing them.

The host's packages differ between Debian releases (Debian 12's QEMU has no igb), and installing a
server package starts its service. So the tools are a tree of one Debian release in the cache, and
each program runs with that tree's own loader and libraries; paths stay those of the host.
"""

from __future__ import annotations

import platform
from pathlib import Path

from hil.errors import LabError

# GNU triplet and loader by `platform.machine()` of the host (from the psABIs that Debian follows).
_LOADERS = {
    "x86_64": ("x86_64-linux-gnu", "ld-linux-x86-64.so.2"),
    "aarch64": ("aarch64-linux-gnu", "ld-linux-aarch64.so.1"),
}


class ToolTree:
    """A directory tree with unpacked packages of the host's own architecture."""

    def __init__(self, root: Path) -> None:
        self.root = root
        machine = platform.machine()
        if machine not in _LOADERS:
            raise LabError(f"the virtual lab runs on {', '.join(_LOADERS)} hosts, not on {machine}")
        triplet, loader = _LOADERS[machine]
        self.libraries = root / "usr/lib" / triplet
        self._loader = self.libraries / loader

    def program(self, name: str) -> Path:
        """Path of a program in the tree. LabError when the tree lacks it."""
        for directory in ("usr/bin", "usr/sbin"):
            path = self.root / directory / name
            if path.exists():
                return path
        raise LabError(f"{self.root}: has no program {name!r}; run `hil lab clean` and try again")

    @property
    def firmware(self) -> Path:
        """U-Boot for QEMU's arm64 machine."""
        return self.root / "usr/lib/u-boot/qemu_arm64/u-boot.bin"

    @property
    def qemu_data(self) -> Path:
        return self.root / "usr/share/qemu"

    def argv(self, name: str, *arguments: str | Path) -> list[str]:
        """Command line that runs the program `name` with the tree's own libraries."""
        path = self.program(name)
        # systemd and ganesha keep private libraries in directories of their own
        search = [self.libraries, self.libraries / "systemd", self.root / "usr/lib/ganesha"]
        return [
            str(self._loader),
            "--library-path",
            ":".join(map(str, search)),
            "--argv0",
            name,
            str(path),
            *map(str, arguments),
        ]
