"""The agent that runs on the target: Python's standard library only, from version 3.9 on.

It knows nothing of the rest of the project, and travels as one file.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

# Zip files know no time before this one; a fixed time makes equal agents equal files.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_PACKAGE = "hil_agent"
_MAIN = f"import sys\nfrom {_PACKAGE}.__main__ import main\nsys.exit(main())\n"


def build(directory: Path) -> Path:
    """Write the agent as a zip application into `directory`; its name tells its content."""
    source = Path(__file__).parent
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        members = {f"{_PACKAGE}/{path.name}": path.read_bytes() for path in source.glob("*.py")}
        for name, content in sorted({"__main__.py": _MAIN.encode(), **members}.items()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    data = b"#!/usr/bin/env python3\n" + buffer.getvalue()
    target = directory / f"hil-agent-{hashlib.sha256(data).hexdigest()[:12]}.pyz"
    target.write_bytes(data)
    return target
