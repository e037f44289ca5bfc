"""What the framework adds to a boot: power-on to shell by the strategy and by a bare serial script.

Both boot the same virtual board with the same files, alternating; the last line is a JSON object
with the medians, their ratio and its bound.

    .venv/bin/python benchmarks/boot_overhead.py [--boots 5]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import sys
import time
from pathlib import Path
from urllib.parse import urlparse

import requests
from labgrid import Environment

from hil import environment
from hil.boards.load import load_board
from hil.strategies import recipe
from hil.strategies.netboot import NetbootStrategy, Status
from hil.virtual import assets, supervisor
from hil.virtual.cache import Cache

BOARD = "virtual-arm64"
BOUND = 1.10


def boot_bare(power: str, address: tuple[str, int], lines: list[str], boot: str) -> float:
    """Boot by writing lines and looking for prompts; seconds from power-on to shell."""
    with socket.create_connection(address) as port:
        buffer = b""

        def expect(pattern: bytes) -> None:
            nonlocal buffer
            while not (match := re.search(pattern, buffer)):
                data = port.recv(65536)
                if not data:
                    raise SystemExit("the serial port was closed")
                buffer += data
            buffer = buffer[match.end() :]

        start = time.monotonic()
        requests.put(power, data=b"1", timeout=10).raise_for_status()
        expect(rb"stop autoboot")
        port.sendall(b"\n")
        for line in lines:
            expect(rb"\n?=> ")
            port.sendall(line.encode() + b"\n")
        expect(rb"=> ")
        port.sendall(boot.encode() + b"\n")
        expect(rb"login: ")
        port.sendall(b"root\n")
        expect(rb"[-\w@:~.]*# ")
        return time.monotonic() - start


def boot_strategy(env: Environment) -> float:
    """Boot by the strategy, with labgrid's drivers; seconds from power-on to shell."""
    strategy: NetbootStrategy = env.get_target().get_driver("NetbootStrategy", activate=False)
    strategy.transition(Status.off)
    start = time.monotonic()
    strategy.transition(Status.shell)
    seconds = time.monotonic() - start
    strategy.transition(Status.off)
    env.get_target().deactivate(strategy.console)
    return seconds


def recorded_lines(strategy: NetbootStrategy) -> tuple[list[str], str]:
    """What the strategy types, for the bare script: the same files under the same names."""
    payload = strategy._stage()
    lines = [step.command for step in recipe.steps(strategy.profile, payload)]
    return lines, recipe.boot_line(strategy.profile, payload)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--boots", type=int, default=5)
    boots = parser.parse_args().boots
    assets.prepare(Cache())
    lease = supervisor.up(f"bench-{os.getpid()}", BOARD, owned=True)
    try:
        state = lease.state
        env = environment.load(environment.find(f"{BOARD}.yaml"), state["environment"])
        strategy = env.get_target().get_driver("NetbootStrategy", activate=False)
        serial = urlparse(f"//{state['serial']}")
        lines, boot = recorded_lines(strategy)
        seconds: dict[str, list[float]] = {"strategy": [], "bare": []}
        for number in range(boots):
            seconds["strategy"].append(boot_strategy(env))
            seconds["bare"].append(
                boot_bare(state["power"], (serial.hostname, serial.port), lines, boot)
            )
            requests.put(state["power"], data=b"0", timeout=10).raise_for_status()
            print(
                f"boot {number + 1}: strategy {seconds['strategy'][-1]:.2f} s, "
                f"bare {seconds['bare'][-1]:.2f} s",
                flush=True,
            )
    finally:
        lease.end()
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    ratio = medians["strategy"] / medians["bare"]
    figures = {
        "benchmark": Path(__file__).stem,
        "board": load_board(BOARD).name,
        "boots": boots,
        "strategy_s": round(medians["strategy"], 2),
        "bare_s": round(medians["bare"], 2),
        "ratio": round(ratio, 3),
        "bound": BOUND,
        "ok": ratio <= BOUND,
    }
    print(json.dumps(figures))
    return 0 if figures["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
