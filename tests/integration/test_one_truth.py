"""
One truth: one planted workload, and everybody who tells of it tells the same.

A container burns a known share of a core and holds 100 MiB. The kernel's own
figures are the truth; every way out of nodescope is one `Telling` of it, a row
in TELLINGS. A new way out adds one function and one row.

Tolerances, against the kernel over the same seconds:

    memory   2 %: the workload is steady; interpreters breathe by some pages
    CPU      5 %: each way out has its own window of whole ticks or scrapes,
             and a burner on a busy machine is not steady to the second
"""

import contextlib
import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import httpx
import numpy as np
import pytest
from tests.cgroups import Cgroups, Group, why_not
from tests.integration.agents import Agent, running_agent, wait_for
from tests.integration.exposition import find, value
from tests.integration.prometheus import Prometheus, running_prometheus
from tests.integration.workload import burner, holder
from tests.use.mcp.asking import asking
from tests.use.viewer.asking import Asker

from nodescope.base.clock import SystemClock

pytestmark = pytest.mark.real

MIB = 2**20
HELD_BYTES = 100 * MIB
SHARE = 0.25
SECONDS = 15
CPU_TOLERANCE = 0.05
MEMORY_TOLERANCE = 0.02


@dataclass(frozen=True)
class Kernel:
    """What the kernel said, and when."""

    times: list[float] = field(default_factory=list)
    """Monotonic seconds."""
    cpu: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    def cores(self, begin: float, end: float) -> float:
        """Cores used between two moments, by the kernel's own counter."""
        count = len(self.memory)
        assert self.times[0] <= begin < end <= self.times[count - 1], "not watched then"
        at = np.interp([begin, end], self.times[:count], self.cpu[:count])
        return float((at[1] - at[0]) / (end - begin))


@dataclass(frozen=True)
class Scene:
    """The planted workload, who watches it, and what the kernel said meanwhile."""

    group: Group
    agent: Agent
    prometheus: Prometheus
    data: Path
    kernel: Kernel
    first_scrape: tuple[float, str]
    last_scrape: tuple[float, str]
    """(monotonic seconds of the tick that was scraped, text)."""

    @property
    def identifier(self) -> str:
        return "/" + self.group.path


@dataclass(frozen=True)
class Telling:
    """What one way out says: cores used between two moments, and memory at the end."""

    cores: float
    begin: float
    end: float
    memory_bytes: float


# -- the ways out ------------------------------------------------------------------------


def tell_by_metrics(scene: Scene) -> Telling:
    """Two scrapes of the agent, as any Prometheus would difference them."""
    begin, first = scene.first_scrape
    end, last = scene.last_scrape
    name = "container_cpu_usage_seconds_total"
    grown = value(last, name, id=scene.identifier) - value(first, name, id=scene.identifier)
    memory = value(last, "container_memory_usage_bytes", id=scene.identifier)
    return Telling(grown / (end - begin), begin, end, memory)


def tell_by_window(scene: Scene) -> Telling:
    """The scope window: a counter's mean is its increase over the elapsed time, from tick to tick."""
    newest, _ = scrape_tick(scene.agent)
    answer = scene.agent.client.get(
        "/window",
        params={"scope": "container", "seconds": 10, "stats": "mean,last", "id": scene.identifier},
    ).json()
    (entity,) = answer["entities"]
    cores = next(
        number
        for name, number in entity["metrics"].items()
        if name.startswith("mean_") and name.endswith(("cpuacct.usage", "cpu.stat.usage_usec"))
    )
    return Telling(cores, newest - 10, newest, entity["metrics"]["last_memory"])


def tell_by_promql(scene: Scene) -> Telling:
    """rate() over what a real Prometheus scraped."""
    end = time.monotonic()
    labels = f'{{id="{scene.identifier}"}}'
    (cpu,) = scene.prometheus.query(f"rate(container_cpu_usage_seconds_total{labels}[12s])")
    (memory,) = scene.prometheus.query(f"container_memory_usage_bytes{labels}")
    # Scrapes come once a second: the newest is half a second old on average.
    return Telling(float(cpu["value"][1]), end - 12.5, end - 0.5, float(memory["value"][1]))


def tell_by_parquet(scene: Scene) -> Telling:
    """DuckDB alone over the archive's files: a counter's increase over the time between two rows."""
    rows = wait_for(lambda: read_rows(scene), "two minutes' worth of rows in Parquet", 150)
    cpu = [(time_ms, number) for name, time_ms, number in rows if "cpu" in name]
    memory = [number for name, _, number in rows if "memory" in name]
    (first_ms, first), (last_ms, last) = cpu[0], cpu[-1]
    scale = 1e-9 if "cgroup.v1" in rows[0][0] else 1e-6
    cores = (last - first) * scale / ((last_ms - first_ms) / 1000)
    # Files have wall time; the kernel was watched on the monotonic clock.
    ahead = time.time() - time.monotonic()
    return Telling(cores, first_ms / 1000 - ahead, last_ms / 1000 - ahead, memory[-1])


