"""The agent as it is shipped, on a veth pair between two namespaces of this machine's kernel."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hil import agent
from hil.agent import frames
from hil.clock import Deadline, wait_until
from hil.virtual.partner import inside
from tests.conftest import needs_root

pytestmark = needs_root

Event = dict[str, Any]
COUNT = 1000


class Link:
    """Two namespaces with a veth between them; `a` is the end under test."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        token = uuid.uuid4().hex[:6]
        self.a, self.b = f"hil-a-{token}", f"hil-b-{token}"

    def open(self) -> None:
        for name in (self.a, self.b):
            ip("netns", "add", name)
        ip("-n", self.a, "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", self.b)
        ip("-n", self.a, "link", "set", "v0", "up")
        ip("-n", self.b, "link", "set", "v1", "up")

    def close(self) -> None:
        for name in (self.a, self.b):
            ip("netns", "delete", name)

    def argv(self, namespace: str, *arguments: str | int) -> list[str]:
        inner = [sys.executable, str(self.archive), *map(str, arguments)]
        return ["ip", "netns", "exec", namespace, *inner]

    def run(self, namespace: str, *arguments: str | int) -> tuple[int, list[Event]]:
        done = subprocess.run(
            self.argv(namespace, *arguments), capture_output=True, text=True, check=False
        )
        assert not done.stderr, done.stderr
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def start(self, namespace: str, *arguments: str | int) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        argv = self.argv(namespace, *arguments)
        return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def mac(self, namespace: str, ifname: str) -> str:
        return str(self.run(namespace, "probe", "--ifname", ifname)[1][0]["mac"])


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return agent.build(tmp_path_factory.mktemp("agent"))


@pytest.fixture
def link(archive: Path) -> Iterator[Link]:
    link = Link(archive)
    link.open()
    yield link
    link.close()


