"""Debian's kernels as artifact directories for the virtual board and for the device-tree tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from hil.errors import LabError
from hil.virtual import initramfs
from hil.virtual.tools import ToolTree

# Goes into the tree's key: raise it when finish() changes.
FINISH_VERSION = f"2.{initramfs.FINISH_VERSION}"

INITRAMFS = "initramfs.cpio.gz"


def finish(root: Path, *, tools: ToolTree, busybox: Path) -> None:
    """Turn an unpacked kernel package into an artifact directory (see kernel/artifacts.py).

    The packages of 7.x keep everything in lib/modules/RELEASE; older ones spread it over boot/ and
    lib/linux-image-RELEASE.
    """
    modules = root / "modules/lib/modules"
    modules.parent.mkdir(parents=True)
    shutil.move(root / "usr/lib/modules", modules)
    releases = [path.name for path in modules.iterdir() if (path / "kernel").is_dir()]
    if len(releases) != 1:
        raise LabError(f"kernel package: not one kernel's modules, but {releases or 'none'}")
    release = releases[0]
    tree = modules / release
    for name, places in {
        "Image": (tree / "vmlinuz", root / f"boot/vmlinuz-{release}"),
        "config": (tree / "config", root / f"boot/config-{release}"),
        "dtbs": (tree / "dtb", root / f"usr/lib/linux-image-{release}"),
    }.items():
        found = next((place for place in places if place.exists()), None)
        if found is None:
            raise LabError(f"kernel package {release}: has no {name}")
        shutil.move(found, root / name)
    # also where the running kernel's configuration is looked for
    shutil.copy(root / "config", tree / "config")
    for leftover in ("usr", "boot", "lib", "etc"):
        shutil.rmtree(root / leftover, ignore_errors=True)
    subprocess.run(tools.argv("depmod", "-b", root / "modules", release), check=True)
    initramfs.build(root / INITRAMFS, modules=tree, busybox=busybox, tools=tools)
