"""`hil lab`: the virtual lab on this machine."""

from __future__ import annotations

import os

import click
import requests
from rich.console import Console
from rich.table import Table

from hil.errors import LabError
from hil.virtual import assets, registry, supervisor
from hil.virtual.cache import Cache
from hil.virtual.registry import LabRecord

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
@click.option("--board", default=DEFAULT_BOARD, show_default=True, help="Virtual board profile.")
def up(name: str, board: str) -> None:
    """Bring a virtual lab up; it stays until `hil lab down`."""
    record = LabRecord.named(name)
    require_root()
    for dead in registry.reap_dead_labs():
        click.echo(f"lab {dead}: the remains of a killed run were removed")
    if record.alive:
        click.echo(f"lab {name} is up already")
    else:
        _prepare()
        supervisor.up(name, board)
        click.echo(f"lab {name} is up")
    _show([record])


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
    table = Table("lab", "board", "state", "power", "serial", "ssh", "link partner")
    for record in records:
        state = record.state()
        if not record.alive:
            table.add_row(record.name, "", "dead (the next `hil lab up` removes it)")
        elif state is None:
            table.add_row(record.name, "", "starting")
        else:
            table.add_row(
                record.name,
                state["board"],
                f"up, {state['accelerator']}",
                _power(state["power"]),
                state["serial"],
                state["ssh"],
                state["link_partner"],
            )
    console = Console()
    if records:
        console.print(table)
    else:
        console.print("no virtual lab is up; `hil lab up` brings one up")


def _power(url: str) -> str:
    try:
        return "on" if requests.get(url, timeout=5).text == "1" else "off"
    except requests.RequestException:
        return "power unit does not answer"
