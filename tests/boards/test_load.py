"""A profile's file: all that is wrong with it is told at once, each with file and key."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hil.boards import load
from hil.boards.load import board_names, load_board, parse_profile
from hil.errors import ConfigError

DATA = Path(load.__file__).parent / "data"
GOOD: dict[str, Any] = yaml.safe_load((DATA / "am64x.yaml").read_text())


def _set(path: str, value: Any) -> dict[str, Any]:
    """The good profile with one value changed; None for `value` removes the key."""
    data = copy.deepcopy(GOOD)
    *parents, last = path.split(".")
    node: Any = data
    for key in parents:
        node = node[int(key)] if isinstance(node, list) else node[key]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return data


def _complaint(data: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_profile(data, "x.yaml")
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (
            "netboot.kernel_adress",
            1,
            "netboot.kernel_adress: unknown key; did you mean 'kernel_address'?",
        ),
        ("zzz", 1, "zzz: unknown key"),
        ("netboot.dtb", None, "netboot.dtb: missing"),
        ("console", "ttyS2", "console: must be a mapping, is 'ttyS2'"),
        ("console.device", 2, "console.device: must be a text (quote it), is 2"),
        ("console.baud", "fast", "console.baud: must be a whole number, is 'fast'"),
        ("console.baud", True, "console.baud: must be a whole number, is True"),
        ("deadlines.dhcp", "soon", "deadlines.dhcp: must be a number, is 'soon'"),
        ("deadlines.dhcp", 0, "deadlines.dhcp: must be more than 0 seconds"),
        (
            "netboot.dtb_address",
            "0x8800000g",
            "netboot.dtb_address: must be a hexadecimal number such as 0x82000000, not quoted, "
            "is '0x8800000g'",
        ),
        (
            "netboot.boot_command",
            "boot",
            "netboot.boot_command: must be booti or bootz, is 'boot'; did you mean 'bootz'?",
        ),
        ("bootargs", "rw", "bootargs: must be a list, is 'rw'"),
        ("bootargs", ["rw", 1], "bootargs[1]: must be a text (quote it), is 1"),
        (
            "bootargs",
            ["nfsroot={nfs_path}", "a={nfs_sever}"],
            "bootargs[1]: no value for {nfs_sever}; there are console, management, earlycon, "
            "nfs_server, nfs_path, nfs_options",
        ),
        ("bootargs", ["a={"], "bootargs[0]: 'a={': Single '{' encountered"),
        ("bootargs", ["a={b"], "bootargs[0]: 'a={b': expected '}' before end"),
        (
            "bootloader.environment",
            {"bootdelay": 2},
            "bootloader.environment.bootdelay: must be a text (quote it), is 2",
        ),
        ("ports.1.pci", "0000:01:00.0", "ports[1].device_tree: give exactly one of device_tree"),
        ("ports.1.device_tree", None, "ports[1].device_tree: give exactly one of device_tree"),
        ("ports.1.name", "port2", "ports: two ports have the name 'port2'"),
        (
            "kernel_options",
            ["NFS_FS=y"],
            "kernel_options[0]: 'NFS_FS=y' is not like CONFIG_NAME=y or =y|m",
        ),
    ],
)
def test_what_is_wrong_is_named(path: str, value: Any, complaint: str) -> None:
    (line,) = _complaint(_set(path, value))
    assert line.startswith(f"x.yaml: {complaint}")


def test_an_initramfs_needs_an_address() -> None:
    data = _set("netboot.initramfs", "initramfs.cpio.gz")
    assert parse_profile(data, "x.yaml").netboot.initramfs == "initramfs.cpio.gz"
    data["netboot"]["initramfs_address"] = None
    (line,) = _complaint(data)
    assert line == "x.yaml: netboot.initramfs_address: missing; an initramfs needs its load address"


def test_earlycon_must_be_known_when_used() -> None:
    (line,) = _complaint(_set("console.earlycon", None))
    assert "bootargs[1]: no value for {earlycon}" in line


def test_all_problems_come_together() -> None:
    data = _set("netboot.kernel_address", "here")
    del data["name"]
    data["ports"][0]["drivr"] = data["ports"][0].pop("driver")
    data["deadlines"]["ssh"] = -1
    assert _complaint(data) == [
        "x.yaml: name: missing",
        "x.yaml: netboot.kernel_address: must be a hexadecimal number such as 0x82000000, "
        "not quoted, is 'here'",
        "x.yaml: ports[0].drivr: unknown key; did you mean 'driver'?",
        "x.yaml: ports[0].driver: missing",
        "x.yaml: deadlines.ssh: must be more than 0 seconds",
    ]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@given(key=st.sampled_from(sorted(GOOD)), value=ANYTHING)
def test_any_value_is_taken_or_refused_with_its_key(key: str, value: Any) -> None:
    try:
        parse_profile({**GOOD, key: value}, "x.yaml")
    except ConfigError as error:
        assert all(line.startswith(f"x.yaml: {key}") for line in str(error).splitlines())


@pytest.mark.parametrize("data", [None, [], "am64x", 1])
def test_a_file_that_is_no_mapping(data: Any) -> None:
    (line,) = _complaint(data)
    assert line.startswith("x.yaml: the file: must be a mapping")


def test_unknown_board_has_a_suggestion_and_the_list() -> None:
    with pytest.raises(ConfigError, match="did you mean 'am64x'") as caught:
        load_board("am64")
    assert ", ".join(board_names()) in str(caught.value)


def test_a_file_of_the_labs_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**GOOD, "name": "mine"}))
    assert load_board(path).name == "mine"
    assert load_board(str(path)).ports == load_board("am64x").ports


@pytest.mark.parametrize("content", [b"a: [", b"\xff\xfe\x00", b"a: b: c"])
def test_a_broken_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_board(path)
    assert str(caught.value).startswith(f"{path}: not readable as YAML: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such board profile; check the path"):
        load_board(tmp_path / "none.yaml")
