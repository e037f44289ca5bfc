"""`hil doctor`: is this environment usable, and if not, what has to be done?"""

from __future__ import annotations

from pathlib import Path

import click

from hil.doctor import Check, examine
from hil.errors import LabError

_MARKS = {True: "ok  ", False: "FAIL", None: "-   "}


@click.command()
@click.option("--lg-env", "environment", required=True, help="Environment file, as for pytest.")
@click.option("--kernel", type=click.Path(path_type=Path), help="Kernel artifact directory.")
def doctor(environment: str, kernel: Path | None) -> None:
    """Check an environment before it is used, one line for each thing."""
    failed = 0
    for check in examine(environment, kernel):
        click.echo(_line(check))
        failed += check.good is False
    if failed:
        raise LabError(f"{environment}: {failed} of the checks above failed")


def _line(check: Check) -> str:
    return f"{_MARKS[check.good]} {check.what}: {check.says}"
