"""Environment files: found by name, completed by the lab's values, and checked as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hil import environment
from hil.errors import ConfigError

VIRTUAL = environment.find("virtual-arm64.yaml")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No lab.yaml and no variable of the machine that runs the tests."""
    for variable in environment.VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("HIL_LAB", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def values(env: Any, section: str, name: str) -> dict[str, Any]:
    return dict(environment.entries(env.config.data["targets"]["main"][section]))[name]


def changed(tmp_path: Path, old: str, new: str) -> Path:
    """A copy of the virtual board's environment with one text replaced."""
    text = VIRTUAL.read_text()
    assert old in text
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace(old, new))
    return path


def complaint(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        environment.load(path)
    return str(caught.value).splitlines()


def test_found_on_the_shelf_by_name() -> None:
    assert environment.find("am64x.yaml").parent.name == "environments"


def test_a_file_in_the_current_directory_wins(tmp_path: Path) -> None:
    (tmp_path / "am64x.yaml").write_text("targets: {}\n")
    assert environment.find("am64x.yaml").resolve() == tmp_path / "am64x.yaml"


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"am65\.yaml: no such environment.*am64x\.yaml"):
        environment.find("am65.yaml")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("imports:", "import:", "import: unknown key; did you mean 'imports'?"),
        ('prompt: "=>', 'promt: "=>', "UBootDriver.promt: unknown key; did you mean 'prompt'?"),
        ("SSHDriver:", "SHHDriver:", "SHHDriver: labgrid has no such class; did you mean"),
        ("    resources:", "    resource:", "resource: unknown key; did you mean 'resources'?"),
        ("board: virtual", "bord: virtual", "NetbootStrategy.bord: unknown key; did you mean"),
        ("targets:", "target:", "targets: missing"),
    ],
)
def test_unknown_keys_are_named(tmp_path: Path, old: str, new: str, expected: str) -> None:
    path = changed(tmp_path, old, new)
    lines = complaint(path)
    assert all(line.startswith(f"{path}: ") for line in lines)
    assert any(expected in line for line in lines), lines


def test_all_unknown_keys_are_told_at_once(tmp_path: Path) -> None:
    path = changed(tmp_path, "delay: 0.5", "dely: 0.5")
    path.write_text(path.read_text().replace("protocol: raw", "protokoll: raw"))
    assert len(complaint(path)) == 2


@pytest.mark.parametrize("text", ["", "[1, 2]", "targets: [main]", "targets: {main: 7}", "a: b: c"])
def test_broken_files_are_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    (line,) = complaint(path)
    assert str(path) in line


def test_import_that_is_not_there(tmp_path: Path) -> None:
    (line,) = complaint(changed(tmp_path, "hil.resources", "hil.resorces"))
    assert "imports" in line and "hil.resorces" in line


def test_virtual_lab_fills_only_what_is_open(tmp_path: Path) -> None:
    path = changed(tmp_path, "port: 0", "port: 4711")
    lab = {"resources": {"NetworkSerialPort": {"port": 1}, "NFSRoot": {"path": "/root"}}}
    env = environment.load(path, lab)
    assert values(env, "resources", "NetworkSerialPort")["port"] == 4711
    assert values(env, "resources", "NFSRoot")["path"] == "/root"


def test_lab_file_replaces_and_variables_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lab.yaml").write_text(
        "am64x:\n"
        "  resources:\n"
        "    RemotePlace: {name: desk}\n"
        "    NFSRoot: {server: 198.51.100.1, path: /srv/a}\n"
        "other: {}\n"
    )
    monkeypatch.setenv("HIL_NFS_PATH", "/srv/b")
    monkeypatch.setenv("HIL_KERNEL", "/srv/kernel")
    env = environment.load(environment.find("am64x.yaml"))
    assert values(env, "resources", "RemotePlace")["name"] == "desk"
    assert values(env, "resources", "NFSRoot")["server"] == "198.51.100.1"
    assert values(env, "resources", "NFSRoot")["path"] == "/srv/b"
    assert values(env, "drivers", "NetbootStrategy")["kernel"] == "/srv/kernel"


def test_lab_file_with_an_entry_that_the_environment_lacks(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text("am64x: {resources: {NFSRot: {path: /a}}}\n")
    (line,) = complaint(environment.find("am64x.yaml"))
    assert "lab.yaml: resources.NFSRot: this environment has no such entry" in line
    assert "did you mean 'NFSRoot'" in line


def test_named_lab_file_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_LAB", "/no/lab.yaml")
    (line,) = complaint(environment.find("am64x.yaml"))
    assert line.startswith("/no/lab.yaml: no such file")


def test_drivers_in_an_order_that_labgrid_cannot_follow(tmp_path: Path) -> None:
    data = yaml.safe_load(VIRTUAL.read_text())
    path = tmp_path / "sorted.yaml"
    path.write_text(yaml.safe_dump(data))
    loaded = environment.load(path)
    with pytest.raises(ConfigError) as caught:
        environment.make_target(loaded)
    text = str(caught.value)
    assert text.startswith(f"{path}: targets.main: binding NetbootStrategy failed")
    assert "above what needs it" in text
    assert "\n" not in text
