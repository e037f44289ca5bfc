"""Real faults of real kernels, each attached to the test in which it happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import needs_root
from tests.virtual.suite import Session, run_suite

pytestmark = needs_root

SUITE = Path(__file__).parent / "suites/faults.py"
# test -> category, driver and function of the finding that fails it
FAULTS = {
    "test_driver_warns": ("warn", "igb", "igb_rd32"),
    "test_oops": ("oops", "rtw89_core", "rtw89_alloc_ieee80211_hw"),
    "test_hung_task": ("hung_task", None, "anon_pipe_prefill_and_lock"),
    "test_reset": ("reset_loop", None, None),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return run_suite(tmp_path_factory.mktemp("faults"), SUITE.read_text())


def test_all_tests_ran_and_only_the_faults_failed(session: Session) -> None:
    outcomes = session.outcomes()
    assert {name for name, outcome in outcomes.items() if outcome != "passed"} == set(FAULTS)
    assert {outcomes[name] for name in FAULTS} == {"failed"}
    assert session.status == 1


@pytest.mark.parametrize("test", FAULTS)
def test_fault_is_told_with_its_place(session: Session, test: str) -> None:
    [finding] = [one for one in session.findings(test) if one["severity"] != "warning"]
    told = tuple(finding[key] for key in ("category", "driver", "function"))
    assert told == FAULTS[test]
    assert session.log_lines()[finding["line_number"] - 1].endswith(finding["line"])
