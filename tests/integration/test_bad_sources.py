"""
Sources that raise, hang, return garbage or cost too much, beside good ones.

The others are not delayed by more than one tick, and what is wrong is seen in
/status and on /metrics.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import httpx
import numpy as np
import pytest
from tests.integration.agents import TurnableClock, make_parts, plant, serving, tick, wait_for
from tests.integration.exposition import value

from nodescope.base.block import Block, Table
from nodescope.base.entity import NODE, Entity
from nodescope.base.errors import SourceFailed
from nodescope.base.frame import Event
from nodescope.base.metric import Metric
from nodescope.collect.files.batch import FileFault, ReadSegment
from nodescope.collect.run.source import Context, Tick
from nodescope.wiring import Parts

pytestmark = pytest.mark.real

GOOD = ("cpu", "memory", "process", "pressure")


def make_table(name: str) -> Table:
    return Table(name, name, ("node",), (Metric(f"{name}.value", "gauge", "A number.", f"{name}_value"),))


class CallFake:
    """A call source whose reading is whatever the test says."""

    pace_seconds = 0.2
    deadline_seconds = 1.0

    def __init__(self, name: str, read: Callable[[], Any]) -> None:
        self.name = name
        self._table = make_table(name)
        self._read = read

    def __call__(self, context: Context) -> "CallFake":
        del context
        return self

    def read(self) -> Any:
        return self._read()

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        if answer != "good":
            return answer  # type: ignore[no-any-return]
        return (Block(self._table, (NODE,), np.array([[1.0]]), mono_ns),)

    def close(self) -> None:
        pass


class SegmentFake:
    """A segment whose reading is whatever the test says."""

    def __init__(self, table: Table, read: Callable[[], Any]) -> None:
        self.table = table
        self.faults: list[FileFault] = []
        self.cost_ns = 0
        self._read = read
        self._answer: Any = None

    def read(self) -> None:
        self.faults = []
        self._answer = self._read()

    def block(self, mono_ns: int) -> Block | None:
        if self._answer != "good":
            return self._answer  # type: ignore[no-any-return]
        return Block(self.table, (NODE,), np.array([[1.0]]), mono_ns)

    def close(self) -> None:
        pass


class BatchFake:
    """A batch source of one segment; `refresh` may be bad, too."""

    def __init__(self, name: str, read: Callable[[], Any], refresh: Callable[[], Any] = lambda: ()) -> None:
        self.name = name
        self._segment = SegmentFake(make_table(name), read)
        self._refresh = refresh

    def __call__(self, context: Context) -> "BatchFake":
        del context
        return self

    def refresh(self, tick: Tick) -> Iterable[Event]:
        del tick
        answer: Iterable[Event] = self._refresh()
        return answer

    def segments(self) -> Iterable[tuple[ReadSegment, int]]:
        return [(self._segment, 1)]

    def dropped(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        pass


def raise_bug() -> Any:
    raise ZeroDivisionError("a bug in a source")


def raise_failed() -> Any:
    raise SourceFailed("the device said no")


def check_visible(client: httpx.Client, name: str) -> None:
    """Failed with a reason in /status, down on /metrics; the good ones are up."""
    status = client.get("/status").json()
    assert status["sources"][name]["state"] == "failed", status["sources"][name]
    assert status["sources"][name]["reason"]
    text = client.get("/metrics").raise_for_status().text
    assert value(text, "nodescope_source_up", source=name) == 0
    for good in GOOD:
        assert value(text, "nodescope_source_up", source=good) == 1
        assert status["sources"][good]["state"] == "ok"


def count_errors(client: httpx.Client, name: str) -> float:
    return float(sum(client.get("/status").json()["sources"][name]["errors"].values()))


BAD_BATCH: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "refresh raises": (lambda: "good", raise_bug),
    "refresh fails": (lambda: "good", raise_failed),
    "refresh returns garbage": (lambda: "good", lambda: 42),
    "refresh returns garbage in a list": (lambda: "good", lambda: ["not an event"]),
    "reading raises": (raise_bug, lambda: ()),
    "reading returns garbage": (lambda: "a string is no block", lambda: ()),
}


@pytest.mark.parametrize("manner", BAD_BATCH)
def test_a_bad_file_source_does_not_stop_the_tick(manner: str) -> None:
    """Every tick is taken, the others are in it, and the bad one is named."""
    read, refresh = BAD_BATCH[manner]
    parts = make_parts(TurnableClock(), sources_exclude=("container", "pod", "smaps_rollup"))
    plant(parts, BatchFake("bad", read, refresh))
    with serving(parts) as client:
        tick(parts, 5)
        assert parts.sampler.counters.ticks == 5
        check_visible(client, "bad")
        assert count_errors(client, "bad") >= 5
        frames = parts.ring.headers(0, 1 << 62)
        assert len(frames) == 5
        assert len(parts.ring.moments("memory", 0, 1 << 62)[1]) == 5


def test_a_source_comes_back_by_itself() -> None:
    """Failed while it fails; ok, with its series, in the tick after."""
    answers = iter([False, False, True, True])
    parts = make_parts(TurnableClock(), sources_exclude=("container", "pod", "smaps_rollup"))
    plant(parts, BatchFake("moody", lambda: "good" if next(answers) else raise_bug()))
    with serving(parts) as client:
        tick(parts, 2)
        check_visible(client, "moody")
        assert "moody_value" not in client.get("/metrics").text
        tick(parts, 1)
        text = client.get("/metrics").text
        assert value(text, "nodescope_source_up", source="moody") == 1
        assert value(text, "moody_value") == 1


GARBAGE: dict[str, Any] = {
    "nothing": None,
    "a number": 42,
    "text": "text",
    "a list of text": ["not a block"],
    "a block of no table": (object(),),
}


def test_bad_call_sources_do_not_delay_the_others() -> None:
    """
    In real time, all at once: one raises, one hangs for 5 s, five return garbage.

    Every tick of the good ones is taken, none later than one tick.
    """
    hang = threading.Event()

    def hang_once() -> str:
        hang.wait(5)
        return "good"

    parts = make_parts(interval_seconds="0.5s", sources_exclude=("container", "pod", "smaps_rollup"))
    plant(
        parts,
        CallFake("raising", raise_bug),
        CallFake("hanging", hang_once),
        CallFake("fine", lambda: "good"),
    )
    garbage = {f"garbage_{number}": answer for number, answer in enumerate(GARBAGE.values())}
    plant(parts, *(CallFake(name, lambda answer=answer: answer) for name, answer in garbage.items()))  # type: ignore[misc]
    with serving(parts, sampling=True) as client:
        try:

            def is_hung() -> bool:
                sources = client.get("/status").json()["sources"]
                return "hanging" in sources and "no answer" in sources["hanging"]["reason"]

            wait_for(is_hung, "a source that is said to hang", seconds=4.5)
            for name in ("raising", "hanging", *garbage):
                check_visible(client, name)
                assert count_errors(client, name) >= 1, name
            assert value(client.get("/metrics").text, "fine_value") == 1
            hang.set()
            wait_for(
                lambda: client.get("/status").json()["sources"]["hanging"]["state"] == "ok", "its answer"
            )
        finally:
            hang.set()
    frames = parts.ring.headers(0, 1 << 62)
    gaps = np.diff([frame.mono_ns for frame in frames]) / 1e9
    assert len(frames) >= 3
    assert gaps.max() < 1.0
    assert parts.sampler.counters.missed == 0


# -- budget ----------------------------------------------------------------------------

BURN_SECONDS = 0.05


def burn() -> str:
    """50 ms of this thread's CPU, however busy the machine is."""
    began = time.thread_time()
    while time.thread_time() - began < BURN_SECONDS:
        pass
    return "good"


