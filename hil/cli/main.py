"""The `hil` command: one module a verb; this one only gathers them."""

from __future__ import annotations

import importlib
import sys

import click

from hil.errors import HilError

VERBS = ("lab", "doctor", "classify", "boot")


class _Verbs(click.Group):
    """Imports the module of a verb when it is asked for: labgrid alone takes half a second."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(importlib.import_module(f"hil.cli.{cmd_name}"), cmd_name)
        return command


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hil")
def cli() -> None:
    """Hardware-in-the-loop tests for network drivers."""


def main() -> None:
    """Entry point: an expected error is one line on stderr and its own exit status."""
    try:
        cli.main(standalone_mode=False)
    except HilError as error:
        for line in str(error).splitlines():
            click.echo(f"hil: {error.kind}: {line}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("hil: interrupted", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
