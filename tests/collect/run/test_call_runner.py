"""Call sources: the tick takes what is there and never waits."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.collect.nodes import SECOND, Node

from nodescope.base.block import Block, Table
from nodescope.base.entity import NODE, Entity
from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.metric import Metric
from nodescope.collect.run.call_runner import ABSENT_PACE_SECONDS, CallRunner
from nodescope.collect.run.source import Context

TABLE = Table("gpu", "gpu", ("node",), (Metric("gpu.m", "gauge", "A number."),))
# Only a broken test waits for so long.
PATIENCE_SECONDS = 30.0


class Gate:
    """A clock at which the asking thread stops after every answer until it is let through."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.deadlines: list[int] = []
        self.arrived = threading.Semaphore(0)
        self.go = threading.Semaphore(0)

    def wall_ns(self) -> int:
        return self.now_ns

    def mono_ns(self) -> int:
        return self.now_ns

    def wait_until(self, deadline_mono_ns: int, stop: threading.Event) -> bool:
        self.deadlines.append(deadline_mono_ns)
        self.arrived.release()
        assert self.go.acquire(timeout=PATIENCE_SECONDS)
        return stop.is_set()

    def let_through(self) -> None:
        self.go.release()

    def wait_for_answer(self) -> None:
        assert self.arrived.acquire(timeout=PATIENCE_SECONDS)


class Asked:
    """A source that counts, and does what it is told."""

    name = "gpu"
    pace_seconds = 2.0
    deadline_seconds = 5.0

    def __init__(self, answer: Callable[[], Any], on_open: Callable[[], None] = lambda: None) -> None:
        self.answer = answer
        self.on_open = on_open
        self.opened = 0
        self.closed = threading.Event()

    def __call__(self, context: Context) -> "Asked":
        self.opened += 1
        self.on_open()
        return self

    def read(self) -> Any:
        return self.answer()

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        return (Block(TABLE, (NODE,), np.array([[float(answer)]]), mono_ns),)

    def close(self) -> None:
        self.closed.set()


def make(source: Asked, tmp_path: Path) -> tuple[CallRunner, Gate]:
    gate = Gate()
    return CallRunner(source, Node(tmp_path).context(), gate), gate


def end(caller: CallRunner, gate: Gate, source: Asked) -> None:
    caller.stop()
    gate.let_through()
    assert source.closed.wait(PATIENCE_SECONDS)


def test_an_answer_is_taken_once(tmp_path: Path) -> None:
    source = Asked(lambda: 7)
    caller, gate = make(source, tmp_path)
    assert caller.take().outcome.reason == "not asked yet"
    caller.start()
    gate.wait_for_answer()
    first, second = caller.take(), caller.take()
    assert first.fresh
    assert first.blocks[0].values[0, 0] == 7.0
    assert not second.fresh
    assert second.blocks == ()
    assert second.outcome.state == "ok"
    assert gate.deadlines == [2 * SECOND]
    end(caller, gate, source)


def test_a_source_that_hangs_is_failed_until_its_answer_comes(tmp_path: Path) -> None:
    asking, answered = threading.Event(), threading.Event()

    def answer() -> float:
        asking.set()
        assert answered.wait(PATIENCE_SECONDS)
        return 1.0

    source = Asked(answer)
    caller, gate = make(source, tmp_path)
    caller.start()
    assert asking.wait(PATIENCE_SECONDS)
    gate.now_ns = 4 * SECOND
    assert caller.take().outcome.state == "absent"
    gate.now_ns = 6 * SECOND
    hung = caller.take()
    assert (hung.outcome.state, hung.outcome.detail, hung.blocks) == ("failed", "hung", ())
    assert "no answer for 6 s" in hung.outcome.reason
    answered.set()
    gate.wait_for_answer()
    assert caller.take().outcome.state == "ok"
    end(caller, gate, source)


def test_an_absent_source_is_asked_again_slowly_and_opened_again(tmp_path: Path) -> None:
    def refuse() -> None:
        raise SourceAbsent("no driver")

    source = Asked(lambda: 1, refuse)
    caller, gate = make(source, tmp_path)
    caller.start()
    gate.wait_for_answer()
    assert caller.take().outcome.state == "absent"
    assert gate.deadlines == [round(ABSENT_PACE_SECONDS * SECOND)]
    source.on_open = lambda: None
    gate.let_through()
    gate.wait_for_answer()
    assert caller.take().outcome.state == "ok"
    assert source.opened == 2
    end(caller, gate, source)


