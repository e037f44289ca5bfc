"""A small package mirror: packages made on the spot, served on loopback, with faults on demand."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from hil.virtual.sources import Mirror

# Answers a request itself and returns True, or leaves it to the server.
Hook = Callable[[SimpleHTTPRequestHandler], bool]


class MiniMirror:
    """`hooks` may take over single paths; `requests` counts those that came for each path."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.hooks: dict[str, Hook] = {}
        self.requests: Counter[str] = Counter()
        self.url = ""
        self._published_s = 1_700_000_000

    @property
    def source(self) -> Mirror:
        return Mirror(self.url, trusted=True)

    def publish(self, suite: str, packages: list[Path], **release: str) -> None:
        """Make `packages` the content of a suite; `release` are more fields of its Release file."""
        stanzas = []
        for package in packages:
            data = package.read_bytes()
            control = subprocess.check_output(["dpkg-deb", "--field", package], text=True)
            stanzas.append(
                f"{control}Filename: {package.relative_to(self.root)}\nSize: {len(data)}\n"
                f"SHA256: {hashlib.sha256(data).hexdigest()}\n"
            )
        index = self.root / f"dists/{suite}/main/binary-amd64/Packages"
        index.parent.mkdir(parents=True, exist_ok=True)
        index.write_text("\n".join(stanzas))
        digest = hashlib.sha256(index.read_bytes()).hexdigest()
        fields = {"Suite": suite, "Codename": suite, "Components": "main", **release}
        lines = [f"{name}: {value}" for name, value in fields.items()]
        lines += ["Architectures: amd64", "Date: Thu, 01 Jan 2026 00:00:00 UTC", "SHA256:"]
        lines += [f" {digest} {index.stat().st_size} main/binary-amd64/Packages"]
        release_file = index.parents[2] / "Release"
        release_file.write_text("\n".join(lines) + "\n")
        # HTTP tells versions apart by whole seconds; tests publish twice within one.
        self._published_s += 60
        for path in (index, release_file):
            os.utime(path, (self._published_s, self._published_s))

    def package(self, name: str, files: Mapping[str, str], **control: str) -> Path:
        """Build a package of text files; the result lies in the mirror's pool."""
        return build_package(self.root / "pool", name, lambda tree: _write(tree, files), **control)

    def path(self, package: Path) -> str:
        return f"/{package.relative_to(self.root)}"


def build_package(directory: Path, name: str, fill: Callable[[Path], None], **control: str) -> Path:
    """Build a package of what `fill` writes into the directory that it is given."""
    fields = {"Version": "1.0", "Architecture": "amd64", "Maintainer": "nobody", **control}
    tree = directory / f"source-{name}-{fields['Version']}"
    (tree / "DEBIAN").mkdir(parents=True)
    lines = [f"{key}: {value}" for key, value in {"Package": name, **fields}.items()]
    (tree / "DEBIAN/control").write_text("\n".join([*lines, "Description: test", ""]))
    fill(tree)
    package = directory / f"{name}_{fields['Version']}_{fields['Architecture']}.deb"
    command = ["dpkg-deb", "--root-owner-group", "--build", tree, package]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return package


def _write(tree: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@contextmanager
def serving(mirror: MiniMirror) -> Iterator[None]:
    """Serve the mirror on a free port of loopback; its address is `mirror.url`."""

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            mirror.requests[self.path] += 1
            hook = mirror.hooks.get(self.path)
            if not (hook and hook(self)):
                super().do_GET()

        def log_message(self, format: str, *args: object) -> None:
            pass

    handler = partial(Handler, directory=str(mirror.root))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        mirror.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
