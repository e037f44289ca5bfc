"""Packages are unpacked as dpkg would do it, and never outside the tree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hil.errors import LabError
from hil.virtual.unpack import DebTree
from tests.virtual.mirror import build_package


def write(tree: Path, name: str, text: str = "") -> Path:
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def link(tree: Path, name: str, target: str | Path) -> None:
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


@pytest.fixture
def unpack(tmp_path: Path) -> Callable[..., Path]:
    """Build packages, each by a function that fills it, and unpack them into one tree."""

    def run(*fills: Callable[[Path], object]) -> Path:
        tree = DebTree(tmp_path / "tree", "amd64")
        for number, fill in enumerate(fills):
            package = build_package(tmp_path / "debs", f"p{number}", lambda t, f=fill: f(t))
            tree.unpack(package, f"p{number}")
        return tree.root

    return run


def test_files_below_bin_and_lib_land_in_usr(unpack: Callable[..., Path]) -> None:
    root = unpack(
        lambda tree: (write(tree, "bin/old", "old"), write(tree, "lib/modules/1/x.ko", "module")),
        lambda tree: (link(tree, "bin", "usr/bin"), write(tree, "usr/bin/new", "new")),
    )
    assert (root / "bin").readlink() == Path("usr/bin")
    assert {path.name for path in (root / "usr/bin").iterdir()} == {"old", "new"}
    assert (root / "usr/lib/modules/1/x.ko").read_text() == "module"


def test_modes_and_hard_links_are_kept(unpack: Callable[..., Path]) -> None:
    def fill(tree: Path) -> None:
        write(tree, "usr/bin/su").chmod(0o4755)
        (tree / "tmp").mkdir()
        (tree / "tmp").chmod(0o1777)
        (tree / "usr/bin/same").hardlink_to(write(tree, "usr/bin/one", "text"))

    root = unpack(fill)
    assert (root / "usr/bin/su").stat().st_mode & 0o7777 == 0o4755
    assert (root / "tmp").stat().st_mode & 0o7777 == 0o1777
    assert (root / "usr/bin/same").samefile(root / "usr/bin/one")


def test_links_to_usr_without_a_directory_go_away(tmp_path: Path) -> None:
    tree = DebTree(tmp_path / "tree", "arm64")
    package = build_package(tmp_path, "modules", lambda root: write(root, "usr/lib/modules/x"))
    tree.unpack(package, "modules")
    tree.drop_unused_links()
    assert sorted(path.name for path in tree.root.iterdir()) == ["lib", "usr"]


def test_link_into_the_host_is_not_followed(unpack: Callable[..., Path], tmp_path: Path) -> None:
    host = tmp_path / "host"
    host.mkdir()
    with pytest.raises(LabError, match=r"p1: \./var/run/file would be written outside"):
        unpack(
            lambda tree: link(tree, "var/run", host), lambda tree: write(tree, "var/run/file", "x")
        )
    assert list(host.iterdir()) == []


def test_file_replaces_a_link_instead_of_its_target(
    unpack: Callable[..., Path], tmp_path: Path
) -> None:
    host = write(tmp_path, "host", "precious")
    root = unpack(
        lambda tree: link(tree, "etc/file", host), lambda tree: write(tree, "etc/file", "new")
    )
    assert host.read_text() == "precious"
    assert (root / "etc/file").read_text() == "new"
    assert not (root / "etc/file").is_symlink()


@pytest.mark.parametrize("reverse", [False, True])
def test_file_and_directory_of_one_name_clash(unpack: Callable[..., Path], reverse: bool) -> None:
    fills = [lambda tree: write(tree, "etc/x"), lambda tree: write(tree, "etc/x/y")]
    with pytest.raises(LabError, match=r"p1: \./etc/x/? is a (file|directory) in another package"):
        unpack(*(reversed(fills) if reverse else fills))


def test_link_to_usr_cannot_be_replaced(unpack: Callable[..., Path]) -> None:
    with pytest.raises(LabError, match=r"p1: \./lib is a directory in another package"):
        unpack(lambda tree: write(tree, "lib/x"), lambda tree: link(tree, "lib", "elsewhere"))


@pytest.mark.parametrize("kept", [10, 0.5])
def test_damaged_package(tmp_path: Path, kept: float) -> None:
    package = build_package(tmp_path, "p", lambda tree: write(tree, "usr/x", "text" * 10_000))
    data = package.read_bytes()
    package.write_bytes(data[: kept if isinstance(kept, int) else int(len(data) * kept)])
    with pytest.raises(LabError, match=r"package p \(.*\): cannot unpack: "):
        DebTree(tmp_path / "tree", "amd64").unpack(package, "p")
