"""The cache: downloads by their hash, finished trees by their recipe, and the locks around them.

    blobs/sha256/AB/ABCD...   downloads, complete and verified
    trees/NAME-KEY            finished trees; a directory here is complete by definition
    work/LOCK                 the half-done work of whoever holds that lock
    apt/                      apt's own index files
    locks/LOCK                never removed: a lock file that vanishes guards nothing

Nothing is written in place. A run that is killed leaves only its directory in work/, and since the
kernel drops its lock with it, any later run can tell the remains from work that is going on.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import platformdirs

from hil.errors import LabError

MANIFEST = "manifest.json"
KEY_LENGTH = 16

# A lock that all builders share and clean() has alone.
_IN_USE = "in-use"

# Unpacked packages are about three times as big as their archives, which are kept as well.
_SPACE_FACTOR = 4


class Cache:
    """A cache directory; by default `$HIL_CACHE`, else `hil` in the user's cache directory.

    All public paths may be used by several processes at once.
    """

    def __init__(self, root: Path | None = None) -> None:
        default = os.environ.get("HIL_CACHE") or platformdirs.user_cache_dir("hil")
        self.root = (root or Path(default)).absolute()

    def blob(self, sha256: str) -> Path:
        """Where the download with this hash is, or will be."""
        return self.root / "blobs/sha256" / sha256[:2] / sha256

    def tree(self, name: str, key: str) -> Path:
        """Where the tree of this recipe is, or will be."""
        return self.root / "trees" / f"{name}-{key[:KEY_LENGTH]}"

    @contextmanager
    def lock(self, name: str, task: str) -> Iterator[int]:
        """Hold a lock among all processes that use this cache; says so once when it has to wait.

        `task` is what its holder does ("builds tools"). Gives the lock's file descriptor: a child
        that inherits it keeps the lock when we are killed, right for a child that still writes.
        """
        with self._lock_file(name) as descriptor:
            if not _try_lock(descriptor):
                click.echo(f"waiting for another run that {task}", err=True)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor

    @contextmanager
    def workspace(self, name: str) -> Iterator[Path]:
        """An empty directory for half-done work, removed at the end.

        The caller holds the lock `name`; that is what protects the directory from other runs.
        """
        with self._lock_file(_IN_USE) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            self.remove_leftovers()
            directory = self.root / "work" / name
            _remove(directory)
            directory.mkdir(parents=True)
            try:
                yield directory
            finally:
                _remove(directory)

    def remove_leftovers(self) -> None:
        """Remove the half-done work of runs that were killed: their locks are free."""
        for directory in _entries(self.root / "work"):
            with self._lock_file(directory.name) as descriptor:
                if _try_lock(descriptor):
                    _remove(directory)

    def require_space(self, download_bytes: int) -> None:
        """LabError when a download of this size, and what is unpacked from it, does not fit."""
        self.root.mkdir(parents=True, exist_ok=True)
        needed_bytes = download_bytes * _SPACE_FACTOR
        free_bytes = shutil.disk_usage(self.root).free
        if needed_bytes > free_bytes:
            raise LabError(
                f"{self.root}: {needed_bytes / 1e6:.0f} MB are needed and {free_bytes / 1e6:.0f} MB"
                " are free; make room or set HIL_CACHE to a directory on a bigger disk"
            )

    def clean(self, *, unused: bool = False) -> int:
        """Empty the cache and return the bytes that this freed. LabError while a run builds.

        With `unused`, trees go only when a newer one of the same name exists, and downloads only
        when no remaining tree was made from them. The caller sees to it that no lab uses a tree.
        """
        with self._lock_file(_IN_USE) as descriptor:
            if not _try_lock(descriptor):
                raise LabError(f"{self.root}: another run builds in this cache; wait until it ends")
            before_bytes = self.size_bytes()
            self.remove_leftovers()
            for tree in self._superseded() if unused else _entries(self.root / "trees"):
                self._discard(tree)
            kept = self._hashes_in_use() if unused else set()
            for blob in self.root.glob("blobs/sha256/*/*"):
                if blob.name not in kept:
                    blob.unlink()
            if not unused:
                _remove(self.root / "apt")
            return before_bytes - self.size_bytes()

    def size_bytes(self) -> int:
        """Disk space that the cache's own parts take; no run may be at work in it."""
        parts = ("blobs", "trees", "work", "apt")
        return sum(_disk_usage_bytes(self.root / part) for part in parts)

    def _discard(self, tree: Path) -> None:
        """Remove a tree in one step as others see it: half a tree must not look like one."""
        doomed = self.root / "work" / tree.name
        doomed.parent.mkdir(parents=True, exist_ok=True)
        tree.rename(doomed)
        _remove(doomed)

    def _superseded(self) -> list[Path]:
        newest: dict[str, Path] = {}
        trees = sorted(_entries(self.root / "trees"), key=lambda tree: tree.stat().st_mtime)
        for tree in trees:
            newest[tree.name[: -KEY_LENGTH - 1]] = tree
        return [tree for tree in trees if tree not in newest.values()]

    def _hashes_in_use(self) -> set[str]:
        return {
            package["sha256"]
            for tree in _entries(self.root / "trees")
            for package in json.loads((tree / MANIFEST).read_text())["packages"]
        }

    @contextmanager
    def _lock_file(self, name: str) -> Iterator[int]:
        path = self.root / "locks" / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise LabError(f"{path}: {error.strerror}; set HIL_CACHE to another place") from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _entries(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.is_dir() else []


def _remove(directory: Path) -> None:
    if directory.exists():
        shutil.rmtree(directory)


def _disk_usage_bytes(directory: Path) -> int:
    """Counts a file with several names once, and nothing behind a symbolic link."""
    sizes: dict[tuple[int, int], int] = {}
    for parent, _, names in os.walk(directory):
        for name in names:
            status = (Path(parent) / name).lstat()
            if stat.S_ISREG(status.st_mode):
                sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())
