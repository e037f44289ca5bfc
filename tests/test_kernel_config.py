"""Required kernel options against configurations as kernels have them."""

from __future__ import annotations

from hil.kernel.config import missing_options

CONFIG = """\
# Automatically generated file; DO NOT EDIT.
CONFIG_BPF_SYSCALL=y
CONFIG_IGB=m
# CONFIG_XDP_SOCKETS_DIAG is not set
CONFIG_LOCALVERSION=""
"""


def test_all_there() -> None:
    assert missing_options(CONFIG, ["CONFIG_BPF_SYSCALL=y", "CONFIG_IGB=y|m"]) == []


def test_module_where_built_in_is_required() -> None:
    assert missing_options(CONFIG, ["CONFIG_IGB=y"]) == ["CONFIG_IGB is m, required: y"]


def test_unset_and_absent_options_are_n() -> None:
    required = ["CONFIG_XDP_SOCKETS_DIAG=y|m", "CONFIG_ROOT_NFS=y"]
    assert missing_options(CONFIG, required) == [
        "CONFIG_XDP_SOCKETS_DIAG is n, required: y|m",
        "CONFIG_ROOT_NFS is n, required: y",
    ]
