"""`hil lab`: the virtual lab on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import requests

from hil.errors import ConfigError, LabError
from hil.virtual import assets, registry, replay, supervisor
from hil.virtual.cache import Cache
from hil.virtual.registry import LabRecord
from hil.virtual.session import recover

DEFAULT_NAME = "default"
DEFAULT_BOARD = "virtual-arm64"

_name = click.option("--name", default=DEFAULT_NAME, show_default=True, help="Name of the lab.")


@click.group()
def lab() -> None:
    """Bring a virtual lab up, look at it, take it down."""


@lab.command()
def setup() -> None:
    """Fetch and build all parts of the virtual lab into the cache."""
    _prepare()


@lab.command()
@_name
@click.option("--board", help=f"Virtual board profile.  [default: {DEFAULT_BOARD}]")
@click.option(
    "--replay",
    "log",
    metavar="LOG",
    type=click.Path(path_type=Path),
    help="Instead of a virtual board, play this console log at each power-on.",
)
@click.option("--speed", type=float, help="Play it so many times faster.  [default: 1]")
def up(name: str, board: str | None, log: Path | None, speed: float | None) -> None:
    """Bring a virtual lab up; it stays until `hil lab down`."""
    record = LabRecord.named(name)
    if log is None and speed is not None:
        raise ConfigError("--speed: only a replay has one; add --replay LOG")
    if log is not None and board is not None:
        raise ConfigError("--board: a replay needs no profile; leave out --board or --replay")
    if log is None:
        require_root()
    for dead in registry.reap_dead_labs():
        click.echo(f"lab {dead}: the remains of a killed run were removed")
    if log is None:
        _bring_up(record, board or DEFAULT_BOARD)
    else:
        _bring_up_replay(record, log, 1.0 if speed is None else speed)
    _show([record])


def _bring_up(record: LabRecord, board: str) -> None:
    name = record.name
    state = record.state()
    if record.alive and state and state["board"] == replay.BOARD:
        raise LabError(f"lab {name} is up and is a replay; take it down or give another --name")
    if record.alive:
        click.echo(f"lab {name} is up already")
        if recover(record):
            click.echo(f"lab {name}: the board that a killed session left was switched off")
    else:
        _prepare()
        supervisor.up(name, board)
        click.echo(f"lab {name} is up")


def _bring_up_replay(record: LabRecord, log: Path, speed: float) -> None:
    """A lab that is up already has another log, or none: that is an error here."""
    replay.check(log, speed)
    supervisor.up(record.name, replay.BOARD, log=log, speed=speed)
    click.echo(f"lab {record.name} is up")


@lab.command()
def status() -> None:
    """Show the virtual labs of this machine."""
    _show(registry.labs())


@lab.command()
@_name
@click.option("--all", "every", is_flag=True, help="Take all labs of this machine down.")
def down(name: str, every: bool) -> None:
    """Take a virtual lab down and remove all that belongs to it."""
    records = registry.labs() if every else [LabRecord.named(name)]
    for record in records:
        if not record.directory.exists():
            click.echo(f"lab {record.name} is not up")
            continue
        supervisor.down(record)
        click.echo(f"lab {record.name} is down")


@lab.command()
def clean() -> None:
    """Empty the cache; the next `hil lab up` fetches everything again."""
    if alive := [record.name for record in registry.labs() if record.alive]:
        raise LabError(f"labs are up: {', '.join(alive)}; take them down by `hil lab down --all`")
    registry.reap_dead_labs()
    freed_bytes = Cache().clean()
    click.echo(f"{freed_bytes / 1e6:.0f} MB freed")


def _prepare() -> None:
    assets.prepare(Cache())


def require_root() -> None:
    if os.geteuid() != 0:
        raise LabError("the virtual lab makes network namespaces and taps: run it as root")


def _show(records: list[LabRecord]) -> None:
    """One block a lab, a line a fact: easy to read, and to take apart by scripts."""
    if not records:
        click.echo("no virtual lab is up; `hil lab up` brings one up")
    for record in records:
        state = record.state()
        click.echo(f"lab {record.name}")
        if not record.alive:
            click.echo("  state         dead; the next `hil lab up` removes it")
        elif state is None:
            click.echo("  state         starting")
        else:
            for name, fact in _facts(state).items():
                click.echo(f"  {name:13} {fact}")


def _facts(state: dict[str, Any]) -> dict[str, str]:
    console = {
        "power": f"{_power(state['power'])} ({state['power']})",
        "serial port": state["serial"],
    }
    if state["board"] == replay.BOARD:
        return {"board": f"{replay.BOARD} of {state['log']} (speed {state['speed']:g})", **console}
    return {
        "board": f"{state['board']} ({state['accelerator']})",
        **console,
        "ssh": f"ssh -i {state['key']} -p {state['ssh_port']} root@127.0.0.1",
        "link partner": f"ip netns exec {state['link_partner']} ...",
    }


def _power(url: str) -> str:
    try:
        return "on" if requests.get(url, timeout=5).text == "1" else "off"
    except requests.RequestException:
        return "power unit does not answer"