def read_rows(scene: Scene) -> list[tuple[str, int, float]] | None:
    """CPU and memory of the planted container, within the time in which the kernel was watched."""
    if not any(scene.data.glob("dt=*/*/*.parquet")):
        return None
    begin_ms, end_ms = watched_ms(scene)
    found = (
        duckdb.connect()
        .cursor()
        .execute(
            "SELECT metric_name, epoch_ms(time), value FROM read_parquet(?, union_by_name = true) "
            "WHERE l_container_id = ? AND epoch_ms(time) BETWEEN ? AND ? AND metric_name IN "
            "('cgroup.v2.cpu.stat.usage_usec', 'cgroup.v1.cpuacct.usage', 'cgroup.v2.memory.current', "
            "'cgroup.v1.memory.usage_in_bytes') ORDER BY time",
            [f"{scene.data}/dt=*/*/*.parquet", container_id(scene), begin_ms, end_ms],
        )
        .fetchall()
    )
    # A rotation in the middle is not enough: ten seconds are compared.
    return found if found and found[-1][1] - found[0][1] >= 10_000 else None


def tell_by_viewer(scene: Scene) -> Telling:
    """The viewer's API, over files and the live tail."""
    begin_ms, end_ms = watched_ms(scene)
    with Asker(scene.data, clock=SystemClock()) as viewer:
        found = {
            metric: viewer.json(
                "/api/timeseries",
                metric=metric,
                containers=container_id(scene),
                **{"from": str(begin_ms / 1000), "to": str(end_ms / 1000)},
            )
            for metric in ("cpu", "memory")
        }
    ahead = time.time() - time.monotonic()
    moments, cores = numbers_of(found["cpu"])
    _, memory = numbers_of(found["memory"])
    # A rate stands at the end of its interval: weighed by it, their mean is increase over time.
    steps = np.diff([begin_of(moments), *moments])
    return Telling(
        float(np.average(cores, weights=steps)), begin_of(moments) - ahead, moments[-1] - ahead, memory[-1]
    )


def tell_by_mcp(scene: Scene) -> Telling:
    """An agent's question: the figures of the span, as the study tells them."""
    begin_ms, end_ms = watched_ms(scene)
    times = {"from_": str(begin_ms / 1000), "to": str(end_ms / 1000)}
    with asking(scene.data) as asker:
        cpu, memory = (
            asker.ask(
                "analyze_container", container=container_id(scene), study="summary", metric=metric, **times
            )
            for metric in ("cpu", "memory")
        )
    ahead = time.time() - time.monotonic()
    told = cpu["findings"][0]
    interval = (told["to"] - told["from"]) / (told["samples"] - 1)
    return Telling(
        cpu["figures"]["avg"], told["from"] - interval - ahead, told["to"] - ahead, memory["figures"]["avg"]
    )


def numbers_of(answer: Any) -> tuple[list[float], list[float]]:
    (series,) = answer["series"]
    pairs = [(at, value) for at, value in zip(answer["time"], series["mean"]) if value is not None]
    return [at for at, _ in pairs], [value for _, value in pairs]


def begin_of(moments: list[float]) -> float:
    """The tick before the first rate."""
    return moments[0] - float(np.median(np.diff(moments)))


def container_id(scene: Scene) -> str:
    return scene.group.path.rpartition("/")[2].removesuffix(".scope").rpartition("-")[2]


def watched_ms(scene: Scene) -> tuple[int, int]:
    """In wall time; a tick inside at both ends."""
    ahead = time.time() - time.monotonic()
    begin, end = scene.first_scrape[0], scene.last_scrape[0]
    return round((begin + ahead) * 1000), round((end + ahead) * 1000)


TELLINGS: dict[str, Callable[[Scene], Telling]] = {
    "metrics": tell_by_metrics,
    "window": tell_by_window,
    "promql": tell_by_promql,
    "viewer": tell_by_viewer,
    "mcp": tell_by_mcp,
    # Last: its file comes with the next rotation.
    "parquet": tell_by_parquet,
}


# -- the workload ------------------------------------------------------------------------


def scrape_tick(agent: Agent) -> tuple[float, str]:
    """A scrape, and the moment of the tick that it shows."""
    before = time.monotonic()
    text = agent.scrape()
    return before - value(text, "metrics_newest_seconds"), text


