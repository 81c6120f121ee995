"""
Windows over HTTP, on a clock that the test turns, from what this kernel says.

The oracle is numpy on the raw frames of /live, decoded with the codec of the log.
"""

import threading
from collections.abc import Iterator
from itertools import pairwise

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.integration.agents import TurnableClock, make_parts, running_agent, serving, tick

from nodescope.base.block import Block, Table
from nodescope.base.codec import Decoder
from nodescope.base.entity import Entity
from nodescope.base.frame import OK, Frame
from nodescope.base.metric import Metric
from nodescope.hold.ring import Ring
from nodescope.hold.window import take_scope_window

pytestmark = pytest.mark.real

Column = NDArray[np.float64]
MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
TICKS = 20


@pytest.fixture(scope="module")
def young() -> Iterator[httpx.Client]:
    """An agent with two samples, which stays as it is."""
    parts = make_parts(TurnableClock())
    with serving(parts) as client:
        tick(parts, 2)
        yield client


def read_frames(client: httpx.Client, cursor: str) -> list[Frame]:
    """Asked on until there are no more: an answer is bounded in bytes."""
    frames: list[Frame] = []
    more = "true"
    while more == "true":
        answer = client.get("/live", params={"since": cursor})
        assert answer.status_code == 200
        assert answer.headers["nodescope-complete"] == "true"
        frames += Decoder().decode(answer.content)
        cursor, more = answer.headers["nodescope-cursor"], answer.headers["nodescope-more"]
    return frames


def column(frames: list[Frame], table: str, metric: str) -> tuple[Column, Column]:
    """Seconds of reading, and the metric's values: one row a frame, one column an entity."""
    blocks = [block for frame in frames for block in frame.blocks if block.table.name == table]
    seconds = np.array([block.mono_ns for block in blocks]) / 1e9
    return seconds, np.array([block.values[:, block.table.columns[metric]] for block in blocks])


def expect(values: Column, mean: float) -> tuple[float, float, float]:
    return mean, float(values.std(ddof=1)), float(np.percentile(values, 95))


def expect_gauge(frames: list[Frame], table: str, metric: str) -> tuple[float, float, float]:
    _, values = column(frames, table, metric)
    return expect(values[:, 0], float(values[:, 0].mean()))


def expect_pressure(frames: list[Frame], resource: str) -> tuple[float, float, float]:
    seconds, values = column(frames, "pressure", f"pressure.{resource}.some.total")
    grown = np.diff(values[:, 0]) * 1e-6
    elapsed = np.diff(seconds)
    return expect(grown / elapsed, float(grown.sum() / elapsed.sum()))


def expect_cpu(frames: list[Frame]) -> tuple[float, float, float]:
    """1 - idle / all, from the cores' counters; the mean from the sums."""
    grown = {mode: np.diff(column(frames, "cpu.cpu", f"cpu.{mode}")[1], axis=0).sum(axis=1) for mode in MODES}
    idle = grown["idle"] + grown["iowait"]
    whole = np.sum(list(grown.values()), axis=0)
    counted = whole > 0
    values = 1 - idle[counted] / whole[counted]
    return expect(values, float(1 - idle.sum() / whole.sum()))


def expect_memory(frames: list[Frame]) -> tuple[float, float, float]:
    _, available = column(frames, "memory", "memory.MemAvailable")
    _, total = column(frames, "memory", "memory.MemTotal")
    values = 1 - available[:, 0] / total[:, 0]
    return expect(values, float(values.mean()))


def test_a_window_equals_numpy_on_the_raw_frames() -> None:
    """
    After 20 ticks and one before them: samples_count 20, and every number numpy's.

    Counters use the frame just before the window, gauges only what is inside.
    """
    parts = make_parts(TurnableClock())
    with serving(parts) as client:
        tick(parts, 2)
        cursor = client.get("/live").headers["nodescope-cursor"]
        run, _, number = cursor.rpartition("-")
        for _ in range(TICKS):
            tick(parts, 1)
            # Real time must pass for real counters to move.
            threading.Event().wait(0.06)
        answer = client.get("/metrics?window_seconds=20").json()
        frames = read_frames(client, f"{run}-{int(number) - 1}")
    assert len(frames) == TICKS + 1
    inside = frames[1:]
    assert answer["samples_count"] == answer["samples_expected"] == TICKS
    assert answer["completeness"] == 1.0
    expected = {
        "cpu_util": expect_cpu(frames),
        "load_1m": expect_gauge(inside, "cpu", "cpu.load_1m"),
        "mem_util": expect_memory(inside),
        "cpu_pressure": expect_pressure(frames, "cpu"),
        "mem_pressure": expect_pressure(frames, "memory"),
        "io_pressure": expect_pressure(frames, "io"),
    }
    for feature, numbers in expected.items():
        seen = [answer["metrics"][f"{statistic}_{feature}"] for statistic in ("mean", "std", "p95")]
        assert seen == pytest.approx(numbers, rel=1e-9, abs=1e-12), feature
    assert "mem_bw" in answer["missing"]
    assert "mean_mem_bw" not in answer["metrics"]


