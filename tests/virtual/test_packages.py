"""Trees of packages, from a real (small) mirror by the real apt, with races, kills and faults."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from threading import Event

import attrs
import pytest

from hil.clock import Deadline, wait_until
from hil.errors import LabError
from hil.virtual.cache import Cache
from hil.virtual.packages import Package, TreeRecipe, build_tree, parse_uris, resolve
from hil.virtual.sources import apt_config
from tests.virtual.mirror import MiniMirror, serving

PATIENCE_S = 30

RECIPE = TreeRecipe(name="app", architecture="amd64", packages=("app",))

# Another process that builds RECIPE from the mirror at argv[2] in the cache at argv[1].
BUILDER = """
import sys
from pathlib import Path
from hil.virtual.cache import Cache
from hil.virtual.packages import TreeRecipe, build_tree
from hil.virtual.sources import Mirror
recipe = TreeRecipe(name="app", architecture="amd64", packages=("app",))
print(build_tree(recipe, Cache(Path(sys.argv[1])), mirror=Mirror(sys.argv[2], trusted=True)))
"""


@pytest.fixture(autouse=True)
def no_proxy_for_loopback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "apt.conf"
    config.write_text('Acquire::http::Proxy::127.0.0.1 "DIRECT";\n')
    monkeypatch.setenv("APT_CONFIG", str(config))


@pytest.fixture
def mirror(tmp_path: Path) -> MiniMirror:
    """`app` 1.0 that depends on `libapp`, and an unrelated package; nothing is served yet."""
    mirror = MiniMirror(tmp_path / "mirror")
    packages = [
        mirror.package("app", {"usr/bin/app": "app 1.0"}, Depends="libapp (>= 1)"),
        mirror.package("libapp", {"lib/libapp.so": "library"}, Version="1:1.0+b1"),
        mirror.package("other", {"usr/bin/other": "other"}),
    ]
    mirror.publish("trixie", packages)
    return mirror


@pytest.fixture
def served(mirror: MiniMirror) -> Iterator[MiniMirror]:
    with serving(mirror):
        yield mirror


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def pool_requests(mirror: MiniMirror) -> dict[str, int]:
    """How often each package was asked for, by its file's name up to the version."""
    return {
        Path(path).name.partition("_")[0]: count
        for path, count in mirror.requests.items()
        if path.startswith("/pool/")
    }


