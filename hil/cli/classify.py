"""`hil classify`: the verdict on console logs that already exist."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import attrs
import click

from hil.console.classify import Classifier
from hil.console.model import Verdict
from hil.console.show import exit_status, lines_of
from hil.errors import ConfigError

_CHUNK_BYTES = 1 << 18


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...|-")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a file and line.")
def classify(files: tuple[str, ...], as_json: bool) -> None:
    """Say what console logs show: what broke, where, and whose fault it is.

    Takes logs of any kind (serial captures, terminal programs, CI, dmesg); "-" is standard input.

    \b
    Exit status, the worst of all files (as `git bisect run` wants it):
      0    good
      1    bad
      2    a file cannot be read
      125  no vote: the lab or the boot loader failed, or nothing can be told
    """
    verdicts = []
    for name, verdict in _verdicts(files):
        verdicts.append(verdict)
        if as_json:
            click.echo(json.dumps({"file": name, **_as_dict(verdict)}, ensure_ascii=False))
        else:
            _show(name, verdict, named=len(files) > 1)
    sys.exit(exit_status(verdicts))


def _verdicts(files: Iterable[str]) -> Iterator[tuple[str, Verdict]]:
    for name in files:
        if name == "-":
            yield name, _read(sys.stdin.buffer)
            continue
        try:
            with Path(name).open("rb") as file:
                yield name, _read(file)
        except OSError as error:
            raise ConfigError(f"{name}: {error.strerror}; give a readable console log") from error


def _read(file: BinaryIO) -> Verdict:
    classifier = Classifier()
    while data := file.read(_CHUNK_BYTES):
        classifier.feed(data)
    return classifier.verdict()


def _as_dict(verdict: Verdict) -> dict[str, Any]:
    """The verdict as JSON has it; what is absent is null."""
    return attrs.asdict(verdict)


def _show(name: str, verdict: Verdict, *, named: bool) -> None:
    if named:
        click.echo(f"{name}:")
    for line in lines_of(verdict):
        click.echo(f"  {line}" if named else line)
