"""Virtual labs for the tests that need one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hil.virtual import assets, supervisor
from hil.virtual.cache import Cache
from hil.virtual.supervisor import Lease
from tests.conftest import BOARD


@pytest.fixture(scope="session")
def spare_lab() -> Iterator[Lease]:
    """A lab for tests that break it or leave its board in any state."""
    assets.prepare(Cache())
    lease = supervisor.up(f"spare-{os.getpid()}", BOARD, owned=True)
    yield lease
    lease.end()
