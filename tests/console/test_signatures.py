"""The signatures' data: each example is found by its own signature, and bad data is refused."""

from __future__ import annotations

import pytest

from hil.console import signatures
from hil.console.classify import Classifier
from hil.console.signatures import Signature
from hil.errors import ConfigError

EXAMPLES = [
    pytest.param(one.category, text, id=f"{one.category}-{index}")
    for one in signatures.load().signatures
    for index, text in enumerate(one.examples)
]


@pytest.mark.parametrize(("category", "text"), EXAMPLES)
def test_example_is_found(category: str, text: str) -> None:
    classifier = Classifier()
    classifier.feed(text.encode() + b"\n")
    verdict = classifier.verdict()
    assert category in {finding.category for finding in verdict.findings}


@pytest.mark.parametrize("one", signatures.load().signatures, ids=lambda one: one.category)
def test_every_signature_has_an_example(one: Signature) -> None:
    assert one.examples


def data(**changes: str) -> str:
    entry = {
        "category": "made_up",
        "severity": "error",
        "blame": "lab",
        "weight": "1",
        "pattern": "x",
    } | changes
    lines = "".join(f"    {key}: {value}\n" for key, value in entry.items())
    return (
        "phases: []\nevents: {}\nfacts: {}\nreports: []\ndevice_drivers: {}\nsignatures:\n  -\n"
        + lines
    )


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"severity": "grave"}, "made_up: severity: 'grave'; there are fatal, error, warning"),
        ({"blame": "nobody"}, "made_up: blame: 'nobody'"),
        ({"pattern": "'('"}, r"signatures\[0\]: "),
        ({"colour": "red"}, r"signatures\[0\]: .*colour"),
        ({"until": "never"}, "made_up: until: no event 'never'"),
        ({"facts": "[nothing]"}, "made_up: facts: no fact 'nothing'"),
    ],
)
def test_bad_data_is_named(changes: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        signatures.parse(data(**changes), "mine.yaml")


def test_good_data_is_read() -> None:
    read = signatures.parse(data(), "mine.yaml")
    assert [one.category for one in read.signatures] == ["made_up"]