def is_slowed(client: httpx.Client, name: str) -> bool:
    return name in client.get("/status").json()["budget"]["slowed"]


def test_a_costly_file_source_is_slowed_within_thirty_ticks() -> None:
    """50 ms a tick under a 1 % budget: /status names it, and no cheap table pays for it."""
    parts = make_parts(
        TurnableClock(), budget_ratio="0.01", sources_exclude=("container", "process", "filesystem")
    )
    plant(parts, BatchFake("costly", burn))
    with serving(parts) as client:
        tick(parts, 30)
        status = client.get("/status").json()
        assert is_slowed(client, "costly")
        assert status["budget"]["slowed"] == {"costly": 30}
        assert status["tables"]["costly"]["every_ticks"] == 30
        assert status["ticks"] == {"taken": 30, "missed": 0}
        for table in ("cpu", "memory", "pressure"):
            assert status["tables"][table]["every_ticks"] == 1
            assert len(parts.ring.moments(table, 0, 1 << 62)[1]) == 30
        assert len(parts.ring.moments("costly", 0, 1 << 62)[1]) < 15


def test_a_costly_source_is_slowed_in_real_time_and_no_tick_is_missed() -> None:
    """As a call source and as a file source, one second a tick."""
    parts = make_parts(budget_ratio="0.01", sources_exclude=("container", "process", "filesystem"))
    costly = CallFake("calling", burn)
    costly.pace_seconds = 1.0
    plant(parts, BatchFake("costly", burn), costly)
    with serving(parts, sampling=True) as client:
        wait_for(
            lambda: is_slowed(client, "costly") and is_slowed(client, "calling"), "both slowed", seconds=29
        )
        wait_for(lambda: parts.sampler.counters.ticks >= 12, "twelve ticks")
        status = client.get("/status").json()
        assert status["ticks"]["missed"] == 0
        read = parts.ring.moments("memory", 0, 1 << 62)[1]
        assert [moment.sequence for moment in read] == list(range(len(read)))


