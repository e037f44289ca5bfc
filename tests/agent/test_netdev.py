"""Netlink messages taken apart: real ones, and cut ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hil.agent.netdev import attribute, attributes, messages


@given(st.lists(st.tuples(st.integers(1, 500), st.binary(max_size=40)), max_size=8))
def test_attributes_round_trip(pairs: list[tuple[int, bytes]]) -> None:
    data = b"".join(attribute(kind, value) for kind, value in pairs)
    assert list(attributes(data)) == pairs


@given(st.binary(max_size=200))
def test_garbage_never_hangs_nor_raises(data: bytes) -> None:
    assert len(list(attributes(data))) <= len(data) // 4
    assert len(list(messages(data))) <= len(data) // 16


def test_flag_bits_are_no_part_of_the_type() -> None:
    """IFLA_XDP comes with the flag for nested attributes, as the kernel sends it."""
    xdp = bytes.fromhex("0c002b80" + "05000200" + "01000000")
    ((kind, value),) = attributes(xdp)
    assert kind == 43
    assert list(attributes(value)) == [(2, b"\x01")]
