"""The `hil` command: one module a verb; this one only gathers them."""

from __future__ import annotations

import sys

import click

from hil.cli.boot import boot
from hil.cli.classify import classify
from hil.cli.doctor import doctor
from hil.cli.lab import lab
from hil.errors import HilError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hil")
def cli() -> None:
    """Hardware-in-the-loop tests for network drivers."""


cli.add_command(lab)
cli.add_command(doctor)
cli.add_command(classify)
cli.add_command(boot)


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