def test_right_after_twenty_ticks_there_are_twenty_samples() -> None:
    """Nothing before the window: counters tell one sample less, and say so."""
    parts = make_parts(TurnableClock())
    with serving(parts) as client:
        tick(parts, TICKS)
        for name in ("window_seconds", "window_sec", "window"):
            answer = client.get("/metrics", params={name: "20"}).json()
            assert answer["samples_count"] == TICKS
            assert answer["samples"]["cpu_pressure"] == TICKS - 1
            assert "load_1m" not in answer["samples"]


def test_the_window_is_half_open() -> None:
    """A frame exactly W seconds old is out, the one of now is in."""
    parts = make_parts(TurnableClock())
    with serving(parts) as client:
        tick(parts, 30)
        for seconds in (1, 5, 29):
            answer = client.get(f"/metrics?window_seconds={seconds}").json()
            assert answer["samples_count"] == seconds
        answer = client.get("/metrics?window_seconds=30").json()
        assert answer["samples_count"] == 30


@pytest.mark.parametrize("path", ["/metrics?window_seconds={}", "/window?seconds={}"])
@pytest.mark.parametrize("text", ["0", "-1", "abc", "1000000000", "nan", "inf", "", "1e400", "120.001"])
def test_a_window_that_cannot_be_is_refused_with_the_accepted_range(
    young: httpx.Client, path: str, text: str
) -> None:
    answer = young.get(path.format(text))
    assert answer.status_code == 400
    assert "more than 0 and at most 120" in answer.json()["detail"]


def test_before_the_first_sample_a_window_is_503() -> None:
    """With the reason; not an empty answer, and not a wrong one."""
    parts = make_parts(TurnableClock())
    with serving(parts) as client:
        for path in ("/metrics?window_seconds=20", "/window?seconds=20", "/window?scope=container"):
            answer = client.get(path)
            assert answer.status_code == 503, path
            assert "no sample yet" in answer.json()["detail"]
        ready = client.get("/readyz")
        assert ready.status_code == 503
        assert "no sample yet" in ready.json()["reason"]
        assert client.get("/healthz").status_code == 200
        # What the agent says about itself is there before the first tick.
        assert "nodescope_ticks_total 0\n" in client.get("/metrics").text


def test_old_samples_are_not_ready_and_not_a_window() -> None:
    """A loop that stands still: 503 with the sample's age."""
    clock = TurnableClock()
    parts = make_parts(clock)
    with serving(parts) as client:
        tick(parts, 5)
        assert client.get("/readyz").status_code == 200
        clock.turn(30)
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 503
        answer = client.get("/metrics?window_seconds=20")
        assert answer.status_code == 503
        assert "30.0 s old" in answer.json()["detail"]


def test_a_cursor_from_before_the_first_sample_loses_nothing() -> None:
    parts = make_parts(TurnableClock())
    with serving(parts) as client:
        cursor = client.get("/live").headers["nodescope-cursor"]
        tick(parts, 3)
        assert [frame.sequence for frame in read_frames(client, cursor)] == [0, 1, 2]
        wrong = client.get("/live?since=yesterday")
        assert wrong.status_code == 400
        assert "cursor" in wrong.json()["detail"]


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("scope=contaner", 'did you mean "container"?'),
        ("stats=mean,p42", "'p42'"),
        ("metrics=MemTotl", "MemTotl"),
        ("scope=process&metrics=cpu_secnds", "cpu_secnds"),
        ("scope=process&nmae=init", 'did you mean "name"?'),
        ("device=sda", "no label"),
    ],
)
def test_a_question_with_a_wrong_word_is_refused_by_it(young: httpx.Client, query: str, word: str) -> None:
    """Never an empty 200."""
    answer = young.get(f"/window?{query}")
    assert answer.status_code == 400, answer.text
    assert word in answer.json()["detail"]


