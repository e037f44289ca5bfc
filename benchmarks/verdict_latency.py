"""How long it takes from what a board says to the error that tells what broke.

A virtual board is driven through hil's whole stack, and its serial line runs through a tap that
notes when a line passes. Measured, several times each:

    panic    real (sysrq), from its line to the error of a waiting expect
    oops     real (a driver bound to a device it does not know), to the error of a waiting command
    reset    real (sysrq), from the boot loader's banner to the error of a waiting expect
    silence  a kernel without a console, from the end of its phase's limit to the failed boot

The last line is a JSON object with medians, maxima and their bounds.

    .venv/bin/python benchmarks/verdict_latency.py [--times 10]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import yaml

import hil
from hil import environment
from hil.bench import Bench
from hil.console import failure
from hil.console.model import Finding
from hil.errors import HilError
from hil.strategies.netboot import NetbootStrategy, Status
from hil.virtual import assets, supervisor
from hil.virtual.cache import Cache
from hil.virtual.supervisor import Lease

BOARD = "virtual-arm64"
BOUND_MEDIAN_S, BOUND_MAX_S, BOUND_SILENCE_S = 0.3, 1.0, 0.5
SILENCE_LIMIT_S = 3.0
PATIENCE_S = 60
PORT = "0000:01:00.0"
PANIC = "echo c > /proc/sysrq-trigger"
RESET = "echo b > /proc/sysrq-trigger"
OOPS = f"""
modprobe rtw89_8852ae
echo {PORT} > /sys/bus/pci/drivers/igb/unbind
echo rtw89_8852ae > /sys/bus/pci/devices/{PORT}/driver_override
echo {PORT} > /sys/bus/pci/drivers/rtw89_8852ae/bind
"""


class Tap:
    """A serial server that passes everything on to another, and notes when a text went by."""

    def __init__(self, upstream: tuple[str, int]) -> None:
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._text, self._tail = b"", b""
        self.seen_s: float | None = None
        self.last_s = 0.0
        threading.Thread(target=self._serve, daemon=True).start()

    def watch_for(self, text: bytes) -> None:
        """Note the next time that this text passes."""
        with self._lock:
            self._text, self._tail, self.seen_s = text, b"", None

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            board = socket.create_connection(self._upstream)
            for source, sink, note in ((board, client, self._note), (client, board, None)):
                pump = threading.Thread(target=_pump, args=(source, sink, note), daemon=True)
                pump.start()

    def _note(self, data: bytes) -> None:
        with self._lock:
            self.last_s = time.monotonic()
            if self._text and self.seen_s is None:
                if self._text in (tail := self._tail + data):
                    self.seen_s = self.last_s
                self._tail = tail[-len(self._text) :]


def _pump(source: socket.socket, sink: socket.socket, note: Callable[[bytes], None] | None) -> None:
    with source, sink, contextlib.suppress(OSError):
        while data := source.recv(65536):
            if note:
                note(data)
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def tapped(lease: Lease, tap: Tap, **keys: str) -> Iterator[NetbootStrategy]:
    """The lab's strategy with its serial line through the tap, and other keys of its own."""
    env = environment.load(environment.find(f"{BOARD}.yaml"), lease.state["environment"])
    target = env.config.data["targets"]["main"]
    changes: dict[str, dict[str, Any]] = {
        "NetworkSerialPort": {"host": "127.0.0.1", "port": tap.port},
        "NetbootStrategy": keys,
    }
    for section in ("resources", "drivers"):
        for name, arguments in environment.entries(target[section]):
            arguments.update(changes.get(name, {}))
    strategy = env.get_target().get_driver("NetbootStrategy", activate=False)
    try:
        yield strategy
        strategy.transition(Status.off)
    finally:
        env.cleanup()


def error_of(wait: Callable[[], object]) -> tuple[HilError, float]:
    """The error with which waiting ends, and when."""
    try:
        wait()
    except HilError as error:
        return error, time.monotonic()
    raise SystemExit("the board went on as if nothing had happened")


