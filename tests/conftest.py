"""What several of the framework's own tests need."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from hil import environment
from hil.bench import Bench
from hil.strategies.netboot import Status
from hil.virtual import assets, supervisor
from hil.virtual.cache import Cache

BOARD = "virtual-arm64"

# the same examples in every run; `--hypothesis-profile=long` looks for new ones
settings.register_profile("short", derandomize=True, max_examples=60, database=None)
settings.register_profile("long", max_examples=3000, database=None)
settings.load_profile("short")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces: needs root")


@pytest.fixture(scope="session")
def ti_dtbs() -> dict[str, Path]:
    """Directories of the device-tree files in Debian's kernel packages, by architecture."""
    return assets.ti_device_trees(Cache())


@pytest.fixture
def run_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The labs of this test are no others'; a short path, as sockets need it."""
    with tempfile.TemporaryDirectory(prefix="hil-") as directory:
        monkeypatch.setenv("HIL_RUN", directory)
        yield Path(directory)


@pytest.fixture(scope="session")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The virtual board in a lab of its own, booted once and reachable by ssh."""
    assets.prepare(Cache())
    lease = supervisor.up(f"tests-{os.getpid()}", BOARD, owned=True)
    try:
        values = lease.state["environment"]
        env = environment.load(environment.find(f"{BOARD}.yaml"), values)
        bench = Bench(env.get_target(), tmp_path_factory.mktemp("agent"))
        bench.require(Status.ssh)
        yield bench
        bench.close()
        bench.strategy.transition(Status.off)
        env.cleanup()
    finally:
        lease.end()