def test_a_real_agent_fills_its_window_second_by_second() -> None:
    """The raw frames of a running agent are a whole window, in order, without a gap."""
    with running_agent("--interval", "0.1s") as agent:
        first = agent.get("/live").headers["nodescope-cursor"]
        run, _, number = first.rpartition("-")
        seen = list(range(int(number) + 1))
        cursor = f"{run}-{number}"
        while len(seen) < 25:
            answer = agent.client.get("/live", params={"since": cursor})
            assert answer.headers["nodescope-complete"] == "true"
            seen += [frame.sequence for frame in Decoder().decode(answer.content)]
            cursor = answer.headers["nodescope-cursor"]
        assert seen == list(range(len(seen)))
        window = agent.get("/metrics?window_seconds=2").json()
        assert window["samples_expected"] == 20
        assert 0 < window["samples_count"] <= 21
        assert 0 < window["metrics"]["mean_cpu_util"] <= 1


# -- torn frames -----------------------------------------------------------------------

ROWS, COLUMNS = 40, 12
TABLE = Table(
    "container",
    "container",
    ("container",),
    tuple(Metric(f"m{number}", "gauge", "A number.") for number in range(COLUMNS)),
)


def numbered_frame(number: int) -> Frame:
    """Every cell is the frame's number, the set of entities its parity's."""
    rows = ROWS if number % 7 else ROWS - 1
    entities = tuple(Entity("container", (str(row),), (("id", f"/{row}"),)) for row in range(rows))
    values = np.full((rows, COLUMNS), float(number))
    block = Block(TABLE, entities, values, number * 1_000_000)
    return Frame(number, number, number * 1_000_000, (block,), {"container": OK})


def test_eight_readers_never_see_a_torn_frame() -> None:
    """
    forall readers, writes: every block read is one that was written, whole.

    Min and max of a frame are equal, sequences only rise, and a window over
    equal cells has min <= mean <= max within what was written.
    """
    ring = Ring(30.0, 8 << 20, 0.001)
    ring.accept(numbered_frame(1))
    stop = threading.Event()
    faults: list[str] = []
    looks = [0] * 8

    def check_moments() -> None:
        _, inside = ring.moments("container", 0, 1 << 62)
        numbers = [moment.sequence for moment in inside]
        if any(later != earlier + 1 for earlier, later in pairwise(numbers)):
            faults.append(f"out of order: {numbers[:5]}")
        for moment in inside[-20:]:
            block = moment.block
            if block.values.min() != block.values.max() or block.values[0, 0] != moment.sequence:
                faults.append(f"torn: {moment.sequence}")
            if len(block.entities) != len(block.values):
                faults.append(f"rows and entities differ: {moment.sequence}")

    def check_window() -> None:
        newest = ring.newest()
        assert newest is not None
        windows = take_scope_window(
            ring, "container", 0.02, newest.mono_ns, ("min", "max"), {}, ("m0", "m11")
        )
        for window in windows:
            if window.metrics["min_m0"] != window.metrics["min_m11"]:
                faults.append("columns of one frame differ in a window")
            if window.metrics["max_m0"] > newest.sequence:
                faults.append("a window has a frame from after its end")

    def check_tail() -> None:
        newest = ring.newest()
        assert newest is not None
        _, frames = ring.since(newest.sequence - 5)
        for frame in frames:
            faults.extend(
                f"a tail mixes frames: {frame.sequence}"
                for block in frame.blocks
                if block.values[0, 0] != frame.sequence
            )

    checks = (check_moments, check_window, check_tail, check_moments) * 2

    def read(place: int) -> None:
        try:
            while not stop.is_set():
                checks[place]()
                looks[place] += 1
        except Exception as error:  # noqa: BLE001 - any error is a finding
            faults.append(repr(error))

    readers = [threading.Thread(target=read, args=(place,), daemon=True) for place in range(8)]
    for reader in readers:
        reader.start()
    number = 1
    try:
        while number < 3000 or (min(looks) < 5 and number < 100_000 and not faults):
            number += 1
            ring.accept(numbered_frame(number))
    finally:
        stop.set()
        for reader in readers:
            reader.join(timeout=20)
    assert faults == []
    assert min(looks) >= 5
