"""
Every query of every dashboard and every rule, asked of a real Prometheus.

Two nodes are scraped: `calm`, and `bad`, which gets into every trouble that an
alert is about; `stale` and `late` are agents whose own loop is in trouble, and at
the address of `down` nobody answers. A query passes once it has given data; those
that are rightly empty in calm do so when the trouble comes.
"""

import contextlib
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.deploy.boards import lists, queries, substitute
from tests.deploy.stage import BAD, CALM, MEMORY_LIMIT, WEB, Stage, running_stage
from tests.deploy.test_rules import RULES, alerts, recorded, rules
from tests.fakes.nvml.library import build_library
from tests.integration.agents import (
    TurnableClock,
    free_port,
    make_parts,
    serving,
    tick,
)
from tests.integration.conftest import need_tool
from tests.integration.prometheus import Prometheus, running_prometheus

from nodescope.base.clock import SystemClock

pytestmark = pytest.mark.real

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: away
contexts: [{name: away, context: {cluster: away, user: nobody}}]
clusters: [{name: away, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: nobody, user: {token: none}}]
"""
HISTORY_SECONDS = 7200
PATIENCE_SECONDS = 90


class LateClock(SystemClock):
    """Wakes whoever waits three tenths of a second too late."""

    def wait_until(self, deadline_mono_ns: int, stop: threading.Event) -> bool:
        return super().wait_until(deadline_mono_ns + 300_000_000, stop)


@dataclass
class Asked:
    """What has given data so far."""

    server: Prometheus
    open: dict[str, str]
    """Place -> expression, until it has."""
    found: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def ask(self) -> None:
        for place, expression in list(self.open.items()):
            result = self.server.query(expression)
            if result:
                self.found[place] = result
                del self.open[place]

    def ask_until(self, done: Callable[[], Any]) -> None:
        """Goes on asking; says what is still without data when it takes too long."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.ask()
            if done():
                return
            assert time.monotonic() < deadline, f"no data for {sorted(self.open)}"
            time.sleep(0.3)


@dataclass(frozen=True)
class Scene:
    """When the play is over."""

    server: Prometheus
    asked: Asked


# About a scheduler and its pods, which no stage here has: promtool sees it fire (test_rules), and a real
# API server sees the metrics it is made of (tests/chart/test_installed.py).
OF_A_CLUSTER = ("ExtenderNotAsked", "CertificateEnds")
# A rise or a lost GPU is told after minutes, which no play here lasts: promtool sees these fire (test_rules), and
# replayed nodes have the metrics they are made of (tests/watch, tests/publish/test_findings.py).
OF_MINUTES = ("FindingHurt", "TimeToLimitShort")
NOT_HERE = (*OF_A_CLUSTER, *OF_MINUTES)


def questions() -> dict[str, str]:
    """All of them, with the variables filled as for everything chosen."""
    asked = {place: substitute(expression, "1m") for place, expression in queries()}
    for place, listed in lists():
        asked[place] = substitute(listed.removeprefix("label_values(").rpartition(",")[0], "1m")
    for rule in rules():
        name = rule.get("alert") or rule["record"]
        if name in NOT_HERE:
            continue
        asked[name] = quicken(rule["expr"])
    return asked


def quicken(text: str) -> str:
    """
    Rules whose rates are over seconds, for a Prometheus that scrapes every second.

    rate() over 5 minutes of which 10 seconds were seen is a thirtieth.
    """
    return re.sub(r"\b((?:rate|increase|avg_over_time)\([^\[]*)\[\d+m\]", r"\1[15s]", text)


# -- the scene -------------------------------------------------------------------


