"""What several of the framework's own tests need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hil.virtual import assets
from hil.virtual.cache import Cache

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces: needs root")


@pytest.fixture(scope="session")
def ti_dtbs() -> dict[str, Path]:
    """Directories of the device-tree files in Debian's kernel packages, by architecture."""
    return assets.ti_device_trees(Cache())
