"""Putting a kernel where the board finds it: TFTP directory and root filesystem."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hil.errors import LabError
from hil.kernel.artifacts import KernelArtifact

# Tells which artifact a staged modules directory came from.
_ORIGIN = ".hil-origin"


@contextlib.contextmanager
def unique_names(*files: Path) -> Iterator[list[Path]]:
    """Links to the files under names that no other kernel's files have in a shared TFTP directory.

    labgrid stages a file under its base name, and every kernel is called Image.
    """
    with tempfile.TemporaryDirectory(prefix="hil-stage-") as directory:
        links = []
        for file in files:
            link = Path(directory) / f"hil-{identity(file)}-{file.name}"
            link.symlink_to(file.resolve())
            links.append(link)
        yield links


def identity(path: Path) -> str:
    """Short name for one state of one file or directory, without reading it."""
    status = path.stat()
    text = f"{path.resolve()} {status.st_size} {status.st_mtime_ns}"
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def stage_modules(artifact: KernelArtifact, root: Path) -> list[str]:
    """Copy the artifact's modules into a root filesystem; releases that were copied anew.

    A release appears under its name only when it is complete. LabError when `root` is no directory.
    """
    if not root.is_dir():
        raise LabError(f"{root}: no such directory; NFSRoot.local must be the root filesystem")
    copied = []
    for release in artifact.releases:
        source = artifact.modules(release)
        target = root / "lib/modules" / release
        origin = f"{source} {identity(source)}\n"
        marker = target / _ORIGIN
        if marker.exists() and marker.read_text() == origin:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".hil-", dir=target.parent) as temporary:
            fresh = Path(temporary) / release
            shutil.copytree(source, fresh, symlinks=True)
            (fresh / _ORIGIN).write_text(origin)
            if target.exists():
                target.rename(Path(temporary) / "old")
            fresh.rename(target)
        copied.append(release)
    return copied
