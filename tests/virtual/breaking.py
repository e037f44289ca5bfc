"""Breaks one thing of a lab or a kernel, and sees with what error the boot ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

import hil
from hil import environment
from hil.errors import HilError
from hil.strategies.netboot import NetbootStrategy, Status
from hil.virtual.supervisor import Lease
from tests.conftest import BOARD


@contextlib.contextmanager
def strategy(lab: Lease, **changes: dict[str, Any]) -> Iterator[NetbootStrategy]:
    """The lab's strategy with some keys of resources or drivers changed."""
    env = environment.load(environment.find(f"{BOARD}.yaml"), lab.state["environment"])
    target = env.config.data["targets"]["main"]
    for section in ("resources", "drivers"):
        for name, arguments in environment.entries(target[section]):
            arguments.update(changes.get(name, {}))
    strategy = env.get_target().get_driver("NetbootStrategy", activate=False)
    try:
        yield strategy
    finally:
        # nothing may hold the serial port or the power when the next test comes
        requests.put(lab.state["power"], data=b"0", timeout=10).raise_for_status()
        env.cleanup()


def failure(lab: Lease, kind: type[HilError], **changes: dict[str, Any]) -> str:
    """The message with which a boot to ssh fails; it must be one line."""
    with strategy(lab, **changes) as board, pytest.raises(kind) as caught:
        board.transition(Status.ssh)
    assert board.status is Status.unknown
    text = str(caught.value)
    assert "\n" not in text
    return text


def kernel_copy(lab: Lease, directory: Path, *without: str) -> Path:
    """The lab's kernel as a directory of links, some files left out."""
    source = Path(lab.state["environment"]["drivers"]["NetbootStrategy"]["kernel"])
    copy = directory / "kernel"
    copy.mkdir()
    for entry in source.iterdir():
        if entry.name not in without:
            (copy / entry.name).symlink_to(entry)
    return copy


def quick_profile(
    directory: Path,
    *,
    deadlines: Mapping[str, float] | None = None,
    phases: Mapping[str, float] | None = None,
    bootargs: Sequence[str] = (),
    console: str | None = None,
    initramfs: bool = True,
) -> Path:
    """A copy of the board's profile with other limits, so that a test need not wait long.

    `phases` are limits of silence; `bootargs` come after the others, which they override.
    """
    shelf = Path(hil.__file__).parent / "boards/data"
    data = yaml.safe_load((shelf / f"{BOARD}.yaml").read_text())
    data["deadlines"].update(deadlines or {})
    for name, silence in (phases or {}).items():
        data["phases"][name] = {"deadline": 120, "silence": silence}
    data["bootargs"] += bootargs
    data["console"]["device"] = console or data["console"]["device"]
    if not initramfs:
        data["netboot"]["initramfs"] = None
    path = directory / "quick.yaml"
    path.write_text(yaml.safe_dump(data))
    return path
