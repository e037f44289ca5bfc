"""`hil boot`: boot a board once and say what its console showed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import attrs
import click

from hil.boot import Report, Request
from hil.boot import boot as boot_once
from hil.console.show import exit_status, lines_of


@click.command()
@click.option("--lg-env", "environment", required=True, help="Environment file, as for pytest.")
@click.option("--kernel", type=click.Path(path_type=Path), help="Kernel artifact directory.")
@click.option("--variant", help="Boot the device tree NAME-VARIANT.dtb beside NAME.dtb.")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default="results",
    show_default=True,
    help="Directory for the console log and the history of boots.",
)
@click.option("--keep-power", is_flag=True, help="Leave the board powered.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def boot(
    environment: str,
    kernel: Path | None,
    variant: str | None,
    results: Path,
    keep_power: bool,
    as_json: bool,
) -> None:
    """Boot a board once and say what its console showed: what broke, where, whose fault it is.

    \b
    Exit status (as `git bisect run` wants it):
      0    good: the board is up
      1    bad: the kernel or user space failed
      2    a file or an option is wrong
      125  no vote: the lab or the boot loader failed
    """
    request = Request(environment, kernel, variant, keep_power)
    on_terminal = sys.stderr.isatty()

    def say(line: str) -> None:
        click.echo(f"{_CLEAR if on_terminal else ''}{line}", err=True)

    def show(text: str) -> None:
        if on_terminal:
            click.echo(f"{_CLEAR}{text}", err=True, nl=False)

    report = boot_once(request, results.absolute(), say=say, show=show)
    _print(report, as_json)
    sys.exit(exit_status([report.verdict]))


# back to the start of the line, and erase it
_CLEAR = "\r\x1b[K"


def _print(report: Report, as_json: bool) -> None:
    log = str(report.directory / "console.log")
    if as_json:
        text = json.dumps({"file": log, **attrs.asdict(report.verdict)}, ensure_ascii=False)
        click.echo(text)
        return
    for line in lines_of(report.verdict):
        click.echo(line)
    click.echo(f"console log: {log}")
