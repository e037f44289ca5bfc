"""What the virtual lab is made of: built once, then taken from the cache without any network."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import attrs

from hil.virtual import kernels, rootfs
from hil.virtual.cache import Cache
from hil.virtual.packages import TreeRecipe, build_tree, host_architecture
from hil.virtual.tools import ToolTree

SUITE = "trixie"

TOOL_PACKAGES = (
    *("qemu-system-arm", "u-boot-qemu"),
    *("nfs-ganesha", "nfs-ganesha-vfs"),
    *("kmod", "cpio"),
)
# The packages that make up a kernel; the meta package and its dependencies are left out.
_KERNEL_PARTS = (r"linux-(binary|modules|base)-\d.*", r"linux-image-\d.*")


@attrs.frozen
class Assets:
    """Parts in the cache; they are shared by all labs and never written to.

    `kernel` is an artifact directory with Debian's newest arm64 kernel for this release.
    """

    tools: ToolTree
    rootfs: Path
    kernel: Path


def prepare(cache: Cache) -> Assets:
    """Build or find all parts. LabError when a download or an unpacking fails."""
    tools = ToolTree(build_tree(_tool_recipe(), cache))
    root = build_tree(_ROOTFS, cache, finish=rootfs.finish)
    finish = partial(kernels.finish, tools=tools, busybox=root / "usr/bin/busybox")
    return Assets(tools=tools, rootfs=root, kernel=build_tree(_KERNEL, cache, finish=finish))


def ti_device_trees(cache: Cache) -> dict[str, Path]:
    """Directories with Debian's own device-tree files by architecture: `arm64`, `arm`.

    They are only needed to prove the board profiles, so the 32-bit kernel is fetched here alone.
    """
    (arm_dtbs,) = build_tree(_ARM_KERNEL, cache).glob("usr/lib/linux-image-*")
    return {"arm64": prepare(cache).kernel / "dtbs", "arm": arm_dtbs}


def _tool_recipe() -> TreeRecipe:
    return TreeRecipe(
        name="tools", suite=SUITE, architecture=host_architecture(), packages=TOOL_PACKAGES
    )


_ROOTFS = TreeRecipe(
    name="rootfs-arm64",
    suite=SUITE,
    architecture="arm64",
    packages=rootfs.PACKAGES,
    finish_version=rootfs.FINISH_VERSION,
)
_KERNEL = TreeRecipe(
    name="kernel-arm64",
    suite=SUITE,
    pocket="backports",
    architecture="arm64",
    packages=("linux-image-arm64",),
    keep=_KERNEL_PARTS,
    finish_version=kernels.FINISH_VERSION,
)
_ARM_KERNEL = TreeRecipe(
    name="kernel-armmp",
    suite=SUITE,
    architecture="armhf",
    packages=("linux-image-armmp",),
    keep=_KERNEL_PARTS,
)
