"""How fast `hil classify` reads a 100 MB console log on one core, and how much memory that takes.

Two logs are made of what was recorded. `night` is a board that boots and is tested again and again,
with one failure of tests/data/cases, chosen at random, in each round: the bounds are for this one.
`failures` is nothing but failures, back to back, where each line counts; it has no bound. The last
line is a JSON object with the figures and their bounds.

    .venv/bin/python benchmarks/classify_throughput.py [--megabytes 100] [--runs 3]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).parent.parent
CASES = PROJECT / "tests/data/cases"
SESSION = PROJECT / "tests/data/sessions/virtual-arm64.txt"
MEGABYTE = 1_000_000
BOUND_MB_PER_S = 30
BOUND_MB = 200


def write_log(path: Path, size: int, session: bytes) -> None:
    """The session and a failure, in turns, up to `size` bytes."""
    choose = random.Random(1)
    failures = [log.read_bytes() for log in sorted(CASES.glob("*.txt"))]
    written = 0
    with path.open("wb") as file:
        while written < size:
            written += file.write(session)
            written += file.write(choose.choice(failures))


def run(path: Path) -> tuple[float, float, dict[str, object]]:
    """Seconds, peak resident MB and verdict of one `hil classify`, on one core."""
    read, write = os.pipe()
    start = time.monotonic()
    argv = [sys.executable, "-m", "hil.cli.main", "classify", "--json", str(path)]
    pid = os.fork()
    if pid == 0:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.dup2(write, 1)
        os.execv(argv[0], argv)
    os.close(write)
    with os.fdopen(read, "rb") as output:
        text = output.read()
    _, _, usage = os.wait4(pid, 0)
    return time.monotonic() - start, usage.ru_maxrss * 1024 / MEGABYTE, json.loads(text)


def measure(name: str, size: int, session: bytes, runs: int) -> tuple[float, float]:
    """Median rate in MB/s and peak memory in MB."""
    rates, memory = [], 0.0
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"{name}.log"
        write_log(path, size, session)
        megabytes = path.stat().st_size / MEGABYTE
        for number in range(runs):
            seconds, peak, verdict = run(path)
            rates.append(megabytes / seconds)
            memory = max(memory, peak)
            print(
                f"{name}, run {number + 1}: {megabytes:.0f} MB in {seconds:.2f} s, "
                f"peak {peak:.0f} MB, {verdict['verdict']} ({verdict['category']})",
                flush=True,
            )
    return statistics.median(rates), memory


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    size = arguments.megabytes * MEGABYTE
    night, memory = measure("night", size, SESSION.read_bytes(), arguments.runs)
    failures, memory_failures = measure("failures", size // 5, b"", arguments.runs)
    figures = {
        "benchmark": Path(__file__).stem,
        "log_mb": arguments.megabytes,
        "runs": arguments.runs,
        "mb_per_s": round(night, 1),
        "bound_mb_per_s": BOUND_MB_PER_S,
        "failures_mb_per_s": round(failures, 1),
        "peak_mb": round(max(memory, memory_failures)),
        "bound_mb": BOUND_MB,
        "ok": night >= BOUND_MB_PER_S and max(memory, memory_failures) <= BOUND_MB,
    }
    print(json.dumps(figures))
    return 0 if figures["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
