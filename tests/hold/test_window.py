"""Windows: statistics equal numpy on the raw samples; what is missing is explained."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples

from nodescope.base.block import Block, Table
from nodescope.base.entity import NODE, Entity
from nodescope.base.errors import NothingYet, RequestRejected
from nodescope.base.frame import OK, Frame, Outcome
from nodescope.base.metric import Metric
from nodescope.hold.feature import FEATURES
from nodescope.hold.ring import Ring
from nodescope.hold.window import (
    check_statistics,
    take_node_window,
    take_scope_window,
)

SECOND = 10**9
CPU = Table(
    "cpu.cpu",
    "cpu",
    ("cpu",),
    tuple(
        Metric(f"cpu.{mode}", "counter", "Time.", may_dip=mode in ("idle", "iowait"))
        for mode in ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    ),
)
LOAD = Table("cpu", "cpu", ("node",), (Metric("cpu.load_1m", "gauge", "Load."),))
MEMORY = Table(
    "memory",
    "memory",
    ("node",),
    (Metric("memory.MemAvailable", "gauge", "Free."), Metric("memory.MemTotal", "gauge", "All.")),
)
PRESSURE = Table(
    "pressure",
    "pressure",
    ("node",),
    tuple(
        Metric(f"pressure.{r}.some.total", "counter", "Stalled.", scale=1e-6) for r in ("cpu", "memory", "io")
    ),
)
CORES = (Entity("cpu", ("0",)), Entity("cpu", ("1",)))
ALL_OK = {"cpu": OK, "memory": OK, "pressure": OK}


def make_frame(number: int, busy: float, available: float, stalled: float, mono_ns: int) -> Frame:
    """Counters grow by what is given per tick; two cores share the busy time."""
    cpu = np.zeros((2, 8))
    cpu[:, 0] = busy
    cpu[:, 3] = 100.0 * number - busy
    blocks = (
        Block(CPU, CORES, cpu, mono_ns),
        Block(LOAD, (NODE,), np.array([[busy / 10]]), mono_ns),
        Block(MEMORY, (NODE,), np.array([[available, 1000.0]]), mono_ns),
        Block(PRESSURE, (NODE,), np.array([[stalled, 0.0, 0.0]]), mono_ns),
    )
    return Frame(number, number, mono_ns, blocks, ALL_OK)


@st.composite
def runs(draw: st.DrawFn) -> list[Frame]:
    count = draw(st.integers(1, 25))
    busy = np.cumsum(draw(st.lists(st.integers(0, 100), min_size=count, max_size=count)))
    stalled = np.cumsum(draw(st.lists(st.integers(0, 10**6), min_size=count, max_size=count)))
    free = draw(st.lists(st.integers(0, 1000), min_size=count, max_size=count))
    gaps = draw(st.lists(st.integers(SECOND // 2, 2 * SECOND), min_size=count, max_size=count))
    times = np.cumsum(gaps)
    return [
        make_frame(n + 1, float(b), float(f), float(s), int(t))
        for n, (b, f, s, t) in enumerate(zip(busy, free, stalled, times))
    ]


@given(runs(), st.floats(0.5, 60.0))
@examples(150)
def test_a_node_window_equals_numpy_on_the_raw_frames(frames: list[Frame], seconds: float) -> None:
    """
    mem_util: statistics of 1 - available / total over the frames in (now - W, now].

    cpu_util and pressure: increase / elapsed, with the frame just before the window.
    """
    ring = Ring(120.0, 10**9, 1.0)
    for frame in frames:
        ring.accept(frame)
    now = frames[-1].mono_ns
    window = take_node_window(ring, seconds, now)
    after = now - round(seconds * 1e9)
    inside = [f for f in frames if f.mono_ns > after]
    assert window.samples == len(inside)
    used = np.array([1 - f.blocks[2].values[0, 0] / 1000 for f in inside])
    assert window.metrics["mean_mem_util"] == pytest.approx(used.mean())
    assert window.metrics["p95_mem_util"] == pytest.approx(np.percentile(used, 95))
    if len(used) > 1:
        assert window.metrics["std_mem_util"] == pytest.approx(used.std(ddof=1))
    else:
        assert "std_mem_util" not in window.metrics
    earlier = [f for f in frames if f.mono_ns <= after][-1:]
    used_frames = earlier + inside
    if len(used_frames) < 2:
        assert window.missing["cpu_util"] == "cpu needs a second sample"
        return
    stalled = np.array([f.blocks[3].values[0, 0] for f in used_frames]) / 1e6
    times = np.array([f.mono_ns for f in used_frames]) / 1e9
    rates = np.minimum(np.diff(stalled) / np.diff(times), 1.0)
    mean = (stalled[-1] - stalled[0]) / (times[-1] - times[0])
    assert window.metrics["mean_cpu_pressure"] == pytest.approx(min(mean, 1.0))
    assert window.metrics["p95_cpu_pressure"] == pytest.approx(np.percentile(rates, 95))
    busy = np.array([f.blocks[0].values[:, 0].sum() for f in used_frames])
    total = np.array([f.blocks[0].values.sum() for f in used_frames])
    assert window.metrics["mean_cpu_util"] == pytest.approx((busy[-1] - busy[0]) / (total[-1] - total[0]))
    if len(rates) != len(inside):
        assert window.samples_of["cpu_pressure"] == len(rates)
    else:
        assert "cpu_pressure" not in window.samples_of


def test_a_share_of_time_is_never_above_one() -> None:
    """A file that is read 3 ms late has counted a second within 0.997 s."""
    ring = Ring(120.0, 10**9, 1.0)
    for number in range(1, 12):
        ring.accept(make_frame(number, 0.0, 10.0, number * 1e6, round(number * 0.997 * SECOND)))
    window = take_node_window(ring, 9.0, round(11 * 0.997 * SECOND))
    assert window.metrics["mean_cpu_pressure"] == 1.0
    assert window.metrics["p95_cpu_pressure"] == 1.0


def test_twenty_ticks_are_twenty_samples() -> None:
    ring = Ring(120.0, 10**9, 1.0)
    for number in range(1, 22):
        ring.accept(make_frame(number, number, 500.0, 0.0, number * SECOND))
    window = take_node_window(ring, 20.0, 21 * SECOND)
    assert (window.samples, window.expected) == (20, 20)
    assert not window.samples_of


def test_every_feature_is_a_number_or_explained() -> None:
    """metrics and missing together name every feature exactly once."""
    ring = Ring(120.0, 10**9, 1.0)
    for number in range(1, 4):
        ring.accept(make_frame(number, number, 500.0, 0.0, number * SECOND))
    window = take_node_window(ring, 20.0, 3 * SECOND)
    given_features = {name.removeprefix("mean_") for name in window.metrics if name.startswith("mean_")}
    assert given_features.isdisjoint(window.missing)
    assert given_features | set(window.missing) == {feature.name for feature in FEATURES}


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome("absent", "no /proc/pressure"), "pressure absent: no /proc/pressure"),
        (Outcome("failed", "input/output error"), "pressure failed: input/output error"),
        (OK, "pressure has no sample in the window"),
        (None, "pressure absent: no such source runs on this node"),
    ],
)
def test_a_missing_feature_is_explained_by_its_source(outcome: Outcome | None, words: str) -> None:
    ring = Ring(120.0, 10**9, 1.0)
    outcomes = {"pressure": outcome} if outcome else {}
    ring.accept(Frame(0, 0, SECOND, (), outcomes))
    assert take_node_window(ring, 20.0, SECOND).missing["cpu_pressure"] == words


def test_a_column_that_this_kernel_lacks_is_named() -> None:
    ring = Ring(120.0, 10**9, 1.0)
    table = Table("memory", "memory", ("node",), MEMORY.metrics[1:])
    ring.accept(Frame(0, 0, SECOND, (Block(table, (NODE,), np.ones((1, 1)), SECOND),), ALL_OK))
    missing = take_node_window(ring, 20.0, SECOND).missing
    assert missing["mem_util"] == "memory does not offer memory.MemAvailable"


def test_before_the_first_sample_there_is_nothing_yet() -> None:
    with pytest.raises(NothingYet, match="no sample yet"):
        take_node_window(Ring(120.0, 10**9, 1.0), 20.0, 0)


def test_an_empty_window_says_how_old_the_newest_is() -> None:
    ring = Ring(120.0, 10**9, 1.0)
    ring.accept(make_frame(1, 1.0, 1.0, 0.0, SECOND))
    with pytest.raises(NothingYet, match=r"newest is 50\.0 s old"):
        take_node_window(ring, 20.0, 51 * SECOND)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf, 120.1, 1e9])
def test_what_the_ring_cannot_hold_is_refused_with_the_range(seconds: float) -> None:
    with pytest.raises(RequestRejected, match="more than 0 and at most 120"):
        take_node_window(Ring(120.0, 10**9, 1.0), seconds, 0)


def test_a_core_that_was_plugged_in_counts_from_its_second_sample() -> None:
    """Half of the first core's time was idle, and none of the second one's."""
    first, second = np.array([4.0, 0, 0, 4, 0, 0, 0, 0]), np.array([8.0, 0, 0, 0, 0, 0, 0, 0])
    rows = [first, 2 * first], [2 * first, 10 * second], [3 * first, 11 * second]
    blocks = [Block(CPU, CORES[:1], np.array(rows[0][:1]), 0)]
    blocks += [
        Block(CPU, CORES, np.array(cells), number * SECOND) for number, cells in enumerate(rows[1:], 1)
    ]
    ring = Ring(120.0, 10**9, 1.0)
    for number, block in enumerate(blocks):
        ring.accept(Frame(number, 0, block.mono_ns, (block,), {}))
    window = take_node_window(ring, 20.0, 2 * SECOND, ("mean", "max"))
    assert window.metrics["max_cpu_util"] == 0.75
    assert window.metrics["mean_cpu_util"] == pytest.approx((4 + 12) / (8 + 16))


# -- any scope ------------------------------------------------------------------

BYTES = Table(
    "container",
    "container",
    ("container",),
    (
        Metric("mem", "gauge", "Memory.", plain="memory", unit="bytes"),
        Metric("cpu", "counter", "CPU time.", unit="seconds", scale=1e-6),
        Metric("wraps", "counter", "Energy.", unit="joules", scale=1e-6, wraps_at=1000.0),
        Metric("limit", "gauge", "Limit."),
    ),
)
ALL = ("mean", "std", "min", "max", "p50", "p95", "p99", "last", "rate")


def hold(columns: list[list[float]], entities: tuple[Entity, ...] | None = None) -> Ring:
    ring = Ring(120.0, 10**9, 1.0)
    who = entities or (Entity("container", ("a",), (("pod", "web"),)),)
    for number, row in enumerate(columns):
        mono_ns = (number + 1) * SECOND
        block = Block(BYTES, who, np.array([row] * len(who)), mono_ns)
        ring.accept(Frame(number, 0, mono_ns, (block,), {}))
    return ring


@given(st.lists(st.integers(0, 2**40).map(float), min_size=1, max_size=15))
@examples(150)
def test_statistics_of_a_gauge_equal_numpy(values: list[float]) -> None:
    ring = hold([[value, 0.0, 0.0, 1.0] for value in values])
    (window,) = take_scope_window(ring, "container", 100.0, len(values) * SECOND, ALL, {}, ["mem"])
    column = np.array(values)
    wanted = {
        "mean": column.mean(),
        "min": column.min(),
        "max": column.max(),
        "p50": np.percentile(column, 50),
        "p95": np.percentile(column, 95),
        "p99": np.percentile(column, 99),
        "last": column[-1],
    }
    if len(values) > 1:
        wanted["std"] = column.std(ddof=1)
        wanted["rate"] = (column[-1] - column[0]) / (len(values) - 1)
    else:
        assert set(window.missing) == {"std_memory", "rate_memory"}
    assert window.metrics == pytest.approx({f"{name}_memory": value for name, value in wanted.items()})
    assert window.samples == len(values)


def test_a_counter_is_seen_as_its_rate_in_base_units() -> None:
    ring = hold([[0.0, count, 0.0, 1.0] for count in (0.0, 1e6, 3e6)])
    (window,) = take_scope_window(ring, "container", 100.0, 3 * SECOND, ("mean", "max", "last"), {}, ["cpu"])
    assert window.metrics == pytest.approx({"mean_cpu": 1.5, "max_cpu": 2.0, "last_cpu": 3.0})


def test_a_counter_that_wraps_is_unwrapped_in_the_unit_of_the_kernel() -> None:
    """The modulus is in the kernel's unit: increase first, scale afterwards."""
    ring = hold([[0.0, 0.0, count, 1.0] for count in (900.0, 100.0)])
    (window,) = take_scope_window(ring, "container", 100.0, 2 * SECOND, ("rate",), {}, ["wraps"])
    assert window.metrics == pytest.approx({"rate_wraps": 200e-6})


