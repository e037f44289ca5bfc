"""Where this machine gets its Debian packages from: mirror, keyring and proxy, as apt has them.

The lab takes other releases and architectures from the same mirror, so that no host name stands in
this repository and a mirror inside a company is used as it is for everything else.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import attrs

from hil.errors import LabError

_KEYRING = "/usr/share/keyrings/debian-archive-keyring"
# Names that a sources file may use for a release besides its code name.
_SUITE_ALIASES = {"stable", "oldstable", "oldoldstable", "testing"}


@attrs.frozen
class Source:
    """One archive of apt's sources: an address and a suite with its components."""

    uri: str
    suite: str
    components: tuple[str, ...]


@attrs.frozen
class Mirror:
    """A Debian mirror; a `trusted` one is used without any signature."""

    url: str
    keyring: Path | None = None
    trusted: bool = False

    @property
    def options(self) -> str:
        """What stands in brackets in a line of sources.list."""
        return "trusted=yes" if self.trusted else f"signed-by={self.keyring}"


def host_mirror(config: Mapping[str, str]) -> Mirror:
    """The mirror that serves Debian's `main` to this machine, by `apt_config()`.

    LabError when there is none, or when it is of a kind that only apt itself can read.
    """
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    return Mirror(url=choose_mirror(host_sources(config), codename), keyring=archive_keyring())


def choose_mirror(sources: list[Source], codename: str) -> str:
    """Address of the archive that serves `main` of the release `codename`."""
    serving = [
        source.uri
        for source in sources
        if source.suite in {codename, *_SUITE_ALIASES} and "main" in source.components
    ]
    # Other vendors name suites and components like Debian's; only Debian's are called debian.
    serving.sort(key=lambda uri: not re.search(r"/debian(/|\.list$|$)", uri))
    if not serving:
        raise LabError(
            f"apt's sources name no archive with 'main' of {codename or 'this release'}; add the "
            "Debian mirror to /etc/apt/sources.list.d/debian.sources"
        )
    return _plain_address(serving[0]).rstrip("/")


def _plain_address(uri: str) -> str:
    """An http(s) address; of a local mirror list, as cloud images have it, the first one in it."""
    scheme, _, rest = uri.partition(":")
    if scheme in {"http", "https"}:
        return uri
    if scheme == "mirror+file":
        path = Path("/" + rest.lstrip("/"))
        lines = path.read_text().splitlines() if path.is_file() else []
        addresses = [line.split()[0] for line in lines if line.startswith(("http:", "https:"))]
        if addresses:
            return addresses[0]
        raise LabError(f"{path}: this mirror list of apt has no http or https address; add one")
    raise LabError(
        f"apt's source {uri}: the lab cannot fetch by {scheme!r}; add an http or https mirror to "
        "/etc/apt/sources.list.d/"
    )


def archive_keyring() -> Path:
    """The keys that Debian's releases are signed with. LabError when the package is missing."""
    for suffix in (".gpg", ".pgp"):
        if (path := Path(_KEYRING + suffix)).exists():
            return path
    raise LabError(f"{_KEYRING}.gpg: missing; run `apt-get install debian-archive-keyring`")


def apt_config() -> dict[str, str]:
    """This machine's apt settings; those that are lists give their last value only."""
    return parse_config(run_tool(["apt-config", "dump"]))


def parse_config(dump: str) -> dict[str, str]:
    """Settings by name, from the output of `apt-config dump`."""
    return dict(re.findall(r'^(\S+) "(.*)";$', dump, re.MULTILINE))


def proxy(config: Mapping[str, str], url: str) -> str | None:
    """The proxy that apt uses for this address: "" for none, None when apt's settings say nothing.

    A proxy for one host wins, then what a detection program says, then the scheme's; https takes
    what is set for http when nothing is set for itself.
    """
    parts = urlsplit(url)
    schemes = ("https", "http") if parts.scheme == "https" else (parts.scheme,)

    def setting(name: str) -> str:
        values = (config.get(f"Acquire::{scheme}::{name}") for scheme in schemes)
        return next(filter(None, values), "")

    value = setting(f"Proxy::{parts.hostname}")
    if not value and (program := setting("Proxy-Auto-Detect")):
        value = run_tool([program, url]).strip()
    value = value or setting("Proxy")
    if not value:
        return None
    return "" if value in {"DIRECT", "false"} else value


def host_sources(config: Mapping[str, str]) -> list[Source]:
    """All binary package sources of this machine, in apt's order of files."""
    etc = Path(config.get("Dir", "/")) / config.get("Dir::Etc", "etc/apt")
    files = [etc / config.get("Dir::Etc::sourcelist", "sources.list")]
    parts = etc / config.get("Dir::Etc::sourceparts", "sources.list.d")
    if parts.is_dir():
        files += sorted(parts.iterdir())
    found: list[Source] = []
    for file in files:
        if file.is_file() and file.suffix in {".list", ".sources"}:
            parse = parse_deb822 if file.suffix == ".sources" else parse_one_line
            found += parse(file.read_text())
    return found


def parse_one_line(text: str) -> list[Source]:
    """Sources of a `.list` file: `deb [option=value ...] URI SUITE COMPONENT...`."""
    found = []
    for line in text.splitlines():
        line = re.sub(r"\[[^]]*\]", " ", line.partition("#")[0], count=1)
        match line.split():
            case ["deb", uri, suite, *components]:
                found.append(Source(uri, suite, tuple(components)))
    return found


def parse_deb822(text: str) -> list[Source]:
    """Sources of a `.sources` file; each pair of address and suite becomes a source."""
    return [
        Source(uri, suite, tuple(stanza.get("components", "").split()))
        for stanza in _stanzas(text)
        if "deb" in stanza.get("types", "").split()
        and stanza.get("enabled", "yes").lower() not in {"no", "false", "0", "off", "disable"}
        for uri in stanza.get("uris", "").split()
        for suite in stanza.get("suites", "").split()
    ]


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    """Paragraphs with their fields, names in lower case; lines of comment may be anywhere."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines)):
        fields: dict[str, str] = {}
        name = ""
        for line in paragraph.splitlines():
            if line[:1].isspace():
                fields[name] = f"{fields.get(name, '')} {line.strip()}"
            elif ":" in line:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        yield fields


def run_tool(
    command: list[str],
    environment: Mapping[str, str] | None = None,
    *,
    keep_open: int | None = None,
) -> str:
    """Output of a command. LabError with its own error lines when it fails or is missing."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            pass_fds=() if keep_open is None else (keep_open,),
        )
    except FileNotFoundError as error:
        raise LabError(
            f"{command[0]}: not found; the virtual lab needs a Debian host, version 12 or later"
        ) from error
    if done.returncode:
        lines = done.stderr.splitlines() or [f"exit status {done.returncode}"]
        errors = [line for line in lines if line.startswith(("E:", "Err:"))] or lines[-1:]
        raise LabError(f"{' '.join(command[:2])}: {'; '.join(errors)}")
    return done.stdout
