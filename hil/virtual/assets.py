"""What the virtual lab is made of: built once, then taken from the cache without any network."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import attrs

from hil.virtual import kernels, rootfs
from hil.virtual.board import choose_accelerator
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
    """Paths in the cache; they are shared by all labs and never written to."""

    tools: ToolTree
    rootfs: Path
    kernel: Path
    accelerator: str

    @property
    def bios(self) -> Path:
        return bios(self.tools)


def bios(tools: ToolTree) -> Path:
    return tools.root / "usr/lib/u-boot/qemu_arm64/u-boot.bin"


def prepare(cache: Cache) -> Assets:
    """Build or find all parts. LabError when a download or an unpacking fails."""
    tools = ToolTree(build_tree(_tool_recipe(), cache))
    root = build_tree(_ROOTFS, cache, finish=rootfs.finish)
    return Assets(
        tools=tools,
        rootfs=root,
        kernel=build_kernel(cache, tools, root),
        accelerator=choose_accelerator(tools, bios(tools)),
    )


def build_kernel(cache: Cache, tools: ToolTree, root: Path) -> Path:
    """The default kernel's artifact directory: Debian's newest arm64 kernel for this release."""
    finish = partial(kernels.finish, tools=tools, busybox=root / "usr/bin/busybox")
    return build_tree(_KERNEL, cache, finish=finish)


def ti_device_trees(cache: Cache) -> dict[str, Path]:
    """Directories with Debian's own device-tree files by architecture: `arm64`, `arm`.

    They are only needed to prove the board profiles, so the 32-bit kernel is fetched here alone.
    """
    tools = ToolTree(build_tree(_tool_recipe(), cache))
    root = build_tree(_ROOTFS, cache, finish=rootfs.finish)
    arm = build_tree(_ARM_KERNEL, cache)
    (arm_dtbs,) = arm.glob("usr/lib/linux-image-*")
    return {"arm64": build_kernel(cache, tools, root) / "dtbs", "arm": arm_dtbs}


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
