"""A kernel as the lab boots it: a directory with image, device trees, modules and configuration.

DIR/Image                        or whatever name the board profile gives (zImage, ...)
DIR/dtbs/ti/k3-am642-evm.dtb     as `make dtbs_install INSTALL_DTBS_PATH=DIR/dtbs` leaves them
DIR/modules/lib/modules/RELEASE  as `make modules_install INSTALL_MOD_PATH=DIR/modules`
DIR/config                       the kernel's .config
DIR/initramfs.cpio.gz            only for kernels that cannot mount an NFS root themselves
"""

from __future__ import annotations

from pathlib import Path

import attrs

from hil.errors import ConfigError


@attrs.frozen
class KernelArtifact:
    """Paths of one kernel's files; a file is looked for when it is asked for."""

    directory: Path

    @classmethod
    def load(cls, directory: Path) -> KernelArtifact:
        """ConfigError when there is no such directory."""
        if not directory.is_dir():
            raise ConfigError(
                f"{directory}: no such kernel directory; give one that holds the kernel image, "
                "dtbs/ and modules/ (docs/lab.md, section Kernels)"
            )
        return cls(directory.resolve())

    def image(self, name: str) -> Path:
        return self._file(name, "kernel image", "copy it there from arch/*/boot")

    def dtb(self, name: str) -> Path:
        return self._file(
            f"dtbs/{name}", "device tree", "run `make dtbs_install INSTALL_DTBS_PATH=DIR/dtbs`"
        )

    def initramfs(self, name: str) -> Path:
        return self._file(name, "initramfs", "leave `netboot.initramfs` out if none is needed")

    @property
    def releases(self) -> tuple[str, ...]:
        """Releases (`uname -r`) that the modules directory holds, in order of name."""
        modules = self.directory / "modules/lib/modules"
        return tuple(sorted(entry.name for entry in modules.glob("*") if entry.is_dir()))

    def modules(self, release: str) -> Path:
        return self.directory / "modules/lib/modules" / release

    @property
    def config(self) -> Path | None:
        path = self.directory / "config"
        return path if path.exists() else None

    def _file(self, name: str, what: str, remedy: str) -> Path:
        path = self.directory / name
        if not path.is_file():
            raise ConfigError(f"{path}: no such {what}; {remedy}")
        return path


def variant_of(dtb: Path, name: str) -> Path:
    """The device tree that differs from `dtb` by a variant: NAME-VARIANT.dtb beside NAME.dtb.

    ConfigError tells which variants there are.
    """
    if "/" in name:
        raise ConfigError(f"variant {name!r}: is part of a file's name; leave out the directory")
    path = dtb.with_name(f"{dtb.stem}-{name}.dtb")
    if path.is_file():
        return path
    others = dtb.parent.glob(f"{dtb.stem}-*.dtb")
    there = sorted(other.stem.removeprefix(f"{dtb.stem}-") for other in others)
    raise ConfigError(
        f"{path}: no such device tree for variant {name!r}; "
        + (f"there are {', '.join(there)}" if there else "this kernel has no variants")
    )