def test_no_limit_is_said_not_averaged() -> None:
    ring = hold([[0.0, 0.0, 0.0, math.inf]] * 3)
    (window,) = take_scope_window(ring, "container", 100.0, 3 * SECOND, ALL, {}, ["limit"])
    assert not window.metrics
    assert set(window.missing.values()) == {"unlimited"}


def test_a_cell_that_was_never_measured_leaves_no_trace() -> None:
    ring = hold([[math.nan, 1.0, 0.0, 1.0]] * 2)
    (window,) = take_scope_window(ring, "container", 100.0, 2 * SECOND, ("mean",), {}, ["mem"])
    assert not window.metrics
    assert not window.missing


def test_labels_and_details_filter_entities() -> None:
    who = (
        Entity("container", ("a",), (("pod", "web"),), (("qos", "Burstable"),)),
        Entity("container", ("b",), (("pod", "db"),)),
    )
    ring = hold([[1.0, 0.0, 0.0, 1.0]], who)
    for filters, names in (({"pod": "db"}, ["b"]), ({"qos": "Burstable"}, ["a"]), ({"pod": "x"}, [])):
        windows = take_scope_window(ring, "container", 100.0, SECOND, ("mean",), filters, [])
        assert [window.entity.ids[0] for window in windows] == names


def test_a_statistic_that_we_do_not_know_is_refused_by_name() -> None:
    with pytest.raises(RequestRejected, match="no statistic 'median'; accepted: mean"):
        check_statistics(["mean", "median"])
