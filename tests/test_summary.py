"""The table at the end of a run."""

from __future__ import annotations

from hil.results.summary import table


def test_one_suite_has_no_total() -> None:
    assert table([("boot", "pass"), ("boot", "pass"), ("boot", "lab error")]) == [
        "suite  pass  fail  lab error  unsupported  skip  not run",
        "boot      2     -          1            -     -        -",
    ]


def test_suites_keep_their_order_and_add_up() -> None:
    lines = table([("xdp", "fail"), ("boot", "pass"), ("xdp", "not run"), ("boot", "unsupported")])
    assert [line.split()[0] for line in lines] == ["suite", "xdp", "boot", "all"]
    assert lines[-1].split() == ["all", "suites", "1", "1", "-", "1", "-", "1"]