def faults(lease: Lease, tap: Tap, times: int) -> dict[str, list[float]]:
    """Seconds from the fault's line to the error, for each fault."""
    seconds: dict[str, list[float]] = {"panic": [], "oops": [], "reset": []}
    kinds = {
        "panic": (PANIC, b"Kernel panic - not syncing", "panic"),
        "oops": (OOPS, b"Internal error: Oops", "oops"),
        "reset": (RESET, b"U-Boot 20", "reset_loop"),
    }
    with tapped(lease, tap) as strategy, tempfile.TemporaryDirectory() as directory:
        bench = Bench(strategy.target, Path(directory))

        def interrupt(finding: Finding) -> None:
            if finding.severity != "warning":
                error = failure.of_finding(finding)
                bench.interrupt(error, dead=finding.severity == "fatal")

        def of_command(script: str) -> tuple[HilError, float]:
            return error_of(lambda: bench.board.run(["sh", "-c", f"{script}\nsleep {PATIENCE_S}"]))

        def of_console(script: str) -> tuple[HilError, float]:
            # what ends the command in the end is not part of the waiting
            with bench.board.start(["sh", "-c", script]):
                return error_of(
                    lambda: bench.monitor.expect("what no board says", timeout=PATIENCE_S)
                )

        for number in range(times):
            for name, (script, line, category) in kinds.items():
                strategy.give_up()
                bench.require(Status.ssh)
                tap.watch_for(line)
                bench.monitor.subscribe(interrupt)
                error, raised_s = (of_command if name == "oops" else of_console)(script)
                bench.monitor.unsubscribe(interrupt)
                if not str(error).startswith(category) or tap.seen_s is None:
                    raise SystemExit(f"{name}: another error: {error}")
                seconds[name].append(raised_s - tap.seen_s)
                print(f"{name} {number + 1}: {seconds[name][-1]:.3f} s: {error}", flush=True)
        bench.close()
    return seconds


def silences(lease: Lease, tap: Tap, times: int) -> list[float]:
    """Seconds from the end of the limit to the error, for a kernel that says nothing."""
    shelf = Path(hil.__file__).parent / "boards/data"
    profile = yaml.safe_load((shelf / f"{BOARD}.yaml").read_text())
    profile["console"]["device"] = "ttyS9"
    limits = {"deadline": PATIENCE_S, "silence": SILENCE_LIMIT_S}
    profile["phases"] = profile.get("phases", {}) | {"uboot_handover": limits}
    seconds = []
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(profile, file)
        file.flush()
        with tapped(lease, tap, board=file.name) as strategy:
            for number in range(times):
                error, raised_s = error_of(lambda: strategy.transition(Status.ssh))
                if not str(error).startswith("kernel_silent in uboot_handover"):
                    raise SystemExit(f"silence: another error: {error}")
                seconds.append(raised_s - tap.last_s - SILENCE_LIMIT_S)
                print(f"silence {number + 1}: {seconds[-1]:.3f} s: {error}", flush=True)
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=10)
    times = parser.parse_args().times
    assets.prepare(Cache())
    lease = supervisor.up(f"bench-{os.getpid()}", BOARD, owned=True)
    serial = urlparse(f"//{lease.state['serial']}")
    assert serial.hostname and serial.port
    tap = Tap((serial.hostname, serial.port))
    try:
        seconds = faults(lease, tap, times)
        silence = silences(lease, tap, times)
    finally:
        tap.close()
        lease.end()
    figures: dict[str, Any] = {"benchmark": Path(__file__).stem, "board": BOARD, "times": times}
    for name, values in {**seconds, "silence": silence}.items():
        figures[f"{name}_median_s"] = round(statistics.median(values), 3)
        figures[f"{name}_max_s"] = round(max(values), 3)
    figures |= {
        "bound_median_s": BOUND_MEDIAN_S,
        "bound_max_s": BOUND_MAX_S,
        "bound_silence_max_s": BOUND_SILENCE_S,
    }
    figures["ok"] = max(silence) <= BOUND_SILENCE_S and all(
        statistics.median(values) <= BOUND_MEDIAN_S and max(values) <= BOUND_MAX_S
        for values in seconds.values()
    )
    print(json.dumps(figures))
    return 0 if figures["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
