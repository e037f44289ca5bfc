"""pytest plugin: options, environments by name, virtual labs on demand, verdicts, results.

labgrid's own plugin makes the environment and the target; this one stands around it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from labgrid.pytestplugin.hooks import LABGRID_ENV_KEY

from hil import environment
from hil.bench import Bench
from hil.boards.model import BoardProfile
from hil.console import failure
from hil.console.model import Finding
from hil.console.show import proof
from hil.errors import ConfigError, HilError, LabError
from hil.results import recorder, summary
from hil.results.attribution import BOOT, CRASH_LIMIT, Attribution
from hil.results.known_issues import KnownIssue
from hil.results.progress import BootProgress
from hil.results.recorder import Recorder
from hil.strategies.netboot import Status
from hil.virtual.session import SessionLab

NO_ENVIRONMENT = "needs a board: run `pytest --lg-env virtual-arm64.yaml` (or another environment)"
# After so many boots in a row that the lab spoiled, the rest of the session would only waste time.
LAB_ERROR_LIMIT = 3

RUN_KEY = pytest.StashKey["Run"]()


class Run:
    """One session against an environment."""

    def __init__(
        self, profile: BoardProfile, results: Path, issues: tuple[KnownIssue, ...] = ()
    ) -> None:
        self.profile = profile
        self.recorder = Recorder(results)
        self.lab = SessionLab(profile.name, virtual=profile.virtual is not None)
        self.verdicts: dict[str, str] = {}
        self.lab_errors_in_a_row = 0
        self.attribution = Attribution(issues)
        self.bench: Bench | None = None

    def attach(self, bench: Bench) -> None:
        """Follow a bench's console: its log, its findings, its failures."""
        self.bench = bench
        bench.strategy.learn(self.recorder.directory.parent)
        bench.monitor.subscribe(self._take)
        self.recorder.follow(bench.monitor.set_logs)

    def _take(self, finding: Finding) -> None:
        """From the console's thread: what fails a test ends what it waits for."""
        one = self.attribution.take(finding)
        if self.bench and one.fails and one.owner != BOOT:
            error = failure.of_finding(finding)
            self.bench.interrupt(error, dead=finding.severity == "fatal")

    def settle(self) -> None:
        """Have all that the kernel has said by now."""
        bench = self.bench
        if bench and bench.strategy.status is Status.ssh and bench.monitor.failure is None:
            bench.kernel_log_follower.sync()

    def finding_error(self, owner: str) -> HilError | None:
        """The error for a test during which the console told of a fault."""
        found = self.attribution.failing(owner)
        if not found:
            return None
        fatal = [one for one in found if one.severity == "fatal"]
        return failure.of_finding((fatal or found)[0])


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hil", "hardware-in-the-loop tests")
    group.addoption(
        "--hil-kernel",
        metavar="DIR",
        help="boot the kernel in this artifact directory instead of the environment's",
    )
    group.addoption(
        "--hil-results",
        metavar="DIR",
        default="results",
        help="directory below which each run keeps its logs and JUnit file (default: results)",
    )
    group.addoption(
        "--hil-keep-power",
        action="store_true",
        help="leave the board powered when the session ends",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Find and check the environment before labgrid's plugin reads it."""
    config.addinivalue_line("markers", "suite: a test that runs on a board")
    if config.option.lg_env is None:
        return
    try:
        path = environment.find(config.option.lg_env)
        loaded = environment.load(path)
        profile = environment.board_profile(loaded)
        issues = environment.known_issue_list(loaded)
        kernel = config.option.hil_kernel
        if kernel is not None and not Path(kernel).is_dir():
            raise ConfigError(f"--hil-kernel {kernel}: no such directory")
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None
    config.option.lg_env = str(path)
    results = Path(config.option.hil_results).absolute()
    run = Run(profile, results / recorder.run_name(), issues)
    config.stash[RUN_KEY] = run
    if config.option.xmlpath is None and not config.option.collectonly:
        config.option.xmlpath = str(run.recorder.directory / "junit.xml")
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        config.args[:] = ["testsuites"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each data port of the board; without a board one, which is skipped."""
    if "port_name" in metafunc.fixturenames:
        run = metafunc.config.stash.get(RUN_KEY, None)
        names = [port.name for port in run.profile.ports] if run else ["no-board"]
        metafunc.parametrize("port_name", names, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if suite_of(item.nodeid) is None:
            continue
        item.add_marker(pytest.mark.suite)
        if RUN_KEY not in config.stash:
            item.add_marker(pytest.mark.skip(reason=NO_ENVIRONMENT))


def suite_of(node_id: str) -> str | None:
    """Name of the suite that a test belongs to; None for the framework's own tests."""
    parts = node_id.split("/")
    return parts[1] if parts[0] == "testsuites" and len(parts) > 2 else None


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    run = session.config.stash.get(RUN_KEY, None)
    if run is None or session.config.option.collectonly or not session.items:
        return (yield)
    terminal = _Terminal(session.config)
    progress = BootProgress(show=terminal.show, say=terminal.say)
    try:
        values = run.lab.enter(say=terminal.say)
        env = session.config.stash[LABGRID_ENV_KEY]
        environment.complete(env, values)
        environment.make_target(env)
    except HilError as error:
        pytest.exit(f"{error.kind}: {error}", returncode=error.exit_code)
    run.recorder.start()
    progress.start()
    try:
        return (yield)
    finally:
        progress.stop()
        run.recorder.stop()
        run.attribution.write(run.recorder.directory / "findings.json")


class _Terminal:
    """Writes between pytest's own progress, past its capture of output."""

    def __init__(self, config: pytest.Config) -> None:
        self._reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._capture: Any = config.pluginmanager.get_plugin("capturemanager")
        self._quiet = config.option.verbose < 0

    def say(self, line: str) -> None:
        if self._reporter and not self._quiet:
            with self._capture.global_and_fixture_disabled():
                self._reporter.ensure_newline()
                self._reporter.write_line(line)

    def show(self, text: str) -> None:
        """A text that the next one replaces; only where somebody sits in front of it."""
        if self._reporter and not self._quiet and self._reporter.isatty:
            with self._capture.global_and_fixture_disabled():
                self._reporter.rewrite(text, erase=True)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if run := config.stash.get(RUN_KEY, None):
        run.lab.leave()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    run = item.config.stash.get(RUN_KEY, None)
    if run is None or suite_of(item.nodeid) is None:
        return (yield)
    run.recorder.begin_test(item.nodeid)
    run.attribution.begin(BOOT)
    try:
        return (yield)
    finally:
        run.attribution.begin(BOOT)
        run.recorder.end_test()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """What the console tells while a test runs is the test's."""
    run = item.config.stash.get(RUN_KEY, None)
    if run is None or suite_of(item.nodeid) is None:
        return (yield)
    if run.attribution.exhausted(item.nodeid):
        pytest.skip(f"not run: it has crashed the board {CRASH_LIMIT} times")
    # what the setup made the kernel say is not the test's
    run.settle()
    run.attribution.begin(item.nodeid)
    try:
        result = yield
    except Exception as error:
        run.settle()
        if cause := run.finding_error(item.nodeid):
            raise cause from error
        raise
    run.settle()
    if cause := run.finding_error(item.nodeid):
        raise cause
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give each report its verdict, and show the framework's own errors as one line."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, HilError):
        text = f"{error.kind}: {error}"
        if error.kind == "unsupported":
            report.outcome = "skipped"
            report.longrepr = (str(item.path), (item.location[1] or 0) + 1, str(error))
        else:
            report.longrepr = "\n".join([text, *_evidence(item, call.when)])
        report.hil_verdict = error.kind  # type: ignore[attr-defined]
    run = item.config.stash.get(RUN_KEY, None)
    if run is not None and suite_of(item.nodeid):
        _note(run, item, report, error)
    return report


def _evidence(item: pytest.Item, when: str) -> Iterator[str]:
    """The console lines that prove what a test failed for."""
    run = item.config.stash.get(RUN_KEY, None)
    if run is None or when != "call":
        return
    for finding in run.attribution.failing(item.nodeid):
        yield ""
        yield from proof(finding)


def _note(
    run: Run, item: pytest.Item, report: pytest.TestReport, error: BaseException | None
) -> None:
    verdict = getattr(report, "hil_verdict", None)
    if isinstance(error, ConfigError):
        run.verdicts[item.nodeid] = "not run"
    elif report.failed:
        run.verdicts[item.nodeid] = "lab error" if verdict == "lab error" else "fail"
    elif report.skipped and run.attribution.exhausted(item.nodeid):
        # its verdict is that of the runs that it had
        pass
    elif report.skipped:
        run.verdicts[item.nodeid] = "unsupported" if verdict == "unsupported" else "skip"
    elif report.when == "call":
        run.verdicts[item.nodeid] = "pass"
        run.lab_errors_in_a_row = 0
    if isinstance(error, LabError):
        run.lab_errors_in_a_row += 1
        if run.lab_errors_in_a_row >= LAB_ERROR_LIMIT:
            item.session.shouldfail = f"{LAB_ERROR_LIMIT} lab errors in a row; fix the lab first"
    elif isinstance(error, ConfigError):
        item.session.shouldfail = "configuration error; the other tests would meet it as well"


def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport,
) -> tuple[str, str, str] | None:
    verdict = getattr(report, "hil_verdict", None)
    if verdict == "unsupported":
        return "unsupported", "u", "UNSUPPORTED"
    if verdict == "lab error":
        return "error", "L", "LAB ERROR"
    return None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    run = config.stash.get(RUN_KEY, None)
    if run is None or config.option.collectonly:
        return
    for report in terminalreporter.stats.get("unsupported", []):
        terminalreporter.write_line(f"UNSUPPORTED {report.nodeid}: {report.longrepr[2]}")
    # a test that is repeated is one test
    planned = dict.fromkeys(i.nodeid for i in getattr(terminalreporter._session, "items", []))
    outcomes = [
        (suite, run.verdicts.get(node_id, "not run"))
        for node_id in planned
        if (suite := suite_of(node_id))
    ]
    for one in run.attribution.used():
        terminalreporter.write_line(f"KNOWN {one.owner}: {one.reason}")
    for finding in run.attribution.failing(BOOT):
        terminalreporter.write_line(f"DURING BOOT {finding.summary} [{finding.fingerprint}]")
    if outcomes:
        terminalreporter.section(f"suites on {run.profile.name}")
        for line in summary.table(outcomes):
            terminalreporter.write_line(line)
        terminalreporter.write_line(f"\nlogs and JUnit: {run.recorder.directory}")
