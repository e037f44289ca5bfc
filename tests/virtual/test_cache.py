"""The cache's promises: locks, no remains of killed runs, a clean() that keeps what is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hil.errors import LabError
from hil.virtual.cache import MANIFEST, Cache

# Holds a lock and has a workspace until it is killed.
HOLDER = """
import sys
from pathlib import Path
from hil.virtual.cache import Cache
cache = Cache(Path(sys.argv[1]))
with cache.lock("thing", "builds thing"), cache.workspace("thing") as work:
    (work / "half").write_text("done")
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def start_holder(cache: Cache) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(cache.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "ready\n"
    return holder


def add_blob(cache: Cache, sha256: str, size_bytes: int = 8192) -> None:
    path = cache.blob(sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\1" * size_bytes)


def add_tree(cache: Cache, name: str, key: str, *sha256s: str) -> Path:
    tree = cache.tree(name, key * 64)
    tree.mkdir(parents=True)
    manifest = {"packages": [{"sha256": sha256} for sha256 in sha256s]}
    (tree / MANIFEST).write_text(json.dumps(manifest))
    return tree


@pytest.mark.parametrize(
    ("environment", "root"),
    [
        ({"HIL_CACHE": "/a/b", "XDG_CACHE_HOME": "/c"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/hil"),
        ({"HIL_CACHE": "", "HOME": "/h"}, "/h/.cache/hil"),
    ],
)
def test_where_the_cache_is(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], root: str
) -> None:
    for name in ("HIL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Cache().root == Path(root)


def test_killed_run_loses_its_lock_and_its_remains_are_removed(cache: Cache) -> None:
    with start_holder(cache) as holder:
        cache.remove_leftovers()
        assert (cache.root / "work/thing/half").exists(), "a living run's work was removed"
        holder.kill()
    assert (cache.root / "work/thing/half").exists()
    cache.remove_leftovers()
    assert list((cache.root / "work").iterdir()) == []
    with cache.lock("thing", "builds thing"):
        pass


def test_workspace_is_empty_and_goes_away_on_errors(cache: Cache) -> None:
    def fail(work: Path) -> None:
        assert list(work.iterdir()) == []
        (work / "file").write_text("text")
        raise LabError("no")

    for _ in range(2):
        with pytest.raises(LabError), cache.lock("x", "builds x"), cache.workspace("x") as work:
            fail(work)
        assert not work.exists()


def test_too_little_space(cache: Cache) -> None:
    cache.require_space(1)
    with pytest.raises(LabError, match=rf"{cache.root}: 4000000000000 MB are needed and \d+ MB"):
        cache.require_space(10**18)


def test_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match=r"file/cache/locks/x: Not a directory; set HIL_CACHE"):
        with Cache(tmp_path / "file/cache").lock("x", "builds x"):
            pass


def test_clean_removes_everything_and_counts_it(cache: Cache) -> None:
    assert cache.clean() == 0
    add_blob(cache, "aa" * 32, size_bytes=1_000_000)
    add_tree(cache, "t", "1", "aa" * 32)
    (cache.root / "apt/state").mkdir(parents=True)
    freed_bytes = cache.clean()
    assert 1_000_000 <= freed_bytes < 1_100_000
    assert cache.size_bytes() == 0
    for part in ("trees", "apt", "work"):
        assert not list((cache.root / part).glob("*"))


def test_clean_of_the_unused_keeps_what_the_newest_trees_need(cache: Cache) -> None:
    for sha256 in ("aa" * 32, "bb" * 32, "cc" * 32):
        add_blob(cache, sha256)
    old = add_tree(cache, "a-b", "1", "aa" * 32, "bb" * 32)
    new = add_tree(cache, "a-b", "2", "bb" * 32)
    other = add_tree(cache, "a", "3", "cc" * 32)
    old_s = new.stat().st_mtime - 10
    subprocess.run(["touch", "-d", f"@{old_s}", old], check=True)
    assert cache.clean(unused=True) > 0
    assert (old.exists(), new.exists(), other.exists()) == (False, True, True)
    blobs = {path.name[:2] for path in cache.root.glob("blobs/sha256/*/*")}
    assert blobs == {"bb", "cc"}


def test_clean_refuses_while_a_run_builds(cache: Cache) -> None:
    tree = add_tree(cache, "t", "1")
    with start_holder(cache) as holder:
        with pytest.raises(LabError, match="another run builds in this cache"):
            cache.clean()
        holder.kill()
    assert tree.exists()
    cache.clean()
    assert not tree.exists()