def write_history(bad: Stage, server: Path) -> None:
    """
    Two hours in which the web container grew, in Prometheus' own blocks.

    A leak shows in hours; its labels are those that the scrape will have.
    """
    promtool = need_tool("promtool")
    assert bad.agent is not None
    labels = next(
        sample.labels
        for family in text_string_to_metric_families(bad.agent.scrape())
        for sample in family.samples
        if sample.name == "container_memory_rss"
        and sample.labels["id"] == f"/{WEB.relative_to('sys/fs/cgroup')}"
    )
    target = {"job": "nodescope", "node": bad.name, "instance": bad.agent.address}
    text = ",".join(f'{key}="{value}"' for key, value in {**labels, **target}.items())
    now = time.time()
    lines = ["# TYPE container_memory_rss gauge"]
    for age in range(HISTORY_SECONDS, 0, -60):
        value = MEMORY_LIMIT * (0.3 + 0.65 * (1 - age / HISTORY_SECONDS))
        lines.append(f"container_memory_rss{{{text}}} {value:.0f} {now - age:.3f}")
    source = server / "history.txt"
    source.write_text("\n".join([*lines, "# EOF"]) + "\n")
    command = [promtool, "tsdb", "create-blocks-from", "openmetrics", str(source), str(server / "data")]
    subprocess.run(command, check=True, capture_output=True)


@contextlib.contextmanager
def troubled_loops() -> Iterator[dict[str, str]]:
    """Addresses of an agent whose samples are old, and of one that never keeps its time."""
    clock = TurnableClock()
    stale = make_parts(clock=clock, archive=False)
    tick(stale, 2)
    late = make_parts(clock=LateClock(), interval_seconds=0.1, archive=False, series_limit=1)
    with serving(stale) as old, serving(late, sampling=True) as slow:
        clock.turn(60)
        yield {"stale": old.base_url.netloc.decode(), "late": slow.base_url.netloc.decode()}


@contextlib.contextmanager
def reporting(*stages: tuple[Stage, int, int]) -> Iterator[None]:
    """FPGA events all the time."""
    stop = threading.Event()

    def report() -> None:
        while not stop.wait(0.5):
            for stage, used_ms, loaded_ms in stages:
                stage.report(used_ms, loaded_ms)

    thread = threading.Thread(target=report)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def bring_trouble(bad: Stage) -> None:
    """Everything at once that does not end what is to be seen of it."""
    bad.mood = BAD
    bad.scenario.say(
        {
            "all.temperature": 91,
            **{f"gpu{number}.temperature": 91 for number in range(8)},
            # Hardware slowdown, by heat.
            "all.reasons": "0x48",
            "all.ecc.1.0": 1,
            "all.rows": "1 1 1 0",
            "event": "1 3 79",
            "gpu7.*": "!15",
        }
    )
    # Closed segments cannot become Parquet where their folder cannot be made.
    for folder in bad.data.glob("dt=*"):
        folder.rename(bad.folder / folder.name)
        folder.write_text("in the way")
    # A table of disks that no kernel writes.
    (bad.root / "proc/diskstats").write_text("this is no table of disks\n")
    for child in children_of(bad):
        # One that has just ended on its own needs no signal.
        with contextlib.suppress(psutil.NoSuchProcess):
            if "pcm" in " ".join(child.cmdline()):
                child.send_signal(signal.SIGKILL)


def children_of(bad: Stage) -> list[psutil.Process]:
    assert bad.agent is not None
    return psutil.Process(bad.agent.pid).children(recursive=True)


def bring_the_end(bad: Stage) -> None:
    """The driver is gone with all GPUs, and the disk takes nothing more."""
    assert bad.agent is not None
    bad.scenario.say({"count": "!999"})
    limit_files(bad, 0)


def end_trouble(bad: Stage) -> None:
    """An agent that cannot write would wait for its disk when it is stopped."""
    limit_files(bad, resource.RLIM_INFINITY)
    for path in bad.data.glob("dt=*"):
        if path.is_file():
            path.unlink()


