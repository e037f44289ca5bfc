"""The architecture's two promises about imports: pure modules stay pure, and none looks upward."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hil

ROOT = Path(hil.__file__).parent

# What a pure module must not import: anything that reaches outside the process.
IMPURE = {
    *("labgrid", "subprocess", "socket", "time", "os", "shutil", "tempfile", "requests", "serial"),
    *("paramiko", "hil.clock", "hil.runners", "threading", "signal", "fcntl"),
}
PURE = (
    "boards/model.py",
    "console/boot.py",
    "console/classify.py",
    "console/collected.py",
    "console/drivers.py",
    "console/judge.py",
    "console/lines.py",
    "console/merged.py",
    "console/model.py",
    "console/phases.py",
    "console/printk.py",
    "console/signatures.py",
    "console/splat.py",
    "console/traffic.py",
    "results/known_issues.py",
    "results/summary.py",
    "strategies/recipe.py",
    "virtual/qemu.py",
    "virtual/recording.py",
    "agent/frames.py",
)
# Each layer may import those before it.
LAYERS = (
    {"errors", "clock", "agent", "console.model", "console.phases"},
    {"boards", "console", "results.summary", "results.known_issues"},
    {
        "console.driver",
        "console.monitor",
        "console.failure",
        "console.log",
        "console.kmsg",
        "resources",
        "link_partner",
        "runners",
        "ssh_host",
        "agents",
        "kernel",
        "results",
        "environment",
    },
    {"strategies", "virtual"},
    {"bench", "boot", "doctor"},
    {"cli", "pytest_plugin"},
)


def imports(path: Path) -> set[str]:
    """Modules that a file imports, `from a import b` counted as both a and a.b."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("name", PURE)
def test_pure_modules_reach_nothing(name: str) -> None:
    impure = {
        module
        for module in imports(ROOT / name)
        if any(module == bad or module.startswith(bad + ".") for bad in IMPURE)
    }
    assert not impure


def layer(module: str) -> int | None:
    """Index of the layer of a module like `hil.virtual.lab`; the longest entry wins."""
    name = module.removeprefix("hil.")
    ranked = [
        (len(entry), index)
        for index, entries in enumerate(LAYERS)
        for entry in entries
        if name == entry or name.startswith(entry + ".")
    ]
    return max(ranked)[1] if ranked else None


def modules() -> list[Path]:
    return [path for path in sorted(ROOT.rglob("*.py")) if path.name != "__init__.py"]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_imports_upward(path: Path) -> None:
    module = "hil." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
    own = layer(module)
    assert own is not None, f"{module} belongs to no layer: add it to LAYERS"
    upward = {
        other for other in imports(path) if other.startswith("hil.") and (layer(other) or 0) > own
    }
    assert not upward
