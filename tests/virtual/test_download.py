"""Downloads against a real server on loopback that fails in all the usual ways."""

from __future__ import annotations

import hashlib
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from hil.errors import LabError
from hil.virtual.cache import Cache
from hil.virtual.download import RETRIES, Blob, NotOnServerError, fetch, shown
from tests.virtual.mirror import MiniMirror, serving


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[MiniMirror]:
    mirror = MiniMirror(tmp_path / "served")
    mirror.root.mkdir()
    with serving(mirror):
        yield mirror


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def add(mirror: MiniMirror, name: str, size_bytes: int = 100_000) -> Blob:
    data = (name.encode() * size_bytes)[:size_bytes]
    (mirror.root / name).write_bytes(data)
    return Blob(f"{mirror.url}/{name}", size_bytes, hashlib.sha256(data).hexdigest())


def get(cache: Cache, tmp_path: Path, *blobs: Blob) -> None:
    fetch(blobs, cache, tmp_path / "scratch", label="test", proxy="", backoff_s=0.01)


def stored(cache: Cache) -> set[str]:
    return {path.name for path in cache.root.glob("blobs/sha256/*/*")}


def test_files_are_stored_by_hash_and_fetched_once(
    mirror: MiniMirror, cache: Cache, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blobs = [add(mirror, f"file{number}") for number in range(9)]
    get(cache, tmp_path, *blobs, blobs[0])
    assert capsys.readouterr().err == "test: fetching 9 files, 0.9 MB\n"
    for blob in blobs:
        data = cache.blob(blob.sha256).read_bytes()
        assert hashlib.sha256(data).hexdigest() == blob.sha256
    get(cache, tmp_path, *blobs)
    assert capsys.readouterr().err == ""
    assert set(mirror.requests.values()) == {1}
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize("size_bytes", [100_000, 99_999])
def test_changed_file(mirror: MiniMirror, cache: Cache, tmp_path: Path, size_bytes: int) -> None:
    blob = add(mirror, "file")
    (mirror.root / "file").write_bytes(b"?" * size_bytes)
    got = hashlib.sha256(b"?" * size_bytes).hexdigest()
    with pytest.raises(LabError, match=f"{blob.url}: damaged .*{got}.*{blob.sha256}"):
        get(cache, tmp_path, blob)
    assert stored(cache) == set()
    assert mirror.requests["/file"] == 1


def test_missing_file_points_at_the_index(mirror: MiniMirror, cache: Cache, tmp_path: Path) -> None:
    blob = Blob(f"{mirror.url}/gone", 1, "0" * 64)
    with pytest.raises(NotOnServerError, match=f"{blob.url}: not found; .*index may be stale"):
        get(cache, tmp_path, blob)


def refuse(status: int, times: int, mirror: MiniMirror, name: str) -> None:
    def hook(handler: SimpleHTTPRequestHandler) -> bool:
        if mirror.requests[name] > times:
            return False
        handler.send_error(status)
        return True

    mirror.hooks[name] = hook


def cut_off(times: int, mirror: MiniMirror, name: str) -> None:
    def hook(handler: SimpleHTTPRequestHandler) -> bool:
        if mirror.requests[name] > times:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        handler.wfile.write(b"x" * 1000)
        return True

    mirror.hooks[name] = hook


def test_transient_failures_are_retried(mirror: MiniMirror, cache: Cache, tmp_path: Path) -> None:
    blobs = [add(mirror, "busy"), add(mirror, "cut")]
    refuse(503, RETRIES, mirror, "/busy")
    cut_off(RETRIES, mirror, "/cut")
    get(cache, tmp_path, *blobs)
    assert stored(cache) == {blob.sha256 for blob in blobs}
    assert mirror.requests == {"/busy": RETRIES + 1, "/cut": RETRIES + 1}


def test_lasting_failures_end(mirror: MiniMirror, cache: Cache, tmp_path: Path) -> None:
    blob = add(mirror, "file")
    refuse(503, 100, mirror, "/file")
    with pytest.raises(LabError, match=f"{blob.url}: failed 4 times, at last by HTTP status 503"):
        get(cache, tmp_path, blob)
    assert mirror.requests["/file"] == RETRIES + 1
    refuse(403, 100, mirror, "/file")
    with pytest.raises(LabError, match=f"{blob.url}: HTTP status 403"):
        get(cache, tmp_path, blob)
    assert mirror.requests["/file"] == RETRIES + 2


def test_server_that_is_not_there(mirror: MiniMirror, cache: Cache, tmp_path: Path) -> None:
    blob = Blob("http://127.0.0.1:1/file", 1, "0" * 64)
    with pytest.raises(LabError, match=r"http://127\.0\.0\.1:1/file: failed 4 times"):
        get(cache, tmp_path, blob)


def test_too_big_for_the_disk_is_said_before_any_request(
    mirror: MiniMirror, cache: Cache, tmp_path: Path
) -> None:
    with pytest.raises(LabError, match="MB are needed"):
        get(cache, tmp_path, Blob(f"{mirror.url}/huge", 10**18, "0" * 64))
    assert not mirror.requests


def test_passwords_are_not_shown() -> None:
    assert shown("http://user:secret@mirror.example:80/x") == "http://mirror.example:80/x"


ON_TERMINAL = """
import sys
from pathlib import Path
from hil.virtual.cache import Cache
from hil.virtual.download import Blob, fetch
root, url, size, sha256 = sys.argv[1:]
blob = Blob(url, int(size), sha256)
fetch([blob], Cache(Path(root)), Path(root) / "scratch", label="group", proxy="", backoff_s=0.01)
"""


def test_terminal_shows_a_bar_that_ends_at_the_true_total(
    mirror: MiniMirror, cache: Cache, tmp_path: Path
) -> None:
    blob = add(mirror, "file", size_bytes=2_000_000)
    cut_off(2, mirror, "/file")
    cache.root.mkdir()
    arguments = [str(cache.root), blob.url, str(blob.size_bytes), blob.sha256]
    terminal, screen = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-c", ON_TERMINAL, *arguments]
    process = subprocess.Popen(command, stderr=screen, env=environment)
    os.close(screen)
    text = b""
    try:
        while data := os.read(terminal, 4096):
            text += data
    except OSError:  # how Linux tells that the other side of a terminal is closed
        pass
    os.close(terminal)
    assert process.wait() == 0
    bars = [line for line in text.decode().splitlines() if "group" in line]
    assert "2.0/2.0 MB" in bars[-1]
