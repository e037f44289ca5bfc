"""The mirror and the proxy that this machine's apt uses, from all forms of its configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.errors import LabError
from hil.virtual.sources import (
    Source,
    choose_mirror,
    host_sources,
    parse_config,
    parse_deb822,
    parse_one_line,
    proxy,
)

ONE_LINE = """\
# deb http://commented.example/debian bookworm main
deb cdrom:[Debian GNU/Linux 12 _Bookworm_ - amd64]/ bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian/ bookworm main contrib # why
deb-src http://mirror.example/debian bookworm main
deb\thttp://mirror.example/debian-security bookworm-security main
"""
DEB822 = """\
# the usual two
Types: deb deb-src
URIs: http://mirror.example/debian
# comments may be inside
Suites: trixie
 trixie-updates
Components: main non-free-firmware
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 URIs: not a field
 -----END PGP PUBLIC KEY BLOCK-----

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: trixie
Components: main

types: deb-src
uris: http://src.example/debian
suites: trixie
components: main
"""


def test_one_line_sources() -> None:
    assert parse_one_line(ONE_LINE) == [
        Source("cdrom:", "/", ("bookworm", "main")),  # harmless: no release is called /
        Source("http://mirror.example/debian/", "bookworm", ("main", "contrib")),
        Source("http://mirror.example/debian-security", "bookworm-security", ("main",)),
    ]


def test_deb822_sources() -> None:
    components = ("main", "non-free-firmware")
    assert parse_deb822(DEB822) == [
        Source("http://mirror.example/debian", "trixie", components),
        Source("http://mirror.example/debian", "trixie-updates", components),
    ]


def source(uri: str, suite: str = "trixie", *components: str) -> Source:
    return Source(uri, suite, components or ("main",))


DEBIAN = source("http://mirror.example/debian")


@pytest.mark.parametrize(
    ("sources", "url"),
    [
        ([DEBIAN], "http://mirror.example/debian"),
        ([source("https://mirror.example/debian/")], "https://mirror.example/debian"),
        ([source("http://other.example/x", "trixie"), DEBIAN], "http://mirror.example/debian"),
        ([source("http://s.example/debian-security", "trixie-security"), DEBIAN], DEBIAN.uri),
        ([source("http://docker.example/linux/debian", "trixie", "stable"), DEBIAN], DEBIAN.uri),
        ([source("http://mirror.example/debian", "stable")], DEBIAN.uri),
        ([source("http://plain.example/mirror")], "http://plain.example/mirror"),
        (
            [source("http://php.example/php"), source("http://old.example/debian/20260101T0Z")],
            "http://old.example/debian/20260101T0Z",
        ),
    ],
)
def test_mirror_of_the_hosts_own_release(sources: list[Source], url: str) -> None:
    assert choose_mirror(sources, "trixie") == url


def test_local_mirror_list_of_cloud_images(tmp_path: Path) -> None:
    mirrors = tmp_path / "debian.list"
    mirrors.write_text("# ours\nhttps://cdn.example/debian\tpriority:1\nhttp://b.example/debian\n")
    php = source("http://php.example/php")
    for uri in (f"mirror+file:{mirrors}", f"mirror+file://{mirrors}"):
        assert choose_mirror([php, source(uri)], "trixie") == "https://cdn.example/debian"


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([], "no archive with 'main' of trixie"),
        ([source("http://mirror.example/debian", "bookworm")], "no archive"),
        ([source("http://mirror.example/debian", "trixie", "contrib")], "no archive"),
        ([source("mirror+file:/nonexistent/debian.list")], "/nonexistent/debian.list: "),
        ([source("mirror://mirror.example/list/debian")], "cannot fetch by 'mirror'"),
        ([source("tor+http://mirror.example/debian")], "add an http or https mirror"),
    ],
)
def test_mirrors_that_cannot_be_used(sources: list[Source], message: str) -> None:
    with pytest.raises(LabError, match=message):
        choose_mirror(sources, "trixie")


def test_sources_of_a_machine(tmp_path: Path) -> None:
    parts = tmp_path / "etc/apt/sources.list.d"
    parts.mkdir(parents=True)
    (tmp_path / "etc/apt/sources.list").write_text("deb http://a.example/debian sid main\n")
    (parts / "b.sources").write_text(
        "Types: deb\nURIs: http://b.example/debian\nSuites: sid\nComponents: main\n"
    )
    (parts / "c.list.save").write_text("deb http://c.example/debian sid main\n")
    config = {"Dir": str(tmp_path), "Dir::Etc": "etc/apt"}
    assert [found.uri for found in host_sources(config)] == [
        "http://a.example/debian",
        "http://b.example/debian",
    ]


CONFIG = """\
Acquire "";
Acquire::http::Proxy "http://proxy.example:3142/";
Acquire::http::Proxy::inside.example "DIRECT";
Acquire::https::Proxy::special.example "http://other.example:1";
APT::NeverAutoRemove:: "^firmware-linux.*";
"""


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://mirror.example/debian", "http://proxy.example:3142/"),
        ("https://mirror.example/debian", "http://proxy.example:3142/"),
        ("http://inside.example/debian", ""),
        ("https://special.example:8443/debian", "http://other.example:1"),
    ],
)
def test_proxy_by_apts_settings(url: str, expected: str) -> None:
    assert proxy(parse_config(CONFIG), url) == expected


def test_no_proxy_setting_leaves_it_to_the_environment() -> None:
    assert proxy({}, "http://mirror.example/debian") is None


def test_proxy_by_detection_program(tmp_path: Path) -> None:
    program = tmp_path / "detect"
    program.write_text('#!/bin/sh\necho "http://found.example:8000/?$1"\n')
    program.chmod(0o755)
    config = {"Acquire::http::Proxy-Auto-Detect": str(program), "Acquire::http::Proxy": "unused"}
    url = "http://mirror.example/debian"
    assert proxy(config, url) == f"http://found.example:8000/?{url}"
