"""How fast `hil classify` reads a 100 MB console log on one core, and how much memory that takes.

The log is made of the recorded logs in tests/data/cases, in a seeded random order, with the quiet
lines of good boots between them. The last line is a JSON object with the figures and their bounds.

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
MEGABYTE = 1_000_000
BOUND_MB_PER_S = 30
BOUND_MB = 200
# What a board says all night while nothing is wrong: most of a long log.
QUIET_SHARE = 0.8


def write_log(path: Path, size: int) -> None:
    """Recorded logs in random order, four fifths of it lines of a board that is well."""
    choose = random.Random(1)
    logs = [log.read_bytes() for log in sorted(CASES.glob("*.txt"))]
    written, quiet, seconds = 0, 0, 0.0
    with path.open("wb") as file:
        while written < size:
            if quiet < written * QUIET_SHARE:
                block = b""
                for _ in range(1000):
                    seconds += choose.random()
                    unit, errors = choose.randrange(100), choose.randrange(1 << 20)
                    block += (
                        b"[%12.6f] igb 0000:0%d:00.0 eth%d: queue %d: %d packets, ring 0x%08x\r\n"
                        % (seconds, unit % 4, unit % 4, unit % 8, errors, errors * 64)
                    )
                quiet += len(block)
            else:
                block = choose.choice(logs)
            written += file.write(block)


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


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    rates, memory = [], 0.0
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "console.log"
        write_log(path, arguments.megabytes * MEGABYTE)
        size = path.stat().st_size / MEGABYTE
        for number in range(arguments.runs):
            seconds, peak, verdict = run(path)
            rates.append(size / seconds)
            memory = max(memory, peak)
            print(
                f"run {number + 1}: {size:.0f} MB in {seconds:.2f} s, peak {peak:.0f} MB, "
                f"{verdict['verdict']} ({verdict['category']})",
                flush=True,
            )
    rate = statistics.median(rates)
    figures = {
        "benchmark": Path(__file__).stem,
        "log_mb": round(size),
        "runs": arguments.runs,
        "mb_per_s": round(rate, 1),
        "bound_mb_per_s": BOUND_MB_PER_S,
        "peak_mb": round(memory),
        "bound_mb": BOUND_MB,
        "ok": rate >= BOUND_MB_PER_S and memory <= BOUND_MB,
    }
    print(json.dumps(figures))
    return 0 if figures["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