def start_builder(cache: Cache, mirror: MiniMirror) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILDER, str(cache.root), mirror.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stall(mirror: MiniMirror, package: str) -> tuple[Event, Event]:
    """Make the server stop half-way in a package: events `reached` and `go_on`."""
    reached, go_on = Event(), Event()
    (path,) = mirror.root.glob(f"pool/{package}_*.deb")
    data = path.read_bytes()

    def hook(handler: SimpleHTTPRequestHandler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[: len(data) // 2])
        handler.wfile.flush()
        reached.set()
        go_on.wait(PATIENCE_S)
        try:
            handler.wfile.write(data[len(data) // 2 :])
        except ConnectionError:
            handler.close_connection = True
        return True

    mirror.hooks[mirror.path(path)] = hook
    return reached, go_on


def test_tree_of_a_package_and_what_it_depends_on(mirror: MiniMirror, cache: Cache) -> None:
    with serving(mirror):
        tree = build_tree(RECIPE, cache, mirror=mirror.source)
    assert tree == cache.root / f"trees/app-{RECIPE.key[:16]}"
    assert (tree / "usr/bin/app").read_text() == "app 1.0"
    assert (tree / "usr/lib/libapp.so").read_text() == "library"
    assert (tree / "lib").readlink() == Path("usr/lib")
    assert not (tree / "usr/bin/other").exists()
    manifest = json.loads((tree / "manifest.json").read_text())
    assert manifest["recipe"]["packages"] == ["app"]
    versions = {package["name"]: package["version"] for package in manifest["packages"]}
    assert versions == {"app": "1.0", "libapp": "1:1.0+b1"}
    for package in manifest["packages"]:
        assert cache.blob(package["sha256"]).stat().st_size == package["size_bytes"]
    before = mirror.requests.copy()
    assert build_tree(RECIPE, cache, mirror=mirror.source) == tree  # the server is gone
    assert mirror.requests == before


def test_finish_hook_and_its_version(served: MiniMirror, cache: Cache) -> None:
    def finish(root: Path) -> None:
        assert not list((cache.root / "trees").glob("app-*")), "visible before it is finished"
        (root / "etc").mkdir()
        (root / "etc/passwd").write_text("root")

    first = build_tree(RECIPE, cache, finish, mirror=served.source)
    assert (first / "etc/passwd").read_text() == "root"
    again = attrs.evolve(RECIPE, finish_version="2")
    second = build_tree(again, cache, mirror=served.source)
    assert second != first
    assert not (second / "etc").exists()
    assert pool_requests(served) == {"app": 1, "libapp": 1}


def test_failing_hook_leaves_nothing(served: MiniMirror, cache: Cache) -> None:
    def finish(root: Path) -> None:
        raise LabError("no ssh-keygen")

    with pytest.raises(LabError, match="no ssh-keygen"):
        build_tree(RECIPE, cache, finish, mirror=served.source)
    assert not list(cache.root.glob("trees/*")) + list(cache.root.glob("work/*"))


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({}, {"app", "libapp"}),
        ({"dependencies": False}, {"app"}),
        ({"keep": ("lib.*",)}, {"libapp"}),
        ({"keep": ("lib", "app")}, {"app"}),  # patterns match whole names
        ({"packages": ("app", "other")}, {"app", "libapp", "other"}),
    ],
)
def test_which_packages_a_recipe_means(
    served: MiniMirror, cache: Cache, change: dict[str, object], names: set[str]
) -> None:
    recipe = attrs.evolve(RECIPE, **change)
    packages = resolve(recipe, cache, served.source, apt_config())
    assert {package.name for package in packages} == names


def test_pocket_gives_only_the_named_packages_and_what_they_need(
    served: MiniMirror, cache: Cache
) -> None:
    served.publish(
        "trixie-backports",
        [
            served.package("app", {"a": "2"}, Version="2.0", Depends="libapp, libnew (>= 2)"),
            served.package("libapp", {"l": "2"}, Version="2:2.0"),
            served.package("libnew", {"n": "2"}, Version="2.0"),
        ],
        NotAutomatic="yes",
        ButAutomaticUpgrades="yes",
    )
    recipe = attrs.evolve(RECIPE, pocket="backports")
    packages = resolve(recipe, cache, served.source, apt_config())
    versions = {package.name: package.version for package in packages}
    assert versions == {"app": "2.0", "libapp": "1:1.0+b1", "libnew": "2.0"}
    plain = resolve(RECIPE, cache, served.source, apt_config())
    assert {package.name: package.version for package in plain}["app"] == "1.0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"packages": ("app", "nosuch")}, "apt-get install: E: Unable to locate package nosuch"),
        ({"keep": ("nosuch",)}, "tree app: none of its packages matches"),
        ({"suite": "nosuch"}, "apt-get update: E: .*nosuch"),
    ],
)
def test_recipes_that_cannot_be_had(
    served: MiniMirror, cache: Cache, change: dict[str, object], message: str
) -> None:
    with pytest.raises(LabError, match=message) as caught:
        build_tree(attrs.evolve(RECIPE, **change), cache, mirror=served.source)
    assert "\n" not in str(caught.value)


def test_unsigned_mirror_is_refused(served: MiniMirror, cache: Cache) -> None:
    keyring = served.root / "empty.gpg"
    keyring.touch()
    source = attrs.evolve(served.source, trusted=False, keyring=keyring)
    with pytest.raises(LabError, match=r"apt-get update: .*not signed"):
        build_tree(RECIPE, cache, mirror=source)
    assert pool_requests(served) == {}


def test_damaged_download(served: MiniMirror, cache: Cache) -> None:
    (package,) = served.root.glob("pool/app_*.deb")
    package.write_bytes(package.read_bytes()[::-1])
    with pytest.raises(LabError, match=f"{served.url}/pool/app_1.0_amd64.deb: damaged"):
        build_tree(RECIPE, cache, mirror=served.source)
    assert not list(cache.root.glob("trees/*")) + list(cache.root.glob("work/*"))


def test_stale_index_is_read_again(served: MiniMirror, cache: Cache) -> None:
    (old,) = served.root.glob("pool/app_*.deb")
    (library,) = served.root.glob("pool/libapp_*.deb")

    def replace(handler: SimpleHTTPRequestHandler) -> bool:
        if old.exists():
            old.unlink()
            new = served.package("app", {"usr/bin/app": "app 1.1"}, Version="1.1")
            served.publish("trixie", [new, library])
        return False

    served.hooks[served.path(old)] = replace
    tree = build_tree(RECIPE, cache, mirror=served.source)
    assert (tree / "usr/bin/app").read_text() == "app 1.1"