def limit_files(bad: Stage, size: int) -> None:
    assert bad.agent is not None
    if sys.platform == "linux":
        resource.prlimit(bad.agent.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with contextlib.ExitStack() as stack:
        # Short, for kubelet's socket lies below it.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ns-")))
        library = build_library(folder / "library")
        away = folder / "kubeconfig"
        away.write_text(KUBECONFIG % free_port())
        calm = stack.enter_context(running_stage("calm", folder / "c", library))
        flags = ("--kubeconfig", str(away), "--rotation-seconds", "2")
        bad = stack.enter_context(running_stage("bad", folder / "b", library, *flags))
        # Where its history ends, and a GPU that was never used.
        bad.mood = replace(CALM, web_anon=BAD.web_anon)
        bad.scenario.say({"gpu2.utilization": 0})
        loops = stack.enter_context(troubled_loops())
        # Takes connections and never answers.
        silent = stack.enter_context(contextlib.closing(socket.create_server(("127.0.0.1", 0))))
        down = f"127.0.0.1:{silent.getsockname()[1]}"
        (folder / "p").mkdir()
        (folder / "p/rules.yaml").write_text(quicken(RULES.read_text()))
        write_history(bad, folder / "p")
        server = stack.enter_context(running_prometheus(folder / "p"))
        stack.enter_context(reporting((calm, 200, 20), (bad, 20, 200)))
        yield play(server, calm, bad, {**loops, "down": down})
        end_trouble(bad)


def play(server: Prometheus, calm: Stage, bad: Stage, others: dict[str, str]) -> Scene:
    asked = Asked(server, questions())
    # absent() has something to say only while nobody is scraped.
    asked.ask_until(lambda: "NodescopeAbsent" in asked.found)
    assert calm.agent is not None
    assert bad.agent is not None
    server.list_targets(("calm", calm.agent), ("bad", bad.agent))
    counted = 'node:gpus:count{node="bad"} and on (node) node:pressure_cpu_waiting:ratio_rate5m'
    asked.ask_until(lambda: server.query(counted))
    for name, address in others.items():
        (server.folder / f"nodes/{name}.yml").write_text(
            f'[{{"targets": ["{address}"], "labels": {{"node": "{name}"}}}}]'
        )
    bring_trouble(bad)
    ends = {"GpuMissing", "ArchivePaused"}
    asked.ask_until(lambda: set(asked.open) <= ends)
    bring_the_end(bad)
    asked.ask_until(lambda: not asked.open)
    return Scene(server, asked)


@pytest.fixture
def asked(scene: Scene) -> Asked:
    return scene.asked


# -- what it must show --------------------------------------------------------------


def test_every_query_gives_data(asked: Asked) -> None:
    """Of dashboards, of the choices at their top, of recording rules and of alerts."""
    assert not asked.open
    assert set(asked.found) == set(questions())


@pytest.mark.parametrize("name", recorded())
def test_a_recording_is_recorded(scene: Scene, name: str) -> None:
    assert scene.server.query(f"last_over_time({name}[10m])")


@pytest.mark.parametrize("alert", [rule["alert"] for rule in alerts() if rule["alert"] not in NOT_HERE])
def test_an_alert_is_about_the_node_in_trouble(asked: Asked, alert: str) -> None:
    nodes = {row["metric"].get("node", "") for row in asked.found[alert]}
    assert nodes <= {"bad", "late", "stale", "down", ""}, alert


def test_nothing_is_raised_for_the_calm_node(scene: Scene) -> None:
    """Neither pending nor firing, at any time."""
    assert scene.server.query('count_over_time({__name__="ALERTS",node="calm"}[10m])') == []


def test_a_container_without_a_limit_has_no_share_of_it(scene: Scene) -> None:
    """Unlimited is 0, as cAdvisor has it, and a share of that would be +Inf."""
    limited = scene.server.query('last_over_time(container:memory_limit_share:ratio{node="calm"}[5m])')
    unlimited = scene.server.query('last_over_time(container_spec_memory_limit_bytes{node="calm"}[5m]) == 0')
    assert limited
    assert unlimited
    assert not {row["metric"]["id"] for row in limited} & {row["metric"]["id"] for row in unlimited}


def test_what_a_fleet_keeps_is_a_small_part(scene: Scene) -> None:
    """The recorded series beside everything that is scraped, and no series per pod among them."""
    kept = scene.server.query('count({__name__=~"(node|namespace|workload|cluster):.*"})')
    scraped = scene.server.query('count({job="nodescope"})')
    assert float(kept[0]["value"][1]) < 0.15 * float(scraped[0]["value"][1])
    assert scene.server.query('{__name__=~"(node|namespace|workload|cluster):.*",pod!=""}') == []
