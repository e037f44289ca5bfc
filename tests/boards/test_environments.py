"""The environment files: labgrid loads and binds them as they are, and they fit the profiles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from labgrid import Environment

from hil import environment
from hil.boards.load import board_names, load_board

SHELF = Path(__file__).parents[2] / "environments"
NAMES = board_names()

# What a place of a coordinator would bring; here so that drivers can be bound without one.
PLACE = {
    "NetworkSerialPort": {"host": "127.0.0.1", "port": 1},
    "NetworkPowerPort": {"model": "rest", "host": "http://127.0.0.1:1/{index}", "index": 1},
    "TFTPProvider": {"internal": "/nowhere", "external": "x"},
}


@pytest.fixture(params=NAMES)
def loaded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Environment:
    for variable in environment.VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    return Environment(str(SHELF / f"{request.param}.yaml"))


def _drivers(loaded: Environment) -> dict[str, dict]:
    return loaded.config.get_targets()["main"]["drivers"]


def test_one_file_a_board_and_one_for_recorded_logs() -> None:
    assert {path.stem for path in SHELF.glob("*.yaml")} == {*NAMES, "replay"}


def test_has_no_unknown_key(loaded: Environment, monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text("{}")
    monkeypatch.setenv("HIL_LAB", str(tmp_path / "lab.yaml"))
    environment.complete(loaded)


def test_all_drivers_bind(loaded: Environment) -> None:
    resources = loaded.config.get_targets()["main"]["resources"]
    if resources.pop("RemotePlace", None):
        resources.update(PLACE)
    target = loaded.get_target("main")
    try:
        strategy = target.get_driver("NetbootStrategy", activate=False)
        assert strategy.profile.name == Path(loaded.config_file).stem
        assert {driver.__class__.__name__ for driver in target.drivers} == set(_drivers(loaded))
        assert strategy.uboot.console is strategy.shell.console is strategy.console
    finally:
        target.cleanup()


def test_real_boards_come_from_a_place(loaded: Environment) -> None:
    name = Path(loaded.config_file).stem
    resources = loaded.config.get_targets()["main"]["resources"]
    if load_board(name).virtual is None:
        assert resources["RemotePlace"]["name"] == name
    else:
        assert "RemotePlace" not in resources


def test_every_data_port_has_a_cable(loaded: Environment) -> None:
    board = load_board(Path(loaded.config_file).stem)
    ports = loaded.config.get_targets()["main"]["resources"]["LinkPartner"]["ports"]
    wanted = {port.name for port in board.ports} if board.virtual is None else set()
    assert set(ports) == wanted, "the virtual lab fills in its own interfaces"


def test_uboot_prompt_is_never_empty(loaded: Environment) -> None:
    """labgrid takes an empty prompt as seen at once."""
    assert _drivers(loaded)["UBootDriver"]["prompt"] == "=> "


@pytest.mark.parametrize("prompt", ["root@am64xx-evm:~# ", "-bash-5.2# ", "# ", "root@b:/tmp# "])
def test_shell_prompt_matches_the_whole_prompt(loaded: Environment, prompt: str) -> None:
    assert re.fullmatch(_drivers(loaded)["ShellDriver"]["prompt"], prompt)
