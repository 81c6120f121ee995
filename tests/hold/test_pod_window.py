"""Windows of pods: containers added up, throttling taken out of pressure, what is missing is not there."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples

from nodescope.base.block import Block, Table
from nodescope.base.entity import NODE, Entity
from nodescope.base.frame import OK, Frame
from nodescope.base.metric import Metric
from nodescope.hold.pods.contention import derive_contention, derive_throttled
from nodescope.hold.pods.identity import TABLES, KnownRows
from nodescope.hold.pods.node_contention import take_node_contention
from nodescope.hold.pods.pod_window import PodLook, take_pod_windows
from nodescope.hold.pods.spread import spread_columns
from nodescope.hold.ring import Ring

SECOND = 10**9
COLUMNS = (
    "cpu.stat.usage_usec",
    "cpu.stat.nr_throttled",
    "cpu.stat.throttled_usec",
    "cpu.pressure.some.total",
)
CONTAINER = Table(
    "container",
    "container",
    ("container",),
    (
        *(
            Metric(f"cgroup.v2.{name}", "counter", "A.", scale=1.0 if "nr_" in name else 1e-6)
            for name in COLUMNS
        ),
        Metric("cgroup.v2.memory.current", "gauge", "Memory."),
    ),
)
PRESSURE = Table(
    "pressure", "pressure", ("node",), (Metric("pressure.cpu.some.total", "counter", "A.", scale=1e-6),)
)
GPU = Table("nvidia", "nvidia", ("gpu",), (Metric("gpu.utilization", "gauge", "A."),))
GPU_PROCESS = Table("nvidia.process", "nvidia", ("gpu",), (Metric("gpu.process.memory", "gauge", "A."),))


def container(name: str, pod: str) -> Entity:
    return Entity(
        "container", (name, "1"), (("namespace", "shop"), ("pod", pod)), (("pod_uid", f"uid-{pod}"),)
    )


def make_ring(
    rows: Sequence[Mapping[Entity, Sequence[float]]], pressure: Sequence[float] | None = None
) -> Ring:
    """One tick a second: each container's counters and memory, and the node's stalled microseconds."""
    ring = Ring(60, 10**7, 1.0)
    for number, cells in enumerate(rows):
        mono_ns = (number + 1) * SECOND
        blocks = [Block(CONTAINER, tuple(cells), np.array(list(cells.values())).reshape(-1, 5), mono_ns)]
        if pressure is not None:
            blocks.append(Block(PRESSURE, (NODE,), np.array([[pressure[number]]]), mono_ns))
        ring.accept(Frame(number, mono_ns, mono_ns, tuple(blocks), {"container": OK}))
    return ring


def take(ring: Ring, at: int) -> dict[str, dict[str, list[float]]]:
    windows = take_pod_windows(PodLook.back(ring, 20, at * SECOND))
    return {one.identity.pod: {key: value.render() for key, value in one.metrics.items()} for one in windows}


A, B, C = container("a", "web"), container("b", "web"), container("c", "db")


def test_a_pod_is_the_sum_of_its_containers_tick_by_tick() -> None:
    """Peaks at different seconds do not add up to one that never was."""
    used_a, used_b = [0, 1e6, 1e6], [0, 0, 1e6]
    rows = [
        {A: (a, 0, 0, 0, 10.0), B: (b, 0, 0, 0, 20.0), C: (0, 0, 0, 0, 7.0)} for a, b in zip(used_a, used_b)
    ]
    found = take(make_ring(rows), 3)
    assert found["web"]["cpu"] == [1.0, 1.0, 1.0]
    assert found["web"]["memory"] == [30.0, 30.0, 30.0]
    assert found["db"]["cpu"] == [0.0, 0.0, 0.0]


def test_a_container_that_was_not_there_used_nothing_and_one_that_could_not_be_read_an_unknown_amount() -> (
    None
):
    nan = float("nan")
    rows: list[Mapping[Entity, Sequence[float]]] = [
        {A: (0, 0, 0, 0, 10.0)},
        {A: (1e6, 0, 0, 0, 10.0), B: (0, 0, 0, 0, 5.0)},
        {A: (2e6, 0, 0, 0, 10.0), B: (1e6, 0, 0, 0, 5.0)},
        {A: (3e6, 0, 0, 0, 10.0), B: (nan, 0, 0, 0, nan)},
    ]
    found = take(make_ring(rows), 4)["web"]
    # One core, then two, then unknown.
    assert found["cpu"] == [1.5, pytest.approx(1.95), 2.0]
    assert found["memory"] == [pytest.approx(13.333), 15.0, 15.0]


def test_what_nobody_measured_is_not_among_the_numbers() -> None:
    """forall metrics of a pod without any sample: absent, never 0."""
    nan = float("nan")
    rows: list[Mapping[Entity, Sequence[float]]] = [
        {A: (nan,) * 5, C: (n * 1e6, 0, 0, 0, 1.0)} for n in range(3)
    ]
    found = take(make_ring(rows), 3)
    assert "cpu" not in found.get("web", {})
    assert found["db"]["cpu"] == [1.0, 1.0, 1.0]


def test_a_container_of_no_pod_is_no_pod() -> None:
    loose = Entity("container", ("d", "1"), (("namespace", ""), ("pod", "")))
    assert take(make_ring([{loose: (n * 1e6, 0, 0, 0, 1.0)} for n in range(3)]), 3) == {}


def test_a_throttled_pod_on_an_idle_node_does_not_contend() -> None:
    """60 % of the time held back, 60 % pressure: nothing of it is anybody else's doing."""
    rows = [{A: (0, n * 6, n * 600_000, n * 600_000, 1.0)} for n in range(4)]
    ring = make_ring(rows, [n * 600_000 for n in range(4)])
    found = take(ring, 4)["web"]
    assert found["cpu_contention"] == [0.0, 0.0, 0.0]
    assert found["cpu_throttled"] == [0.6, 0.6, 0.6]
    waited = take_node_contention(PodLook.back(ring, 20, 4 * SECOND))
    assert waited is not None
    assert waited.mean == pytest.approx(0.0)