def kernel_cpu_seconds(group: Group) -> float:
    try:
        return group.number("cpuacct.usage") / 1e9
    except FileNotFoundError:
        return group.number("cpu.stat", "usage_usec") / 1e6


def kernel_memory_bytes(group: Group) -> int:
    try:
        return group.number("memory.usage_in_bytes")
    except FileNotFoundError:
        return group.number("memory.current")


@contextlib.contextmanager
def watching(group: Group) -> Iterator[Kernel]:
    """The kernel's figures every 20 ms, also while the ways out are asked."""
    kernel = Kernel()
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.02):
            kernel.times.append(time.monotonic())
            kernel.cpu.append(kernel_cpu_seconds(group))
            kernel.memory.append(kernel_memory_bytes(group))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield kernel
    finally:
        stop.set()
        thread.join()


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with (
        Cgroups() as cgroups,
        tempfile.TemporaryDirectory(prefix="nodescope-truth-") as name,
        # A scrape shows a tick of up to an interval ago: at one second, two
        # scrapes 12 s apart could differ by a whole tick, which is 8 %.
        # Files every 20 s, so that Parquet need not be waited for.
        running_agent(
            *("--node", "planted", "--interval", "0.2s", "--rotation-seconds", "20"), "--data", f"{name}/data"
        ) as agent,
        running_prometheus(Path(name)) as prometheus,
    ):
        prometheus.list_targets(("planted", agent))
        group = cgroups.container()
        holding = group.spawn(holder(HELD_BYTES), stdout=subprocess.PIPE)
        assert holding.stdout is not None
        with holding.stdout as output:
            assert output.readline() == b"held\n"
        group.spawn(burner(SHARE))
        identifier = "/" + group.path
        query = f'container_cpu_usage_seconds_total{{id="{identifier}"}}'
        wait_for(lambda: prometheus.query(query), "the container in Prometheus")
        wait_for(lambda: find(agent.scrape(), "container_memory_usage_bytes", id=identifier), "the container")
        with watching(group) as kernel:
            # A second's truth before the first tick that is compared.
            time.sleep(1.5)
            first = scrape_tick(agent)
            time.sleep(SECONDS)
            last = scrape_tick(agent)
            yield Scene(group, agent, prometheus, Path(name, "data"), kernel, first, last)


@pytest.fixture(scope="module")
def tellings(scene: Scene) -> dict[str, Telling]:
    """All asked at once, right after the kernel: later they would tell of other seconds."""
    return {name: tell(scene) for name, tell in TELLINGS.items()}


def test_the_workload_is_what_was_planted(scene: Scene) -> None:
    """The kernel saw about the share that was asked for, and the memory that was held."""
    begin, end = scene.first_scrape[0], scene.last_scrape[0]
    # A machine without a free core gives less than was asked for.
    assert 0.05 < scene.kernel.cores(begin, end) < SHARE * 1.2
    assert min(scene.kernel.memory) >= HELD_BYTES


@pytest.mark.parametrize("name", TELLINGS)
def test_every_way_out_tells_what_the_kernel_tells(
    scene: Scene, tellings: dict[str, Telling], name: str
) -> None:
    """forall ways out: CPU within 5 %, memory within 2 % of the kernel's own figure."""
    telling = tellings[name]
    assert telling.cores == pytest.approx(
        scene.kernel.cores(telling.begin, telling.end), rel=CPU_TOLERANCE
    ), json.dumps(telling.__dict__)
    assert telling.memory_bytes == pytest.approx(scene.kernel.memory[-1], rel=MEMORY_TOLERANCE)


def test_all_ways_out_agree_with_each_other(scene: Scene, tellings: dict[str, Telling]) -> None:
    """
    Twice the tolerance: each may err to its own side.

    CPU as a share of the kernel's: they tell of different seconds, and a busy
    machine does not give the same to each.
    """
    shares = [told.cores / scene.kernel.cores(told.begin, told.end) for told in tellings.values()]
    memory = [telling.memory_bytes for telling in tellings.values()]
    assert max(shares) - min(shares) <= 2 * CPU_TOLERANCE
    assert max(memory) - min(memory) <= 2 * MEMORY_TOLERANCE * max(memory)


def test_a_window_without_the_container_does_not_have_it(scene: Scene) -> None:
    """The filter chooses: another id gives nobody, not everybody."""
    answer = scene.agent.client.get(
        "/window", params={"scope": "container", "seconds": 5, "id": "/kubepods/nobody"}
    )
    assert answer.status_code == httpx.codes.OK
    assert answer.json()["entities"] == []
