"""The power unit, driven by labgrid's own backend for its model `rest`."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlparse

import pytest
import requests
from labgrid.driver.power import rest

from hil.errors import LabError
from hil.virtual.pdu import Pdu


class Lamp:
    """An outlet with nothing but a switch; `broken` makes it refuse."""

    def __init__(self) -> None:
        self.powered = False
        self.broken = False

    def on(self) -> None:
        if self.broken:
            raise LabError("the lamp is broken")
        self.powered = True

    def off(self) -> None:
        self.powered = False


@pytest.fixture
def lamp() -> Lamp:
    return Lamp()


@pytest.fixture
def url(lamp: Lamp) -> Iterator[str]:
    pdu = Pdu({1: lamp})
    pdu.start()
    yield f"http://127.0.0.1:{pdu.port}/outlet/{{index}}"
    pdu.stop()


def test_labgrid_switches_and_reads_back(url: str, lamp: Lamp) -> None:
    assert rest.power_get(url, None, "1") is False
    rest.power_set(url, None, "1", True)
    assert lamp.powered
    assert rest.power_get(url, None, "1") is True
    rest.power_set(url, None, "1", False)
    assert not lamp.powered


def test_unknown_outlet_is_refused(url: str) -> None:
    with pytest.raises(requests.HTTPError, match="404"):
        rest.power_set(url, None, "7", True)


def test_other_bodies_are_refused(url: str, lamp: Lamp) -> None:
    answer = requests.put(url.format(index=1), data=b"on", timeout=5)
    assert answer.status_code == 400
    assert not lamp.powered


def test_a_failing_outlet_tells_why(url: str, lamp: Lamp) -> None:
    lamp.broken = True
    answer = requests.put(url.format(index=1), data=b"1", timeout=5)
    assert (answer.status_code, answer.text) == (500, "the lamp is broken")


def test_a_silent_client_does_not_block_for_ever(url: str) -> None:
    with socket.create_connection(("127.0.0.1", urlparse(url).port or 0)):
        assert rest.power_get(url, None, "1") is False
