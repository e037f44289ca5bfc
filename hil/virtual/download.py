"""Fetch many files at once into the cache, each checked against its hash.

`requests` and not apt's own downloader: apt shows no progress per group when its output is
captured, keeps its files under names that collide between releases, and has no hook for a
cache that is shared by several runs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from threading import Event
from typing import Protocol
from urllib.parse import unquote, urlsplit

import attrs
import requests
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TransferSpeedColumn,
)

from hil.clock import Deadline, wait_until
from hil.errors import LabError
from hil.virtual.cache import Cache

CONNECTIONS = 4
RETRIES = 3

_CHUNK_BYTES = 256 * 1024
_CONNECT_TIMEOUT_S = 15
_SILENCE_TIMEOUT_S = 60
_TRANSIENT_STATUS = {408, 429, 500, 502, 503, 504}
_TRANSIENT_ERRORS = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
)


class NotOnServerError(LabError):
    """The server has no such file, so the index that named it is older than the server."""


@attrs.frozen
class Blob:
    """A file to fetch; its hash is its name in the cache."""

    url: str
    size_bytes: int
    sha256: str


class Report(Protocol):
    """What a download tells while it runs; the calls come from several threads."""

    def start(self, blob: Blob) -> None: ...

    def advance(self, blob: Blob, size_bytes: int) -> None: ...

    def end(self, blob: Blob, *, finished: bool) -> None: ...


def fetch(
    blobs: Sequence[Blob],
    cache: Cache,
    scratch: Path,
    *,
    label: str,
    proxy: str | None = None,
    backoff_s: float = 1.0,
) -> None:
    """Fetch what the cache lacks; `scratch` takes the unfinished files, in the cache's filesystem.

    `proxy` None leaves the choice to the environment, "" forbids one. `backoff_s` is the wait
    before the first retry and doubles with each. NotOnServerError for a 404; LabError when the disk
    is too small, a hash or size differs, or the network stays broken.
    """
    by_hash = {blob.sha256: blob for blob in blobs}
    missing = [blob for sha256, blob in by_hash.items() if not cache.blob(sha256).exists()]
    if not missing:
        return
    cache.require_space(sum(blob.size_bytes for blob in missing))
    scratch.mkdir(exist_ok=True)
    with _report(label, missing) as report, _session(proxy) as session:
        job = _Job(cache, scratch, session, report, backoff_s)
        _run_all(job, missing)


def _run_all(job: _Job, blobs: Sequence[Blob]) -> None:
    """Fetch all; the first error, or Ctrl-C, stops the others too."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        futures: list[Future[None]] = [pool.submit(job.fetch, blob) for blob in blobs]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        finally:
            job.stop.set()
            pool.shutdown(cancel_futures=True)


@attrs.define
class _Job:
    cache: Cache
    scratch: Path
    session: requests.Session
    report: Report
    backoff_s: float
    stop: Event = attrs.field(factory=Event)

    def fetch(self, blob: Blob) -> None:
        for attempt in range(RETRIES + 1):
            finished = False
            self.report.start(blob)
            try:
                self._fetch_once(blob)
                finished = True
            except _TRANSIENT_ERRORS as error:
                if attempt == RETRIES:
                    raise LabError(
                        f"{shown(blob.url)}: failed {RETRIES + 1} times, at last by {error}; "
                        "check the network and apt's proxy settings"
                    ) from error
            except OSError as error:  # of the disk, and all others of requests
                raise LabError(f"{shown(blob.url)}: {error}") from error
            finally:
                self.report.end(blob, finished=finished)
            if finished or wait_until(
                self.stop.is_set, deadline=Deadline(self.backoff_s * 2**attempt)
            ):
                return

    def _fetch_once(self, blob: Blob) -> None:
        partial = self.scratch / blob.sha256
        timeout = (_CONNECT_TIMEOUT_S, _SILENCE_TIMEOUT_S)
        with self.session.get(blob.url, stream=True, timeout=timeout) as response:
            _check_status(blob, response)
            self._write(blob, response, partial)
        if self.stop.is_set():
            return
        final = self.cache.blob(blob.sha256)
        final.parent.mkdir(parents=True, exist_ok=True)
        partial.rename(final)

    def _write(self, blob: Blob, response: requests.Response, partial: Path) -> None:
        digest, size_bytes = hashlib.sha256(), 0
        with partial.open("wb") as file:
            for chunk in response.iter_content(_CHUNK_BYTES):
                if self.stop.is_set():
                    return
                file.write(chunk)
                digest.update(chunk)
                size_bytes += len(chunk)
                self.report.advance(blob, len(chunk))
            file.flush()
            os.fsync(file.fileno())
        if (size_bytes, digest.hexdigest()) != (blob.size_bytes, blob.sha256):
            raise LabError(
                f"{shown(blob.url)}: damaged or changed: SHA256 {digest.hexdigest()} "
                f"({size_bytes} bytes) came, {blob.sha256} ({blob.size_bytes} bytes) was announced"
            )


