"""What is in a kernel directory, and what is told of what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.errors import ConfigError
from hil.kernel.artifacts import variant_of


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "k3-am642-evm",
        "k3-am642-evm-one-port",
        "k3-am642-evm-emmc",
        "k3-am642-sk-one-port",
    ):
        (tmp_path / f"{name}.dtb").touch()
    return tmp_path / "k3-am642-evm.dtb"


def test_a_variant_lies_beside_the_tree(tree: Path) -> None:
    assert variant_of(tree, "one-port") == tree.parent / "k3-am642-evm-one-port.dtb"


def test_a_variant_that_is_not_there(tree: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        variant_of(tree, "no-port")
    text = str(caught.value)
    assert text.startswith(f"{tree.parent}/k3-am642-evm-no-port.dtb: no such device tree")
    assert text.endswith("there are emmc, one-port")


def test_a_kernel_without_variants(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="this kernel has no variants"):
        variant_of(tmp_path / "k3-am642-evm.dtb", "one-port")


def test_a_variant_is_no_path(tree: Path) -> None:
    with pytest.raises(ConfigError, match="leave out the directory"):
        variant_of(tree, "../one-port")