def test_pressure_without_a_quota_is_contention() -> None:
    rows = [{A: (0, 0, 0, n * 300_000, 1.0)} for n in range(4)]
    ring = make_ring(rows, [n * 300_000 for n in range(4)])
    assert take(ring, 4)["web"]["cpu_contention"] == [0.3, 0.3, 0.3]
    waited = take_node_contention(PodLook.back(ring, 20, 4 * SECOND))
    assert waited is not None
    assert waited.mean == pytest.approx(0.3)


def test_time_of_many_cpus_is_bounded_by_the_periods_that_were_cut() -> None:
    """Sixteen CPUs held back for 50 ms each are 0.8 s in a second; two periods of 100 ms were cut short."""
    held = derive_throttled(np.array([0.8]), np.array([2.0]), np.array([1.0]))
    assert held == pytest.approx([0.2])


@examples(100)
@given(st.floats(0, 1), st.floats(0, 0.9))
def test_two_causes_that_are_independent_are_told_apart(waited: float, throttled: float) -> None:
    """forall W, T: P = 1 - (1 - T)(1 - W) gives W back."""
    pressure = 1 - (1 - throttled) * (1 - waited)
    assert derive_contention(np.array([pressure]), np.array([throttled])) == pytest.approx([waited], abs=1e-9)


def test_nothing_can_be_told_where_throttling_hides_everything() -> None:
    assert np.isnan(derive_contention(np.array([1.0]), np.array([0.99]))).all()


@examples(100)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_a_spread_is_what_numpy_says(values: list[float]) -> None:
    (found,) = spread_columns(np.array([*values, np.nan])[:, None])
    assert found is not None
    assert found.mean == pytest.approx(np.mean(values))
    assert found.p95 == pytest.approx(np.percentile(values, 95))
    assert found.max == max(values)


def test_a_pod_s_gpus_are_those_of_its_processes() -> None:
    ring = make_ring([{A: (0, 0, 0, 0, 1.0), C: (0, 0, 0, 0, 1.0)} for _ in range(3)])
    gpus = tuple(Entity("gpu", (name,)) for name in ("g0", "g1", "g2"))
    process = Entity("gpu", ("g1", "process", "7", ""), (), (("pod_uid", "uid-web"), ("pod", "web")))
    blocks = (
        Block(GPU, gpus, np.array([[10.0], [80.0], [20.0]]), 4 * SECOND),
        Block(GPU_PROCESS, (process,), np.ones((1, 1)), 4 * SECOND),
    )
    ring.accept(Frame(4, 4 * SECOND, 4 * SECOND, blocks, {}))
    found = take(ring, 4)
    assert found["web"]["gpu_util"] == [0.8, 0.8, 0.8]
    assert "gpu_util" not in found["db"]


def test_rows_are_grouped_again_when_the_containers_of_a_table_changed() -> None:
    known = KnownRows()
    first = (container("a", "one"), container("b", "two"), container("c", "one"))
    rows = known.find(first)
    assert [one.pod for one in rows.pods] == ["one", "two"]
    assert known.find(first) is rows
    after = (container("b", "two"),)
    assert [one.pod for one in known.find(after).pods] == ["two"]
    assert known.find(first) is rows
    # What is remembered has an end, and what was forgotten is found anew.
    for number in range(TABLES):
        assert [one.pod for one in known.find((container("x", str(number)),)).pods] == [str(number)]
    assert [one.uid for one in known.find(first).pods] == ["uid-one", "uid-two"]
