"""Test frames through an AF_XDP socket, each accounted for."""

from __future__ import annotations

import errno
import time
from collections import Counter
from typing import Any

from .events import Refused, Stop, name
from .frames import Tally
from .pace import Pace, reception
from .xsk import XskSocket

_BATCH = 64
# The kernel sends at most 32 frames a call in copy mode; a call without progress waits for the NIC.
_RETRY_S = 0.001
# How long sent frames may take to be given back, after the last one was.
_COMPLETION_TIMEOUT_S = 5.0


def receive(xsk: XskSocket, tally: Tally, timeout_s: float, stop: Stop) -> None:
    """Account for frames until all have come, the time is over, or it is asked to stop."""
    for _ in reception(tally, timeout_s, stop):
        descriptors = xsk.rx.consume(_BATCH)
        if not descriptors:
            xsk.wait_readable(0.02)
            continue
        for address, length in zip(descriptors[::2], descriptors[1::2]):
            tally.add(bytes(xsk.data[address : address + (length & 0xFFFFFFFF)]))
        xsk.fill.produce(descriptors[::2])
        if xsk.fill.needs_wakeup:
            xsk.wait_readable(0)


def send(
    xsk: XskSocket, batch: list[bytes], pace: Pace, timeout_s: float, stop: Stop
) -> dict[str, Any]:
    """Send frames in order and wait until the kernel has given all of them back.

    Refused when a frame does not fit into a chunk: it would lie over its neighbour.
    """
    if batch and len(batch[0]) > xsk.chunk_bytes:
        reason = f"frames of {len(batch[0])} bytes do not fit {xsk.chunk_bytes} byte chunks"
        raise Refused("send", errno.EMSGSIZE, reason)
    size = xsk.ring_size
    free = [(size + number) * xsk.chunk_bytes for number in range(size)]
    submitted = completed = kicks = 0
    busy: Counter[str] = Counter()
    progress = time.monotonic()
    end = progress + timeout_s
    while completed < len(batch) and not stop and time.monotonic() < end:
        room = min(len(batch) - submitted, len(free), size - xsk.tx.filled, _BATCH)
        if room > 0:
            count = pace.allowed(room)
            _submit(xsk, batch[submitted : submitted + count], free)
            submitted += count
        if number := xsk.kick():
            busy[name(number)] += 1
        kicks += 1
        returned = xsk.completion.consume(size)
        free += returned
        completed += len(returned)
        if returned or room > 0:
            progress = time.monotonic()
        elif time.monotonic() - progress > _COMPLETION_TIMEOUT_S:
            break
        else:
            time.sleep(_RETRY_S)
    return {"frames": submitted, "completed": completed, "kicks": kicks, "kick_errors": busy}


def _submit(xsk: XskSocket, batch: list[bytes], free: list[int]) -> None:
    words = []
    for frame in batch:
        address = free.pop()
        xsk.data[address : address + len(frame)] = frame
        words += [address, len(frame)]
    xsk.tx.produce(words)
