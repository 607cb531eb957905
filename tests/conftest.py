"""What several test files share: private tables with canaries, and a ledger that takes notes."""

from __future__ import annotations

import functools
import gc
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import hypothesis
import numpy as np
import pytest
from tests.engines import placed, spark  # noqa: F401  (fixtures)
from tests.postgres import postgres, postgres_url  # noqa: F401  (fixtures)

# Hundreds of tests start Python anew. Each would compile hushed again, and each test process its
# tests: 0.3 and 8 seconds. (The test processes of xdist start after this line.)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The test processes have the cores already: what takes longer than a second on a busy machine would
# else start worker processes of its own, which load all that this one has loaded.
os.environ["LOKY_MAX_CPU_COUNT"] = "1"

# A shell that starts tests in the background has Ctrl-C ignored, and so has each process of theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The default is the first examples of those that `make slow` tries: --hypothesis-profile steady.
for name, examples in {"quick": 12, "steady": 60}.items():
    hypothesis.settings.register_profile(
        name, derandomize=True, deadline=None, max_examples=examples
    )
hypothesis.settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run say that it must be able to run everything it selects."""
    parser.addoption("--no-skips", action="store_true", help="a test that is skipped has failed")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Tell of a failed test at once: a run that is ended from outside prints no summary."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(_FailuresAtOnce(terminal))


@dataclass(frozen=True, slots=True)
class _FailuresAtOnce:
    """Prints the name of each failure, and what went wrong, when it happens."""

    terminal: Any

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = getattr(crash, "message", "").partition("\n")[0]
            self.terminal.write_line(f"\n{report.nodeid} {report.outcome}: {why}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as slow the cases of a test that are dear; leave out what soaks, unless it is named."""
    unmet: set[tuple[str, str]] = set()
    met: set[tuple[str, str]] = set()
    for item in items:
        for mark in item.iter_markers("slow_cases"):
            test, _, case = item.nodeid.partition("[")
            unmet.update((test, each) for each in mark.args)
            if case[:-1] in mark.args:
                met.add((test, case[:-1]))
                item.add_marker(pytest.mark.slow)
    if unmet - met and not any("::" in each for each in config.args):  # else not all are collected
        raise pytest.UsageError(f"slow_cases names cases that are not there: {sorted(unmet - met)}")
    if "soak" not in config.option.markexpr:
        left = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[bool | None]:
    """Search for no garbage while tests are collected: a tenth of the time, for nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Leave what was collected out of every search for garbage.

    Ten thousand tests and their libraries are 600,000 objects: each full search takes half a
    second, a sixth of the time of all tests.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let Python clean up as usual: libraries report what is left at its end as leaked."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Count a skipped test as failed where nothing may be skipped."""
    report = yield
    if report.skipped and item.config.getoption("--no-skips") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and nothing may be: {report.longrepr}"
    return report


@pytest.fixture
def by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have functions of a test file reach other processes by value.

    By reference each process would load the test file, and all that it imports: two seconds.
    """
    cloudpickle.register_pickle_by_value(request.module)
    yield
    cloudpickle.unregister_pickle_by_value(request.module)


CANARY = 987654.321
CANARY_TEXT = "Wilhelmina-Quux"
TRACES = ("987654", "9.8765", "Wilhelmina")


@dataclass
class NotingLedger:
    """Writes down charges, and whatever else a test adds, in order."""

    refuse: bool = False
    log: list[Any] = field(default_factory=list)

    def charge(self, budget: str, guarantee: Any, note: str = "", *, loss: Any = None) -> None:
        """Write the charge down, or refuse it."""
        if self.refuse:
            raise PermissionError("over budget")
        self.log.append(("charge", budget, guarantee, note))


@pytest.fixture
def ledger() -> NotingLedger:
    return NotingLedger()


@pytest.fixture
def refusing_ledger() -> NotingLedger:
    return NotingLedger(refuse=True)


@pytest.fixture
def press_ctrl_c() -> Iterator[Callable[[], None]]:
    """Press Ctrl-C as a user does: by a signal, which is ignored in programs in the background."""
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield functools.partial(signal.raise_signal, signal.SIGINT)
    signal.signal(signal.SIGINT, kept)


@pytest.fixture
def private() -> np.ndarray:
    """Twenty private numbers, one of them a canary that must never be seen."""
    rows = np.random.default_rng(99).random(20)
    rows[7] = CANARY
    return rows


def everything_said(error: BaseException) -> str:
    """All text that an error can show: message, repr, traceback, causes and contexts."""

    def chain(found: BaseException | None) -> Iterator[BaseException]:
        while found is not None:
            yield found
            yield from chain(found.__cause__)
            found = found.__context__

    parts = []
    for each in chain(error):
        parts += [str(each), repr(each), repr(each.args), repr(getattr(each, "__dict__", {}))]
        parts += traceback.format_exception(each)
    return "\n".join(parts)


@pytest.fixture
def assert_silent() -> Callable[[BaseException | str], None]:
    """Fail if a text or anything an error can show holds a canary."""

    def check(shown: BaseException | str) -> None:
        text = shown if isinstance(shown, str) else everything_said(shown)
        for trace in TRACES:
            assert trace not in text

    return check
