"""Unpack Debian packages into a directory without ever writing outside it.

Not `dpkg-deb -x`: it writes through whatever symbolic links are there, and an absolute one, taken
from an earlier package, would lead a process of root from the tree into the host.
"""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path, PurePosixPath

from hil.errors import LabError

# Debian's packages of trixie ship everything in usr/; files of older ones must land there too.
_MERGED = ("bin", "sbin", "lib")


class DebTree:
    """A directory that packages are unpacked into, with /bin, /sbin and /lib being links to usr/.

    As root the packages' owners and modes are kept. No package script runs.
    """

    def __init__(self, root: Path, architecture: str) -> None:
        root.mkdir()
        self.root = root.resolve()
        links = (*_MERGED, "lib64") if architecture == "amd64" else _MERGED
        self._links = [self.root / name for name in links]
        for link in self._links:
            (self.root / "usr" / link.name).mkdir(parents=True)
            link.symlink_to(f"usr/{link.name}")

    def unpack(self, package: Path, name: str) -> None:
        """LabError when the package is broken, or a file of it clashes with the tree."""
        command = ["dpkg-deb", "--fsys-tarfile", str(package)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stderr is not None
            try:
                with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                    # The checks are in _place(); the filters of newer Pythons drop set-uid bits.
                    archive.extraction_filter = lambda member, path: member
                    for member in archive:
                        if self._place(member, name):
                            archive.extract(member, self.root, numeric_owner=True)
                process.stdout.read()  # padding; unread, dpkg-deb would die of SIGPIPE
            except (tarfile.TarError, OSError) as error:
                process.kill()
                detail = process.stderr.read().decode(errors="replace").strip() or error
                raise LabError(f"package {name} ({package}): cannot unpack: {detail}") from error
        if process.returncode:
            raise LabError(f"package {name} ({package}): dpkg-deb failed: {process.returncode}")

    def drop_unused_links(self) -> None:
        """Remove those of the links to usr/ whose directory no package filled."""
        for link in self._links:
            if not any(link.iterdir()):
                link.resolve().rmdir()
                link.unlink()

    def _place(self, member: tarfile.TarInfo, package: str) -> bool:
        """Make room for a member of a package; False when it is there already."""
        target = self._inside(member.name, package)
        if member.islnk():
            self._inside(member.linkname, package)
        if member.isdir():
            if target.exists() and not target.is_dir():
                raise LabError(f"package {package}: {member.name} is a file in another package")
            return not target.is_symlink()
        if target.is_symlink() and member.issym() and str(target.readlink()) == member.linkname:
            return False
        if target.is_dir():
            raise LabError(f"package {package}: {member.name} is a directory in another package")
        target.unlink(missing_ok=True)
        return True

    def _inside(self, name: str, package: str) -> Path:
        """The path of a member, when no link on the way to it leads out of the tree."""
        path = self.root / name
        inside = path == self.root or path.parent.resolve().is_relative_to(self.root)
        if not inside or ".." in PurePosixPath(name).parts:
            raise LabError(f"package {package}: {name} would be written outside {self.root}")
        return path
