"""Kernels of several people in one TFTP directory and one root filesystem."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.errors import ConfigError, LabError
from hil.kernel.artifacts import KernelArtifact
from hil.kernel.stage import stage_modules, unique_names


def artifact(directory: Path, release: str = "7.1.0-test", text: str = "one") -> KernelArtifact:
    modules = directory / "modules/lib/modules" / release
    modules.mkdir(parents=True, exist_ok=True)
    (modules / "igb.ko").write_text(text)
    (directory / "Image").write_text(text)
    return KernelArtifact.load(directory)


def test_same_name_of_two_kernels_gets_two_names(tmp_path: Path) -> None:
    first, second = (artifact(tmp_path / name).image("Image") for name in ("a", "b"))
    with unique_names(first, second) as links:
        assert len({link.name for link in links}) == 2
        assert all(link.name.startswith("hil-") and link.name.endswith("-Image") for link in links)
        assert [link.resolve() for link in links] == [first, second]
    assert not any(link.exists() for link in links)


def test_modules_are_copied_once_and_again_when_they_change(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    kernel = artifact(tmp_path / "kernel")
    assert stage_modules(kernel, root) == ["7.1.0-test"]
    assert stage_modules(kernel, root) == []
    other = artifact(tmp_path / "other", text="two")
    assert stage_modules(other, root) == ["7.1.0-test"]
    assert (root / "lib/modules/7.1.0-test/igb.ko").read_text() == "two"


def test_modules_of_other_kernels_stay(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for release in ("7.1.0-a", "7.1.0-b"):
        stage_modules(artifact(tmp_path / release, release), root)
    assert sorted(path.name for path in (root / "lib/modules").iterdir()) == ["7.1.0-a", "7.1.0-b"]


def test_root_filesystem_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"NFSRoot\.local must be the root filesystem"):
        stage_modules(artifact(tmp_path / "kernel"), tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda kernel: kernel.image("zImage"), "zImage: no such kernel image"),
        (lambda kernel: kernel.dtb("ti/k3.dtb"), "dtbs/ti/k3.dtb: no such device tree"),
        (lambda kernel: kernel.initramfs("i.gz"), "i.gz: no such initramfs"),
    ],
)
def test_missing_files_are_named(tmp_path: Path, ask, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ask(artifact(tmp_path / "kernel"))
    assert message in str(caught.value)
