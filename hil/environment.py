"""Environment files: found by name, completed with the lab's own values, checked as a whole.

An environment file is plain labgrid YAML and says what a kind of board looks like. What differs
from lab to lab (place, hosts, paths) is laid over it before labgrid makes the target: a virtual lab
fills what the file leaves open (absent, 0 or empty), a lab.yaml replaces values, and environment
variables have the last word.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attr
import yaml
from labgrid import Environment, Target
from labgrid.binding import BindingError
from labgrid.exceptions import InvalidConfigError, NoConfigFoundError, NoSupplierFoundError
from labgrid.factory import target_factory
from labgrid.remote.client import UserError
from labgrid.util.yaml import load as load_yaml
from yaml import YAMLError

import hil
from hil.boards.load import load_board
from hil.boards.model import BoardProfile
from hil.errors import ConfigError, LabError, suggestion
from hil.results import known_issues
from hil.results.known_issues import KnownIssue

Section = Mapping[str, Mapping[str, Any]]

# Environment variable -> (section, class, key). LG_PLACE and LG_COORDINATOR are labgrid's own.
VARIABLES = {
    "LG_PLACE": ("resources", "RemotePlace", "name"),
    "HIL_BOARD_ADDRESS": ("resources", "NetworkService", "address"),
    "HIL_NFS_SERVER": ("resources", "NFSRoot", "server"),
    "HIL_NFS_PATH": ("resources", "NFSRoot", "path"),
    "HIL_NFS_OPTIONS": ("resources", "NFSRoot", "options"),
    "HIL_NFS_LOCAL": ("resources", "NFSRoot", "local"),
    "HIL_PARTNER_HOST": ("resources", "LinkPartner", "host"),
    "HIL_TFTP_SERVER": ("drivers", "NetbootStrategy", "tftp_server"),
    "HIL_KERNEL": ("drivers", "NetbootStrategy", "kernel"),
}

_TOP_LEVEL = {"targets", "imports", "images", "paths", "tools", "options", "features"}
_TARGET_KEYS = {"resources", "drivers", "options", "features"}
# Keys that labgrid itself takes out of an entry before the class sees it.
_LABGRID_KEYS = {"name", "cls", "bindings"}


def find(name: str) -> Path:
    """Path of an environment file: as given, else in the project's environments/ directory."""
    given = Path(name)
    shelf = Path(hil.__file__).parents[1] / "environments"
    if given.is_file():
        return given
    if given.parent == Path() and (shelf / name).is_file():
        return shelf / name
    known = ", ".join(sorted(path.name for path in shelf.glob("*.yaml"))) or "none"
    raise ConfigError(f"{name}: no such environment file; environments/ has {known}")


def load(path: Path, lab_values: Section | None = None) -> Environment:
    """Read, complete and check an environment file. ConfigError lists all that is wrong."""
    _check_shape(path)
    try:
        environment = Environment(str(path))
    except (InvalidConfigError, NoConfigFoundError) as error:
        raise ConfigError(_one_line(f"{path}: {error}")) from error
    except ImportError as error:
        raise ConfigError(f"{path}: imports: {error}; install what is missing") from error
    complete(environment, lab_values)
    return environment


def complete(environment: Environment, lab_values: Section | None = None) -> None:
    """Lay the lab's values over an environment that labgrid has read, and check the result."""
    path = Path(environment.config_file)
    data = environment.config.data
    problems = list(_overlay(data, lab_values or {}, only_open=True))
    problems += [f"lab.yaml: {text}" for text in _overlay(data, lab_file_section(path))]
    problems += _overlay(data, _variables(data))
    _report(path, problems + _key_problems(data))


def make_target(environment: Environment) -> Target:
    """The main target. ConfigError when it lacks a driver or resource that another one needs,
    LabError when labgrid's coordinator does not answer.
    """
    try:
        target = environment.get_target()
    except (NoSupplierFoundError, BindingError) as error:
        raise ConfigError(
            _one_line(
                f"{environment.config_file}: targets.main: {error}; add it, above what needs it: "
                "labgrid goes through the drivers from top to bottom"
            )
        ) from error
    except (UserError, OSError, ValueError) as error:
        raise LabError(f"{error}; is the labgrid coordinator up (LG_COORDINATOR)?") from error
    if target is None:
        raise ConfigError(f"{environment.config_file}: targets: there is no target 'main'")
    return target


def watched_board(environment: Environment) -> str | None:
    """Name of the board that the environment only watches; None when it has another strategy."""
    strategy = _drivers(environment).get("WatchStrategy")
    return None if strategy is None else str(strategy.get("board", ""))


def _drivers(environment: Environment) -> dict[str, dict[str, Any]]:
    target = environment.config.data["targets"].get("main") or {}
    return dict(entries(target.get("drivers") or {}))


def board_profile(environment: Environment) -> BoardProfile:
    """Profile of the board that the environment's strategy names."""
    strategy = _drivers(environment).get("NetbootStrategy")
    where = f"{environment.config_file}: targets.main.drivers.NetbootStrategy"
    if strategy is None:
        raise ConfigError(f"{where}: missing; add it as environments/ shows")
    if "board" not in strategy:
        raise ConfigError(f"{where}.board: missing; name a board profile")
    return load_board(strategy["board"])


