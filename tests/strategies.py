"""
Hypothesis strategies that several tests share: text of tenants, tables, blocks, frames, kernel files.

Two profiles. `quick` is for a person who waits; `thorough` is taken when
CI=true and gives the numbers of cases that the project promises.
"""

import math
import os

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from nodescope.base.block import Block, Table
from nodescope.base.entity import Entity, Labels
from nodescope.base.frame import Event, Frame, Outcome
from nodescope.base.metric import Kind, Metric

IS_THOROUGH = os.environ.get("CI", "").lower() in ("1", "true")
# A shared machine may stop a test for a second: no deadline, no health check
# of speed. What is slow is seen by pytest's own durations.
settings.register_profile(
    "quick", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=300, print_blob=True)
settings.load_profile("thorough" if IS_THOROUGH else "quick")


def examples(thorough: int) -> settings:
    """So many examples in CI, a tenth of them on a person's machine."""
    return settings(max_examples=thorough if IS_THOROUGH else max(20, thorough // 10))


# Text as tenants write it: quotes, line breaks, backslashes, every script,
# bytes that are no UTF-8 (they arrive as lone surrogates).
HOSTILE = st.text(
    st.one_of(
        st.sampled_from('"\\\n\r\t{}=,# \x00\x1b\x7f\u2028\ufeff\u202e\udcff\U0001f600'), st.characters()
    ),
    max_size=12,
)
ENCODABLE = HOSTILE.map(lambda text: text.encode("utf-8", "replace").decode("utf-8"))
PLAIN = st.text("abcdefghij0123456789_-.", min_size=1, max_size=8)

NUMBERS = st.one_of(
    st.integers(0, 2**53).map(float),
    st.integers(0, 20).map(float),
    st.floats(0, 1e12),
    st.sampled_from([math.nan, math.inf, -1.0, -math.inf, 2.0**53, 2.0**63, 1e300, 5e-324]),
)
COUNTS = st.integers(0, 2**40).map(float)


@st.composite
def metrics(draw: st.DrawFn, name: str) -> Metric:
    kinds: tuple[Kind, ...] = ("counter", "gauge")
    kind = draw(st.sampled_from(kinds))
    published = draw(st.none() | st.just(f"x_{name}" + ("_total" if kind == "counter" else "")))
    return Metric(
        name,
        kind,
        draw(ENCODABLE),
        published,
        scale=draw(st.sampled_from((1.0, 1e-3, 1e-6, 1e-9, 0.01, 1024.0, 512.0))),
        unit=draw(st.sampled_from(("", "seconds", "bytes"))),
        untyped=draw(st.booleans()),
        may_dip=draw(st.booleans()),
    )


@st.composite
def tables(draw: st.DrawFn, name: str = "t") -> Table:
    count = draw(st.integers(1, 4))
    rows = tuple(draw(metrics(f"{name}_m{number}")) for number in range(count))
    return Table(name, name, ("container", "service"), rows)


@st.composite
def entity_sets(draw: st.DrawFn, most: int = 4) -> tuple[Entity, ...]:
    """Entities with distinct keys; labels may be anything that can be encoded."""
    names = draw(st.lists(PLAIN, max_size=most, unique=True))
    return tuple(
        Entity("container", (name,), (("id", name), ("pod", draw(ENCODABLE))), draw(details()))
        for name in names
    )


def details() -> st.SearchStrategy[Labels]:
    return st.just(()) | ENCODABLE.map(lambda text: (("image", text),))


@st.composite
def matrices(
    draw: st.DrawFn, rows: int, columns: int, cells: st.SearchStrategy[float] = NUMBERS
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    count = rows * columns
    flat = draw(st.lists(cells, min_size=count, max_size=count))
    return np.array(flat, dtype=np.float64).reshape(rows, columns)


@st.composite
def blocks(draw: st.DrawFn, table: Table, entities: tuple[Entity, ...], mono_ns: int = 0) -> Block:
    return Block(table, entities, draw(matrices(len(entities), len(table.metrics))), mono_ns)


OUTCOMES = st.one_of(
    st.just(Outcome("ok")),
    ENCODABLE.map(lambda text: Outcome("absent", text)),
    ENCODABLE.map(lambda text: Outcome("failed", text)),
)
EVENTS = st.builds(
    Event,
    kind=st.sampled_from(("start", "exit", "oom_exit")),
    at_ns=st.integers(0, 2**62),
    scope=st.just("container"),
    ids=st.tuples(PLAIN, PLAIN),
    labels=st.just(()) | st.tuples(st.tuples(PLAIN, ENCODABLE)),
    facts=st.dictionaries(PLAIN, st.floats(0, 1e9) | ENCODABLE, max_size=3),
)


@st.composite
def frame_sequences(draw: st.DrawFn, most: int = 5) -> list[Frame]:
    """Frames of one run: sets that stay the same object for a while, tables that come and go."""
    schemas = [draw(tables(f"t{number}")) for number in range(draw(st.integers(1, 3)))]
    sets = [draw(entity_sets()) for _ in schemas]
    sequence = draw(st.integers(0, 1000))
    mono_ns = draw(st.integers(0, 2**40))
    frames = []
    for _ in range(draw(st.integers(0, most))):
        here = []
        for number, table in enumerate(schemas):
            if draw(st.integers(0, 4)) == 0:
                sets[number] = draw(entity_sets())
            if draw(st.integers(0, 3)):
                here.append(draw(blocks(table, sets[number], mono_ns + 5)))
        outcomes = draw(st.dictionaries(PLAIN, OUTCOMES, max_size=2))
        events = tuple(draw(st.lists(EVENTS, max_size=2)))
        frames.append(Frame(sequence, draw(st.integers(0, 2**62)), mono_ns, tuple(here), outcomes, events))
        sequence += draw(st.integers(1, 2))
        mono_ns += draw(st.integers(1, 3 * 10**9))
    return frames