def test_a_source_that_went_absent_is_kept_and_asked_again_slowly(tmp_path: Path) -> None:
    """What it has counted, and a watch it has begun, outlive the absence: it is not made anew."""
    answers: Iterator[Exception | float] = iter([1.0, SourceAbsent("driver unloaded"), 3.0])

    def answer() -> float:
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    source = Asked(answer)
    caller, gate = make(source, tmp_path)
    caller.start()
    states = []
    for _ in range(3):
        gate.wait_for_answer()
        states.append(caller.take().outcome.state)
        gate.let_through()
    gate.wait_for_answer()
    assert states == ["ok", "absent", "ok"]
    assert gate.deadlines[:3] == [2 * SECOND, round(ABSENT_PACE_SECONDS * SECOND), 2 * SECOND]
    assert source.opened == 1
    end(caller, gate, source)


def test_a_source_that_could_not_be_opened_is_opened_again(tmp_path: Path) -> None:
    """Failed while opening is not open: reading it would be a bug of ours."""

    def refuse() -> None:
        raise SourceFailed("driver too old")

    source = Asked(lambda: 1, refuse)
    caller, gate = make(source, tmp_path)
    caller.start()
    gate.wait_for_answer()
    assert caller.take().outcome.reason == "driver too old"
    source.on_open = lambda: None
    gate.let_through()
    gate.wait_for_answer()
    assert source.opened == 2
    assert caller.take().outcome.state == "ok"
    end(caller, gate, source)


def test_a_reading_that_raised_is_an_outcome_and_the_next_one_may_be_fine(tmp_path: Path) -> None:
    answers: Iterator[Exception | float] = iter([ZeroDivisionError("a bug"), 5.0])

    def answer() -> float:
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    source = Asked(answer)
    caller, gate = make(source, tmp_path)
    caller.start()
    gate.wait_for_answer()
    assert caller.take().outcome.reason == "ZeroDivisionError: a bug"
    gate.let_through()
    gate.wait_for_answer()
    assert caller.take().blocks[0].values[0, 0] == 5.0
    assert source.opened == 1
    end(caller, gate, source)


def test_the_budget_slows_a_costly_source(tmp_path: Path) -> None:
    source = Asked(lambda: 1)
    caller, gate = make(source, tmp_path)
    caller.pace_ratio = 5
    caller.start()
    gate.wait_for_answer()
    assert gate.deadlines == [10 * SECOND]
    end(caller, gate, source)


def test_a_prompt_source_is_asked_by_the_tick_itself(tmp_path: Path) -> None:
    """At its own pace, half a second early at the most, without a thread; closed at the end."""

    class Prompt(Asked):
        is_prompt = True

    answers = iter(range(10))
    source = Prompt(lambda: next(answers))
    caller, gate = make(source, tmp_path)
    assert caller.take().blocks == ()
    threads = threading.active_count()
    caller.start()
    assert threading.active_count() == threads
    taken = []
    for gate.now_ns in range(0, 6 * SECOND, SECOND):
        taken += [(gate.now_ns // SECOND, block.values[0, 0]) for block in caller.take().blocks]
    assert taken == [(0, 0.0), (2, 1.0), (4, 2.0)]
    caller.stop()
    caller.join()
    assert source.closed.is_set()
    assert caller.take().blocks == ()


def test_entities_that_did_not_change_stay_the_same_object(tmp_path: Path) -> None:
    """A source that names its entities anew each time costs nobody anything downstream."""
    source = Asked(lambda: 1.0)
    caller, _ = make(source, tmp_path)
    sets = []
    for number in (0, 0, 1):
        source.parse = lambda answer, mono_ns, number=number: (  # type: ignore[method-assign, misc]
            Block(TABLE, (Entity("node", (str(number),)),), np.array([[answer]]), mono_ns),
        )
        caller.ask()
        sets.append(caller.take().blocks[0].entities)
    assert sets[0] is sets[1]
    assert sets[2] != sets[1]