def known_issue_list(environment: Environment) -> tuple[KnownIssue, ...]:
    """The environment's known issues. ConfigError for each that is wrong or has expired."""
    options = environment.config.data.get("options") or {}
    today = datetime.datetime.now(datetime.UTC).date()
    return known_issues.parse(options.get("known_issues"), str(environment.config_file), today)


def _check_shape(path: Path) -> None:
    """What labgrid would stumble over without naming the file."""
    try:
        with path.open() as file:
            data = load_yaml(file)
    except (OSError, ValueError, YAMLError) as error:
        # a date that no calendar has is a ValueError
        raise ConfigError(_one_line(f"{path}: {error}")) from error
    _report(path, list(_shape_problems(data)))


def _report(path: Path, problems: list[str]) -> None:
    if problems:
        raise ConfigError("\n".join(f"{path}: {problem}" for problem in problems))


def lab_file() -> Path | None:
    """The lab.yaml in force: `$HIL_LAB`, else ./lab.yaml, else ~/.config/hil/lab.yaml."""
    if named := os.environ.get("HIL_LAB"):
        if not Path(named).is_file():
            raise ConfigError(f"{named}: no such file; HIL_LAB must name a lab.yaml")
        return Path(named)
    places = (Path("lab.yaml"), Path.home() / ".config/hil/lab.yaml")
    return next((place for place in places if place.is_file()), None)


def lab_file_section(environment_path: Path) -> Section:
    """The section of the lab.yaml in force for this environment (its file name's stem)."""
    path = lab_file()
    if path is None:
        return {}
    try:
        data = yaml.safe_load(path.read_text()) or {}
    except YAMLError as error:
        raise ConfigError(_one_line(f"{path}: {error}")) from error
    if not isinstance(data, dict) or not all(isinstance(v, dict) for v in data.values()):
        raise ConfigError(f"{path}: write one mapping an environment, as docs/lab.md shows")
    section: Section = data.get(environment_path.stem, {})
    return section


def _variables(data: Mapping[str, Any]) -> Section:
    """Values of the variables that are set, as far as this environment has such an entry."""
    values: dict[str, dict[str, dict[str, Any]]] = {}
    target = data["targets"].get("main") or {}
    for variable, (section, name, key) in VARIABLES.items():
        if variable in os.environ and name in dict(entries(target.get(section) or {})):
            values.setdefault(section, {}).setdefault(name, {})[key] = os.environ[variable]
    return values


def entries(section: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Class name and arguments of each resource or driver, for both of labgrid's notations."""
    for item in section if isinstance(section, list) else [section]:
        for name, arguments in item.items():
            if arguments is None:
                arguments = item[name] = {}
            yield (arguments.get("cls", name), arguments)


def _overlay(data: Mapping[str, Any], values: Section, *, only_open: bool = False) -> Iterator[str]:
    """Lay values over the main target's entries; yields what cannot be laid over anything."""
    target = data["targets"].get("main") or {}
    for section, overrides in values.items():
        if section not in ("resources", "drivers"):
            yield f"{section}: unknown key; use resources or drivers"
            continue
        present = dict(entries(target.get(section) or {}))
        for name, arguments in overrides.items():
            if name not in present and only_open:
                continue
            if name not in present:
                yield f"{section}.{name}: this environment has no such entry" + suggestion(
                    name, present
                )
                continue
            for key, value in arguments.items():
                if not (only_open and present[name].get(key)):
                    present[name][key] = value


def _shape_problems(data: Any) -> Iterator[str]:
    if not isinstance(data, dict) or not isinstance(data.get("targets"), dict):
        yield "targets: missing; an environment needs `targets: {main: ...}`"
        return
    for key in data:
        if key not in _TOP_LEVEL:
            yield f"{key}: unknown key" + suggestion(key, _TOP_LEVEL)
    for role, target in data["targets"].items():
        if not isinstance(target, dict):
            yield f"targets.{role}: must be a mapping with resources and drivers"
            continue
        for key in target:
            if key not in _TARGET_KEYS:
                yield f"targets.{role}.{key}: unknown key" + suggestion(key, _TARGET_KEYS)
        for section in ("resources", "drivers"):
            items = target.get(section) or {}
            mappings = items if isinstance(items, list) else [items]
            if not all(
                isinstance(item, dict)
                and all(value is None or isinstance(value, dict) for value in item.values())
                for item in mappings
            ):
                yield f"targets.{role}.{section}: every entry must be `Class: {{key: value}}`"


def _key_problems(data: Mapping[str, Any]) -> list[str]:
    """Unknown classes and arguments, which labgrid would report one by one and without the file."""
    problems = []
    for role, target in data["targets"].items():
        for section in ("resources", "drivers"):
            known = getattr(target_factory, section)
            for name, arguments in entries(target.get(section) or {}):
                where = f"targets.{role}.{section}.{name}"
                if name not in known:
                    problems.append(f"{where}: labgrid has no such class" + suggestion(name, known))
                    continue
                allowed = {field.name for field in attr.fields(known[name]) if field.init}
                allowed = (allowed - {"target"}) | _LABGRID_KEYS
                problems += [
                    f"{where}.{key}: unknown key" + suggestion(key, allowed)
                    for key in arguments
                    if key not in allowed
                ]
    return problems


def _one_line(text: str) -> str:
    return " ".join(text.split())