def test_file_that_stays_away(served: MiniMirror, cache: Cache) -> None:
    for package in served.root.glob("pool/app_*.deb"):
        package.unlink()
    with pytest.raises(LabError, match=r"pool/app_1\.0_amd64\.deb: not found; .*may be stale"):
        build_tree(RECIPE, cache, mirror=served.source)
    assert pool_requests(served)["app"] == 2


def test_unreachable_mirror_is_no_problem_when_index_and_downloads_are_there(
    mirror: MiniMirror, cache: Cache, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(mirror):
        build_tree(RECIPE, cache, mirror=mirror.source)
    again = attrs.evolve(RECIPE, finish_version="2")
    assert (build_tree(again, cache, mirror=mirror.source) / "usr/bin/app").exists()
    assert "app: using the old package index: apt-get update: " in capfd.readouterr().err
    with pytest.raises(LabError, match="apt-get update: "):
        build_tree(RECIPE, Cache(cache.root / "empty"), mirror=mirror.source)


def test_two_runs_that_race_build_once(served: MiniMirror, cache: Cache) -> None:
    reached, go_on = stall(served, "app")
    with start_builder(cache, served) as first:
        assert reached.wait(PATIENCE_S)
        with start_builder(cache, served) as second:
            assert second.stderr is not None
            assert second.stderr.readline() == "waiting for another run that builds app\n"
            go_on.set()
            outputs = {first.communicate()[0], second.communicate()[0]}
            assert (first.returncode, second.returncode) == (0, 0)
    assert outputs == {f"{cache.tree('app', RECIPE.key)}\n"}
    assert pool_requests(served) == {"app": 1, "libapp": 1}


def kill_half_way(cache: Cache, mirror: MiniMirror) -> None:
    """Start a builder of RECIPE and kill it while it writes a download."""
    (package,) = mirror.root.glob("pool/app_*.deb")
    partial = f"work/app-*/downloads/{hashlib.sha256(package.read_bytes()).hexdigest()}"
    _, go_on = stall(mirror, "app")
    with start_builder(cache, mirror) as builder:
        assert wait_until(lambda: list(cache.root.glob(partial)), deadline=Deadline(PATIENCE_S))
        builder.kill()
    go_on.set()
    mirror.hooks.clear()
    assert list(cache.root.glob(partial))


def test_run_after_a_killed_one(served: MiniMirror, cache: Cache) -> None:
    kill_half_way(cache, served)
    tree = build_tree(RECIPE, cache, mirror=served.source)
    assert (tree / "usr/bin/app").exists()
    assert not list(cache.root.glob("work/*"))


def test_remains_of_a_killed_run_go_with_any_other_build(served: MiniMirror, cache: Cache) -> None:
    kill_half_way(cache, served)
    build_tree(attrs.evolve(RECIPE, name="o", packages=("other",)), cache, mirror=served.source)
    assert not list(cache.root.glob("work/*"))


def test_every_part_of_a_recipe_changes_its_key() -> None:
    changes: list[dict[str, object]] = [
        {"name": "b"},
        {"architecture": "arm64"},
        {"packages": ("app", "other")},
        {"suite": "sid"},
        {"pocket": "backports"},
        {"keep": ("a",)},
        {"dependencies": False},
        {"finish_version": "1"},
    ]
    assert {name for change in changes for name in change} == {
        field.name for field in attrs.fields(TreeRecipe)
    }
    keys = {attrs.evolve(RECIPE, **change).key for change in changes}
    assert len(keys | {RECIPE.key}) == len(changes) + 1


SHA256 = "ab" * 32
LISTING = f"""\
Reading package lists...
The following NEW packages will be installed:
  app:arm64 ssh
'http://m.example/p/ssh_9.1%7e2%2bb1_arm64.deb' ssh_1%3a9.1~2+b1_arm64.deb 42 SHA256:{SHA256}
'http://m.example/p/app_1_all.deb' app_1_all.deb 7 SHA256:{SHA256}
'http://m.example/dists/x/InRelease' m.example_dists_x_InRelease 0
"""


def test_output_of_print_uris() -> None:
    url = "http://m.example/p/"
    assert parse_uris(LISTING) == [
        Package(f"{url}ssh_9.1%7e2%2bb1_arm64.deb", 42, SHA256, "ssh", "1:9.1~2+b1"),
        Package(f"{url}app_1_all.deb", 7, SHA256, "app", "1"),
    ]
