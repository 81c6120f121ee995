"""
Which tests may run beside each other.

The real tests wait more than they compute, so several lanes of them share the
machine. What would disturb each other stays in one lane, in order: the tests
with real cgroups (a collector sees every cgroup of the machine), those that
share a control plane (started once for all of them), those with a pcm (only one
may run at a time), and otherwise each file. Lanes that compare a rate with the
kernel's or wait for a sample each second are marked quiet, and run afterwards,
when nothing busy runs beside them.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import tests.strategies  # noqa: F401 - loads the profile: no test has a deadline
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from nodescope.base import log
from nodescope.publish import self_metrics

# The first word of a file's name that is found here names its lane.
LANES = {
    "cgroups": "cgroups",
    "peers": "cgroups",
    "truth": "cgroups",
    "exposition": "cgroups",
    "prometheus": "cgroups",
    "pcm": "pcm",
    "gpu": "gpu",
    "kube": "cluster",
    "cluster": "cluster",
    "web": "browser",
}
QUIET = {"cgroups", "pcm"}


def lane(path: str) -> str:
    words = Path(path).with_suffix("").as_posix().replace("/", "_").split("_")
    return next((LANES[word] for word in reversed(words) if word in LANES), path)


# First: other plugins choose by markers in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("real") and lane(item.nodeid.partition("::")[0]) in QUIET:
            item.add_marker(pytest.mark.quiet)


class Lanes(LoadScopeScheduling):  # type: ignore[misc]
    """One worker takes a whole lane; the next lane goes to whoever is free."""

    def _split_scope(self, nodeid: str) -> str:
        return lane(nodeid.partition("::")[0])


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes | None:
    return Lanes(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """For tools/test-phase: the tests that failed, one in a line."""
    path = os.environ.get("FAILED_TESTS_FILE")
    if path:
        stats = terminalreporter.stats
        reports = [report for word in ("failed", "error") for report in stats.get(word, [])]
        names = dict.fromkeys(terminalreporter.config.rootpath / report.nodeid for report in reports)
        Path(path).write_text("".join(f"{name}\n" for name in names))
    note_skips(terminalreporter.stats.get("skipped", []))


def note_skips(reports: list[pytest.TestReport]) -> None:
    """For the last line of `make test` (tests/skips.py)."""
    path = os.environ.get("SKIPPED_TESTS_FILE")
    if path and reports:
        reasons = [str(report.longrepr[2]) for report in reports if isinstance(report.longrepr, tuple)]
        with Path(path).open("a") as file:
            file.writelines(f"{' '.join(reason.split())}\n" for reason in reasons)


@pytest.fixture(autouse=True)
def fresh_log_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log's allowance is a process's own; in tests, each has its own."""
    monkeypatch.setattr(log, "LIMIT", fresh := log.LogLimit())
    monkeypatch.setattr(self_metrics, "LIMIT", fresh)