def _check_status(blob: Blob, response: requests.Response) -> None:
    status = response.status_code
    if status == HTTPStatus.NOT_FOUND:
        raise NotOnServerError(f"{shown(blob.url)}: not found; the package index may be stale")
    if status in _TRANSIENT_STATUS:
        raise requests.ConnectionError(f"HTTP status {status} {response.reason}")
    if status != HTTPStatus.OK:
        raise LabError(f"{shown(blob.url)}: HTTP status {status} {response.reason}")


@contextmanager
def _session(proxy: str | None) -> Iterator[requests.Session]:
    with requests.Session() as session:
        # A server that compresses on the fly would change what the hash is taken of.
        session.headers["Accept-Encoding"] = "identity"
        if proxy is not None:
            session.trust_env = False
            session.proxies = {"http": proxy, "https": proxy} if proxy else {}
        yield session


def shown(url: str) -> str:
    """The address as a message may show it: without a password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


@contextmanager
def _report(label: str, blobs: Sequence[Blob]) -> Iterator[Report]:
    """Bars on a terminal, elsewhere one line."""
    console = Console(stderr=True)
    total_bytes = sum(blob.size_bytes for blob in blobs)
    if console.is_terminal:
        with _progress(console) as progress:
            yield _Bars(progress, label, total_bytes)
    else:
        summary = f"{label}: fetching {len(blobs)} files, {total_bytes / 1e6:.1f} MB"
        console.print(summary, soft_wrap=True, highlight=False)
        yield _Silence()


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=console,
    )


class _Silence:
    def start(self, blob: Blob) -> None:
        pass

    def advance(self, blob: Blob, size_bytes: int) -> None:
        pass

    def end(self, blob: Blob, *, finished: bool) -> None:
        pass


class _Bars:
    """One bar for the group, and one for each file that is under way."""

    def __init__(self, progress: Progress, label: str, total_bytes: int) -> None:
        self._progress = progress
        self._total = progress.add_task(label, total=total_bytes)
        self._tasks: dict[str, TaskID] = {}
        self._got_bytes: dict[str, int] = {}

    def start(self, blob: Blob) -> None:
        name = unquote(Path(urlsplit(blob.url).path).name)
        self._got_bytes[blob.sha256] = 0
        self._tasks[blob.sha256] = self._progress.add_task(f"  {name}", total=blob.size_bytes)

    def advance(self, blob: Blob, size_bytes: int) -> None:
        self._got_bytes[blob.sha256] += size_bytes
        self._progress.advance(self._tasks[blob.sha256], size_bytes)
        self._progress.advance(self._total, size_bytes)

    def end(self, blob: Blob, *, finished: bool) -> None:
        self._progress.remove_task(self._tasks.pop(blob.sha256))
        if not finished:  # a retry starts at the file's beginning
            self._progress.advance(self._total, -self._got_bytes[blob.sha256])