@pytest.fixture(params=["skb", "native"])
def xdp(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def next_event(process: subprocess.Popen[str]) -> Event:
    assert process.stdout is not None
    event: Event = json.loads(process.stdout.readline())
    return event


def order(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def stream(size: int = 64, count: int = COUNT, timeout: float = 20) -> list[str | int]:
    return ["--count", count, "--frame-size", size, "--stream", 5, "--timeout", timeout]


def words(options: list[str | int]) -> str:
    return " ".join(map(str, options))


def test_the_archive_tells_its_content(tmp_path: Path, archive: Path) -> None:
    again = agent.build(tmp_path)
    assert again.name == archive.name
    assert again.read_bytes() == archive.read_bytes()


def test_probe(link: Link) -> None:
    status, (event,) = link.run(link.a, "probe", "--ifname", "v0")
    assert status == 0
    assert event["driver"] == "veth"
    assert event["carrier"] is True
    assert "redirect" in event["xdp_features"]


def test_unknown_interface_is_one_refusal(link: Link) -> None:
    status, (event,) = link.run(link.a, "probe", "--ifname", "eth9")
    assert status == 4
    assert event["reason"].startswith("eth9: no such interface; there are lo")


def test_bind_proves_its_mode(link: Link, xdp: str) -> None:
    status, (event,) = link.run(
        link.a, "bind", "--ifname", "v0", "--xdp", xdp, "--bind", "copy", "--queue", 0
    )
    assert (status, event["mode"], event["xdp_mode"]) == (0, "copy", xdp)


def test_auto_tells_what_it_got(link: Link) -> None:
    _, (event,) = link.run(link.a, "bind", "--ifname", "v0", "--xdp", "native", "--bind", "auto")
    assert (event["asked"], event["mode"]) == ("auto", "copy")


def test_zero_copy_is_refused_by_the_kernel(link: Link) -> None:
    """veth has no zero copy: the kernel's answer is the reason, and it counts as unsupported."""
    status, (event,) = link.run(
        link.a, "bind", "--ifname", "v0", "--xdp", "native", "--bind", "zero-copy"
    )
    assert status == 3
    assert (event["event"], event["errno"], event["stage"]) == ("refused", "EOPNOTSUPP", "bind")
    assert "driver veth" in event["reason"]


def test_interface_that_is_down(link: Link) -> None:
    ip("-n", link.a, "link", "set", "v0", "down")
    status, (event,) = link.run(link.a, "bind", "--ifname", "v0", "--xdp", "skb", "--bind", "copy")
    assert (status, event["errno"]) == (4, "ENETDOWN")


def test_taken_queue_is_busy_after_the_time_out(link: Link) -> None:
    options = ["--ifname", "v0", "--xdp", "skb", "--bind", "copy"]
    with link.start(link.a, "session", *options) as holder:
        assert next_event(holder)["event"] == "ready"
        status, (event,) = link.run(link.a, "bind", *options, "--busy-timeout", 0.2)
        assert (status, event["errno"]) == (4, "EBUSY")
        assert holder.stdin is not None
        holder.stdin.close()
        assert holder.wait(10) == 0


@pytest.mark.parametrize("size", [64, 1500])
def test_receive(link: Link, xdp: str, size: int) -> None:
    options = ["--ifname", "v0", "--xdp", xdp, "--bind", "copy"]
    with link.start(link.a, "session", *options) as session:
        mac = next_event(session)["mac"]
        order(session, f"recv {words(stream(size))}")
        assert next_event(session)["event"] == "receiving"
        status, _ = link.run(
            link.b, "packet-send", "--ifname", "v1", "--dst", mac, "--rate", 5000, *stream(size)
        )
        assert status == 0
        received = next_event(session)
        assert received["frames"] == COUNT
        assert all(received[kind]["count"] == 0 for kind in ("missing", "corrupt", "duplicates"))
        assert session.stdin is not None
        session.stdin.close()
        assert session.wait(10) == 0


@pytest.mark.parametrize("size", [64, 1500])
def test_transmit(link: Link, xdp: str, size: int) -> None:
    mac = link.mac(link.b, "v1")
    with link.start(link.b, "packet-recv", "--ifname", "v1", *stream(size)) as receiver:
        assert next_event(receiver)["event"] == "ready"
        options = ["--ifname", "v0", "--xdp", xdp, "--bind", "copy"]
        with link.start(link.a, "session", *options) as session:
            assert next_event(session)["event"] == "ready"
            order(session, f"send {words(stream(size))} --dst {mac} --rate 5000")
            sent = next_event(session)
            assert (sent["frames"], sent["completed"]) == (COUNT, COUNT)
            assert sent["rings"]["tx"]["producer"] == sent["rings"]["tx"]["consumer"] == COUNT
            session.terminate()
        received = next_event(receiver)
        assert received["frames"] == COUNT
        assert receiver.wait(10) == 0


def test_damage_on_the_way_is_found(link: Link) -> None:
    """One frame is lost, one doubled, one changed, two swapped; all others pass."""
    options = ["--ifname", "v0", "--xdp", "native", "--bind", "copy"]
    with link.start(link.a, "session", *options) as session:
        mac = bytes.fromhex(next_event(session)["mac"].replace(":", ""))
        order(session, f"recv {words(stream(count=20, timeout=2))}")
        assert next_event(session)["event"] == "receiving"
        batch = [frames.build(5, number, 64, mac, bytes(6)) for number in range(20)]
        broken = bytearray(batch[7])
        broken[50] ^= 1
        batch[7] = bytes(broken)
        batch[10], batch[11] = batch[11], batch[10]
        batch.insert(15, batch[15])
        del batch[3]
        with inside(link.b), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind(("v1", frames.ETHERTYPE))
            for frame in batch:
                sender.send(frame)
        received = next_event(session)
        session.terminate()
    assert received["missing"]["first"] == [3]
    assert received["duplicates"]["first"] == [15]
    assert received["reordered"]["first"] == [10]
    assert [(bad["sequence"], bad["offset"]) for bad in received["corrupt"]["first"]] == [(7, 50)]


def test_other_traffic_passes_the_program(link: Link) -> None:
    ip("-n", link.a, "address", "add", "192.0.2.1/24", "dev", "v0")
    ip("-n", link.b, "address", "add", "192.0.2.2/24", "dev", "v1")
    options = ["--ifname", "v0", "--xdp", "native", "--bind", "copy"]
    with link.start(link.a, "session", *options) as session:
        assert next_event(session)["event"] == "ready"
        with inside(link.b), socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.settimeout(5)
            # refused by the other host's stack: so the question came through and so did the answer
            assert client.connect_ex(("192.0.2.1", 9)) != 0
        neighbours = subprocess.run(
            ["ip", "-n", link.b, "neigh", "show", "192.0.2.1"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert "lladdr" in neighbours
        session.terminate()


def attached(link: Link) -> bool:
    show = ["ip", "-n", link.a, "link", "show", "dev", "v0"]
    return "xdp" in subprocess.run(show, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_program_is_left_behind(link: Link, number: signal.Signals) -> None:
    options = ["--ifname", "v0", "--xdp", "native", "--bind", "copy"]
    with link.start(link.a, "session", *options) as session:
        assert next_event(session)["event"] == "ready"
        assert attached(link)
        session.send_signal(number)
        session.wait(10)
    assert wait_until(lambda: not attached(link), deadline=Deadline(5))


def test_terminated_receiver_tells_what_it_has(link: Link) -> None:
    with link.start(link.b, "packet-recv", "--ifname", "v1", *stream()) as receiver:
        assert next_event(receiver)["event"] == "ready"
        receiver.terminate()
        assert next_event(receiver)["missing"]["count"] == COUNT
        assert receiver.wait(10) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        ["--dst", "zz"],
        ["--dst", "02:00:00:00:01"],
        ["--stream", 1 << 32],
        ["--count", 0],
        ["--frame-size", 59],
    ],
    ids=str,
)
def test_wrong_arguments_are_usage_and_no_measurement(
    archive: Path, wrong: list[str | int]
) -> None:
    right = ["--ifname", "lo", "--dst", "02:00:00:00:00:01", *stream()]
    argv = [sys.executable, str(archive), "packet-send", *map(str, [*right, *wrong])]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert wrong[0] in done.stderr.splitlines()[-1]


def test_without_permission_is_an_environment_error(archive: Path) -> None:
    """Never status 1, which would count as lost frames."""
    argv = [sys.executable, str(archive), "packet-recv", "--ifname", "lo", *map(str, stream())]
    drop = ["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"]
    done = subprocess.run([*drop, *argv], capture_output=True, text=True, check=False)
    event = json.loads(done.stdout)
    assert (done.returncode, event["event"], event["errno"]) == (4, "refused", "EPERM")
    assert not done.stderr


def test_reader_that_went_away(archive: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    argv = [sys.executable, str(archive), "probe", "--ifname", "lo"]
    done = subprocess.run(argv, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (4, b"")


def test_second_copy_of_the_last_frame_is_found(link: Link) -> None:
    options = ["--ifname", "v0", "--xdp", "native", "--bind", "copy"]
    with link.start(link.a, "session", *options) as session:
        mac = bytes.fromhex(next_event(session)["mac"].replace(":", ""))
        order(session, f"recv {words(stream(count=3))}")
        assert next_event(session)["event"] == "receiving"
        with inside(link.b), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind(("v1", frames.ETHERTYPE))
            for number in (0, 1, 2, 2):
                sender.send(frames.build(5, number, 64, mac, bytes(6)))
        assert next_event(session)["duplicates"]["first"] == [2]
        session.terminate()


def test_frame_that_fits_no_chunk_is_refused(link: Link) -> None:
    for end, ifname in ((link.a, "v0"), (link.b, "v1")):
        ip("-n", end, "link", "set", ifname, "mtu", "9000")
    options = ["--ifname", "v0", "--xdp", "skb", "--bind", "copy"]
    with link.start(link.a, "session", *options) as session:
        assert next_event(session)["event"] == "ready"
        order(session, f"send {words(stream(5000))} --dst 02:00:00:00:00:01")
        assert next_event(session)["errno"] == "EMSGSIZE"
        assert session.wait(10) == 4


# Holds queue 0 with a socket but without a program, so that only bind() can be refused.
_HOLD = """
import os, sys
from hil_agent.xsk import XskSocket
xsk = XskSocket("v0", 0, xdp="skb", bind="copy")
os.close(xsk._descriptors.pop())
print("{}", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def held(link: Link) -> Iterator[subprocess.Popen[str]]:
    argv = ["ip", "netns", "exec", link.a, "env", f"PYTHONPATH={link.archive}"]
    pipe = subprocess.PIPE
    holder = subprocess.Popen(
        [*argv, sys.executable, "-c", _HOLD], stdin=pipe, stdout=pipe, text=True
    )
    with holder:
        assert next_event(holder) == {}
        yield holder
        assert holder.stdin is not None
        holder.stdin.close()


BIND = ["bind", "--ifname", "v0", "--xdp", "skb", "--bind", "copy", "--busy-timeout"]


def test_held_queue_refuses_the_bind(link: Link, held: subprocess.Popen[str]) -> None:
    status, (event,) = link.run(link.a, *BIND, 0.3)
    assert (status, event["errno"], event["stage"]) == (4, "EBUSY", "bind")
    assert "another socket holds the queue" in event["reason"]


def test_bind_waits_for_a_queue_that_gets_free(link: Link, held: subprocess.Popen[str]) -> None:
    with link.start(link.a, *BIND, 20) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1)
        assert held.stdin is not None
        held.stdin.close()
        event = next_event(waiting)
        assert waiting.wait(5) == 0
    assert event["mode"] == "copy" and event["bind_waited_s"] > 0


def test_termination_ends_the_wait(link: Link, held: subprocess.Popen[str]) -> None:
    with link.start(link.a, *BIND, 60) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1)
        waiting.terminate()
        assert waiting.wait(2) == 4


def test_foreign_program_is_named_at_attach(link: Link) -> None:
    options = ["--ifname", "v0", "--xdp", "skb", "--bind", "copy"]
    with link.start(link.a, "session", *options) as holder:
        assert next_event(holder)["event"] == "ready"
        status, (event,) = link.run(link.a, *BIND, 0.2)
        holder.terminate()
    assert (status, event["errno"], event["stage"]) == (4, "EBUSY", "attach")
    assert "ip link set v0 xdp off" in event["reason"]


def test_no_carrier_is_told_after_the_time_out(link: Link) -> None:
    ip("-n", link.b, "link", "set", "v1", "down")
    options = ["--xdp", "native", "--bind", "copy", "--carrier-timeout", 0.2]
    status, (event,) = link.run(link.a, "bind", "--ifname", "v0", *options)
    assert (status, event["errno"]) == (4, "ENETDOWN")
    assert "no carrier" in event["reason"]
