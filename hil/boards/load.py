"""Reads board profiles and reports everything that is wrong with a file at once.

The classes in `model.py` are the schema: this module walks their fields and types.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
import yaml

from hil.boards.model import Address, BoardProfile
from hil.errors import ConfigError, suggestion

_DATA = Path(__file__).parent / "data"
# What a value that did not fit becomes; the file is refused anyway.
_BAD = object()


def board_names() -> tuple[str, ...]:
    """Names of the profiles that come with the framework, sorted."""
    return tuple(sorted(path.stem for path in _DATA.glob("*.yaml")))


def load_board(name: str | Path) -> BoardProfile:
    """The profile of this name, or of a YAML file of the lab's own (a path, or *.yaml).

    ConfigError has one line for each problem: "file: key.path: what is wrong".
    """
    text = str(name)
    if "/" in text or text.endswith((".yaml", ".yml")):
        return read_profile(Path(text))
    if text not in board_names():
        raise ConfigError(
            f"{text}: no such board profile{suggestion(text, board_names())}; there are "
            f"{', '.join(board_names())}; give a path for a file of your own"
        )
    return _builtin(text)


@cache
def _builtin(name: str) -> BoardProfile:
    return read_profile(_DATA / f"{name}.yaml")


def read_profile(path: Path) -> BoardProfile:
    """Read one file; see `load_board`."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such board profile; check the path") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        text = " ".join(str(error).split())
        raise ConfigError(f"{path}: not readable as YAML: {text}") from error
    return parse_profile(data, str(path))


def parse_profile(data: Any, source: str) -> BoardProfile:
    """A profile from the file's data; `source` is the file's name for messages."""
    reader = _Reader()
    profile = reader.read(BoardProfile, data, "")
    if reader.problems:
        raise ConfigError("\n".join(f"{source}: {problem}" for problem in reader.problems))
    assert isinstance(profile, BoardProfile)
    return profile


class _Reader:
    """Turns YAML data into the model's objects and collects what does not fit."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def read(self, kind: Any, value: Any, where: str) -> Any:
        """`value` as `kind`, one of the forms of annotation that the model uses."""
        if attrs.has(kind):
            return self._object(kind, value, where)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            return None if value is None else self.read(arguments[0], value, where)
        if origin is Literal:
            return value if value in arguments else self._bad_choice(value, arguments, where)
        if origin is tuple:
            return self._list(arguments[0], value, where)
        if origin is Mapping:
            return self._mapping(value, where)
        return self._scalar(kind, value, where)

    def _object(self, kind: Any, value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            return self._bad(where, f"must be a mapping, is {_show(value)}")
        fields = attrs.fields_dict(kind)
        types_ = get_type_hints(kind, include_extras=True)
        before = len(self.problems)
        for key in value:
            if key not in fields:
                shown = key if str(key).isprintable() else ascii(key)
                self._bad(_join(where, shown), f"unknown key{suggestion(str(key), fields)}")
        for key, field in fields.items():
            if key not in value and field.default is attrs.NOTHING:
                self._bad(_join(where, key), "missing")
        read = {
            key: self.read(types_[key], value[key], _join(where, key))
            for key in fields
            if key in value
        }
        if len(self.problems) > before:
            return _BAD
        result = kind(**read)
        for key, text in getattr(result, "problems", tuple)():
            self._bad(_join(where, key), text)
        return result

    def _list(self, kind: Any, value: Any, where: str) -> Any:
        if not isinstance(value, list):
            return self._bad(where, f"must be a list, is {_show(value)}")
        return tuple(self.read(kind, item, f"{where}[{i}]") for i, item in enumerate(value))

    def _mapping(self, value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            return self._bad(where, f"must be a mapping, is {_show(value)}")
        return {
            self.read(str, key, _join(where, key)): self.read(str, text, _join(where, key))
            for key, text in value.items()
        }

    def _scalar(self, kind: Any, value: Any, where: str) -> Any:
        if kind is str and isinstance(value, str):
            return value
        # true and false are numbers to Python
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if kind is float and is_number:
            return float(value)
        if kind in (int, Address) and is_number and isinstance(value, int) and value >= 0:
            return value
        return self._bad(where, f"must be {_NAMES[kind]}, is {_show(value)}")

    def _bad_choice(self, value: Any, choices: tuple[str, ...], where: str) -> Any:
        known = " or ".join(choices)
        return self._bad(
            where, f"must be {known}, is {_show(value)}{suggestion(str(value), choices)}"
        )

    def _bad(self, where: str, text: str) -> Any:
        self.problems.append(f"{where or 'the file'}: {text}")
        return _BAD


_NAMES = {
    str: "a text (quote it)",
    int: "a whole number",
    float: "a number",
    Address: "a hexadecimal number such as 0x82000000, not quoted",
}


def _join(where: str, key: Any) -> str:
    text = str(key) if str(key).isprintable() else repr(key)
    return f"{where}.{text}" if where else text


def _show(value: Any) -> str:
    return "empty" if value is None else repr(value)