# -- a full ring -----------------------------------------------------------------------

CONTAINERS = 2000
RING_BYTES = 8 * 2**20
WIDE = Table(
    "container",
    "container",
    ("container",),
    tuple(Metric(f"wide.{number}", "gauge", "A number.") for number in range(20)),
)


class Crowd:
    """A batch source of 2,000 containers."""

    name = "crowd"

    def __init__(self) -> None:
        self._entities = tuple(
            Entity("container", (f"{number:064x}", "1"), (("id", f"/kubepods/{number}"),))
            for number in range(CONTAINERS)
        )
        self._segment = CrowdSegment(self._entities)

    def __call__(self, context: Context) -> "Crowd":
        del context
        return self

    def refresh(self, tick: Tick) -> Iterable[Event]:
        del tick
        return ()

    def segments(self) -> Iterable[tuple[ReadSegment, int]]:
        return [(self._segment, 1)]

    def dropped(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        pass


class CrowdSegment:
    table = WIDE

    def __init__(self, entities: tuple[Entity, ...]) -> None:
        self.faults: list[FileFault] = []
        self.cost_ns = 0
        self._entities = entities

    def read(self) -> None:
        pass

    def block(self, mono_ns: int) -> Block | None:
        return Block(WIDE, self._entities, np.ones((CONTAINERS, 20)), mono_ns)

    def close(self) -> None:
        pass


def crowded() -> Parts:
    parts = make_parts(
        TurnableClock(),
        ring_bytes=str(RING_BYTES),
        sources_exclude=("container", "pod", "smaps_rollup", "process", "filesystem"),
    )
    plant(parts, Crowd())
    return parts


def test_with_two_thousand_containers_the_ring_keeps_to_its_bytes() -> None:
    """
    The oldest container frames leave, the node's stay.

    The accepted window shrinks for containers to what is held, and 400 says
    so; for the node it stays 120 s, and answers.
    """
    parts = crowded()
    with serving(parts) as client:
        for _ in range(150):
            tick(parts, 1)
            assert parts.ring.used_bytes <= RING_BYTES
        status = client.get("/status").json()
        assert status["ring"]["bytes"] <= status["ring"]["bytes_most"] == RING_BYTES
        text = client.get("/metrics").text
        assert value(text, "nodescope_ring_bytes") <= RING_BYTES
        accepted = status["ring"]["accepted_window_seconds"]
        assert accepted["node"] == 120
        assert 2 <= accepted["container"] < 60
        # The newest are kept, without a hole.
        held = [moment.sequence for moment in parts.ring.moments("container", 0, 1 << 62)[1]]
        assert held == list(range(150 - len(held), 150))
        assert len(held) >= accepted["container"]

        refused = client.get("/window?scope=container&seconds=60&stats=mean&metrics=wide.0")
        assert refused.status_code == 400
        assert f"at most {accepted['container']:g}" in refused.json()["detail"]
        answer = client.get(
            "/window", params={"scope": "container", "seconds": accepted["container"], "stats": "mean"}
        ).json()
        assert len(answer["entities"]) == CONTAINERS
        assert answer["entities"][0]["samples_count"] == accepted["container"]
        node = client.get("/metrics?window_seconds=120").json()
        assert node["samples_count"] == 120
