"""Real boards' environments bind to resources that come from a real coordinator and exporter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from labgrid.resource.common import ResourceManager

from hil import environment
from hil.boards.load import board_names, load_board
from hil.clock import Deadline, wait_until
from hil.doctor import examine
from hil.virtual.ports import answers, free_port

BOARDS = [name for name in board_names() if load_board(name).virtual is None]
BIN = Path(sys.executable).parent


def client(*arguments: str) -> str:
    """Run labgrid's own client; its output."""
    argv = [str(BIN / "labgrid-client"), *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A coordinator and an exporter with a serial port, a power outlet and TFTP for each board."""
    directory = tmp_path_factory.mktemp("lab")
    port = free_port()
    os.environ["LG_COORDINATOR"] = f"127.0.0.1:{port}"
    exported = {
        name: {
            "NetworkSerialPort": {"host": "127.0.0.1", "port": free_port(), "protocol": "raw"},
            "NetworkPowerPort": {"model": "rest", "host": "http://127.0.0.1:9/{index}", "index": 1},
            "TFTPProvider": {"internal": f"{directory}/", "external": ""},
        }
        for name in BOARDS
    }
    (directory / "exporter.yaml").write_text(yaml.safe_dump(exported))
    commands = [
        ["labgrid-coordinator", "-l", os.environ["LG_COORDINATOR"]],
        ["labgrid-exporter", "--hostname", "localhost", "--name", "bench", "exporter.yaml"],
    ]
    running = []
    try:
        for program, *arguments in commands:
            with (directory / f"{program}.log").open("wb") as output:
                argv = [str(BIN / program), *arguments]
                running.append(subprocess.Popen(argv, cwd=directory, stdout=output, stderr=output))
            assert wait_until(lambda: answers(port), deadline=Deadline(20))
        wanted = 3 * len(BOARDS)
        assert wait_until(
            lambda: len(client("resources").splitlines()) >= wanted, deadline=Deadline(30)
        ), (directory / "labgrid-exporter.log").read_text()
        for name in BOARDS:
            client("-p", name, "create")
            client("-p", name, "add-match", f"*/{name}/*")
            client("-p", name, "acquire")
        yield directory
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(20)
        del os.environ["LG_COORDINATOR"]
        ResourceManager.instances.clear()


@pytest.mark.parametrize("name", BOARDS)
def test_environment_binds_to_its_place(lab: Path, name: str) -> None:
    env = environment.load(environment.find(f"{name}.yaml"))
    target = env.get_target()
    try:
        strategy = target.get_driver("NetbootStrategy", activate=False)
        target.await_resources(target.resources, timeout=10)
        assert strategy.console.serial.port.port
        assert type(strategy.power).__name__ == "NetworkPowerDriver"
        assert type(strategy.tftp.provider).__name__ == "RemoteTFTPProvider"
    finally:
        env.cleanup()


def test_doctor_tells_what_the_lab_lacks(lab: Path) -> None:
    checks = {check.what: check for check in examine("am64x.yaml", None)}
    assert checks["place am64x"].good is True
    assert checks["kernel"].says.startswith("none named; use --kernel DIR")
    assert "Connection refused" in checks["serial port"].says
    assert checks["power"].good is False
    assert checks["link partner"].good is False
