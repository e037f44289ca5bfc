"""Trees of unpacked Debian packages, made of a recipe and kept in the cache.

apt itself resolves the dependencies, against an empty package status and with index files of its
own, so any release and architecture can be had and this machine's apt is left as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

import attrs
import click
from rich.console import Console
from rich.progress import track

from hil.errors import LabError
from hil.virtual import download
from hil.virtual.cache import MANIFEST, Cache
from hil.virtual.download import Blob, NotOnServerError
from hil.virtual.sources import Mirror, apt_config, host_mirror, proxy, run_tool
from hil.virtual.unpack import DebTree

# Raise it when unpack() or build_tree() make other trees of the same packages.
_FORMAT = 1


@attrs.frozen
class TreeRecipe:
    """What a tree consists of; two recipes that are equal share one tree.

    With a `pocket` ("backports") the named packages come from there, and of their dependencies
    only what the release itself cannot satisfy. `keep` are regular expressions of which one must
    match a package's whole name; without any, all packages stay. `finish_version` stands for the
    finish hook of build_tree(): raise it whenever the hook changes.
    """

    name: str
    architecture: str
    packages: tuple[str, ...]
    suite: str = "trixie"
    pocket: str = ""
    keep: tuple[str, ...] = ()
    dependencies: bool = True
    finish_version: str = ""

    @property
    def key(self) -> str:
        """Hash of all that the recipe says."""
        content = json.dumps([_FORMAT, attrs.asdict(self)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def suites(self) -> tuple[str, ...]:
        return (self.suite, f"{self.suite}-{self.pocket}") if self.pocket else (self.suite,)

    def wants(self, package: str) -> bool:
        """Whether a package of the resolved set belongs into the tree."""
        if not self.dependencies and package not in self.packages:
            return False
        return not self.keep or any(re.fullmatch(pattern, package) for pattern in self.keep)


@attrs.frozen
class Package(Blob):
    """A package of a certain version, at a certain address."""

    name: str
    version: str


def host_architecture() -> str:
    """Debian's name for this machine's architecture, such as amd64."""
    return run_tool(["dpkg", "--print-architecture"]).strip()


def build_tree(
    recipe: TreeRecipe,
    cache: Cache,
    finish: Callable[[Path], None] | None = None,
    *,
    mirror: Mirror | None = None,
) -> Path:
    """The recipe's tree; when the cache has it already, nothing else is needed, no network either.

    `finish` may edit the tree before it becomes visible. The tree is shared and must not be changed
    later. `mirror` is this machine's own by default.
    """
    tree = cache.tree(recipe.name, recipe.key)
    if tree.is_dir():
        return tree
    with cache.lock(tree.name, f"builds {recipe.name}"):
        if not tree.is_dir():
            with cache.workspace(tree.name) as work:
                _build(recipe, cache, finish, mirror, work)
                tree.parent.mkdir(parents=True, exist_ok=True)
                (work / "tree").rename(tree)
    return tree


def _build(
    recipe: TreeRecipe,
    cache: Cache,
    finish: Callable[[Path], None] | None,
    mirror: Mirror | None,
    work: Path,
) -> None:
    config = apt_config()
    mirror = mirror or host_mirror(config)
    via = proxy(config, mirror.url)
    packages = resolve(recipe, cache, mirror, config)
    try:
        download.fetch(packages, cache, work / "downloads", label=recipe.name, proxy=via)
    except NotOnServerError:
        # The mirror changed between its index and now; resolving reads the index anew.
        packages = resolve(recipe, cache, mirror, config)
        download.fetch(packages, cache, work / "downloads", label=recipe.name, proxy=via)
    root = work / "tree"
    tree = DebTree(root, recipe.architecture)
    for package in _with_progress(packages, recipe.name):
        tree.unpack(cache.blob(package.sha256), package.name)
    tree.drop_unused_links()
    if finish:
        finish(root)
    _write_manifest(root / MANIFEST, recipe, packages)
    # What the rename makes visible has to be on the disk before, or a power cut leaves half of it.
    run_tool(["sync", "--file-system", str(root)])


def _with_progress(packages: list[Package], name: str) -> Iterable[Package]:
    console = Console(stderr=True)
    if not console.is_terminal:
        return packages
    return track(packages, description=f"{name}: unpacking", console=console)


def _write_manifest(path: Path, recipe: TreeRecipe, packages: list[Package]) -> None:
    contents = [
        {"name": p.name, "version": p.version, "sha256": p.sha256, "size_bytes": p.size_bytes}
        for p in packages
    ]
    manifest = {"recipe": attrs.asdict(recipe), "packages": contents}
    path.write_text(json.dumps(manifest, indent=1) + "\n")


def resolve(
    recipe: TreeRecipe, cache: Cache, mirror: Mirror, config: Mapping[str, str]
) -> list[Package]:
    """The packages that the recipe means today, by an index that is refreshed first.

    When the mirror cannot be reached, an index of an earlier run will do. `config` holds the host's
    apt settings. LabError when there is no index, or a package cannot be had.
    """
    apt = f"apt-{recipe.suite}-{recipe.architecture}"
    with cache.lock(apt, f"reads the package index of {recipe.suite}") as lock:
        state = cache.root / "apt" / apt
        environment = _write_apt_state(state, recipe, mirror, config)

        def run_apt(*arguments: str) -> str:
            return run_tool(["apt-get", *arguments], environment, keep_open=lock)

        try:
            run_apt("update", "-o", "APT::Update::Error-Mode=any")
        except LabError as error:
            targets = run_apt("indextargets", "--format", "$(SUITE)", "Created-By: Packages")
            if len(targets.split()) < len(recipe.suites):
                raise
            click.echo(f"{recipe.name}: using the old package index: {error}", err=True)
        release = f"/{recipe.suites[-1]}" if recipe.pocket else ""
        names = [package + release for package in recipe.packages]
        listing = run_apt("install", "--print-uris", "--yes", *names)
    packages = [package for package in parse_uris(listing) if recipe.wants(package.name)]
    if not packages:
        raise LabError(f"tree {recipe.name}: none of its packages matches {recipe.keep}")
    return packages


def parse_uris(listing: str) -> list[Package]:
    """Packages by the output of `apt-get install --print-uris`, in its order."""
    packages = []
    for line in listing.splitlines():
        match shlex.split(line) if line.startswith("'") else []:
            case [url, file, size, checksum] if checksum.startswith("SHA256:"):
                name, version, _ = unquote(file).rsplit("_", 2)
                sha256 = checksum.removeprefix("SHA256:")
                packages.append(Package(url, int(size), sha256, name, version))
    return packages


def _write_apt_state(
    state: Path, recipe: TreeRecipe, mirror: Mirror, config: Mapping[str, str]
) -> dict[str, str]:
    """Make apt's directories; returns the environment that points apt at them."""
    for directory in ("lists/partial", "archives/partial"):
        (state / directory).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    (state / "sources.list").write_text(
        "".join(f"deb [{mirror.options}] {mirror.url} {suite} main\n" for suite in recipe.suites)
    )
    settings = {
        # How this machine reaches its mirrors: proxies, certificates, time-outs, validity checks.
        **{
            name: value
            for name, value in config.items()
            if name.startswith("Acquire::")
            and not name.endswith("::")
            and not name.startswith(("Acquire::IndexTargets", "Acquire::Languages"))
        },
        "Acquire::ForceHash": "SHA256",
        "Acquire::GzipIndexes": "true",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "APT::Architecture": recipe.architecture,
        "APT::Architectures": recipe.architecture,
        "APT::Get::List-Cleanup": "false",  # recipes with and without a pocket share the lists
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",  # apt's own user cannot enter a cache below /root
        "Dir::Cache": str(state),
        "Dir::Cache::archives": "archives",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "Dir::Etc::parts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::Etc::sourcelist": str(state / "sources.list"),
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": str(state),
        "Dir::State::lists": "lists",
        "Dir::State::status": str(state / "status"),
    }
    file = state / "apt.conf"
    file.write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()))
    return {"APT_CONFIG": str(file), "LC_ALL": "C"}
