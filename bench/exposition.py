"""
12,000 series as text: our assembled exposition against prometheus_client.

Both have the same names, labels and values, which is checked once through the
parser. Every round sets new values, outside of the measured time, so that no
number can be kept as text; then each renders all of them.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.cgroups import container_path

from bench.result import Goal, Options, Row, median
from nodescope.base.block import Block, Table
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.publish.exposition import Exposition

CONTAINERS = 400
METRICS = 30
GOAL = Goal(1 / 15, "ratio")


@dataclass
class Peer:
    """The same series in prometheus_client: one child per series."""

    registry: CollectorRegistry
    children: list[list[Counter | Gauge]]
    values: np.ndarray

    def set(self, values: np.ndarray) -> None:
        """A Counter only goes up, by the difference."""
        for column, children in enumerate(self.children):
            for row, child in enumerate(children):
                child.inc(float(values[row, column] - self.values[row, column]))
        self.values = values

    def render(self) -> str:
        return generate_latest(self.registry).decode()


def run(options: Options) -> list[Row]:
    disable_created_metrics()  # type: ignore[no-untyped-call]
    table, entities = build_table(), build_entities()
    exposition, peer = Exposition("compatible", openmetrics=False), build_peer(table, entities)
    generator = np.random.default_rng(7)
    values = np.zeros((CONTAINERS, METRICS))
    spent: dict[str, list[float]] = {"ours": [], "theirs": []}
    for turn in range(options.rounds):
        # Whole numbers: seconds are kept in microseconds until they are shown.
        values = values + generator.integers(1, 1_000_000, size=values.shape)
        peer.set(values / np.array([1 / metric.scale for metric in table.metrics]).round())
        block = Block(table, entities, values.copy(), turn)
        ours = measure(partial(exposition.render, [block]), spent["ours"])
        theirs = measure(peer.render, spent["theirs"])
        if turn == 0:
            check(ours, theirs)
    return [
        Row(
            f"{CONTAINERS * METRICS:,} series as text",
            pick(spent["ours"]),
            "s",
            pick(spent["theirs"]),
            name,
            goal,
        )
        for pick, name, goal in (
            (median, "prometheus_client, median", GOAL),
            (min, "prometheus_client, min", None),
        )
    ]


def measure(render: Callable[[], str], into: list[float]) -> str:
    start = time.process_time()
    text = render()
    into.append(time.process_time() - start)
    return text


def check(ours: str, theirs: str) -> None:
    mine, other = parse(ours), parse(theirs)
    if mine.keys() != other.keys() or len(mine) != CONTAINERS * METRICS:
        raise RuntimeError(f"not the same series: {len(mine)} and {len(other)}")
    far = [key for key, value in mine.items() if abs(value - other[key]) > 1e-9 * abs(value)]
    if far:
        raise RuntimeError(f"not the same values: {far[0]}: {mine[far[0]]} and {other[far[0]]}")


def parse(text: str) -> Mapping[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def build_table() -> Table:
    """A third seconds from microseconds, a third counts, a third bytes."""
    third = METRICS // 3
    seconds = [
        Metric(
            f"bench.seconds{number}",
            "counter",
            "Some time.",
            f"container_bench{number}_seconds_total",
            scale=1e-6,
        )
        for number in range(third)
    ]
    counts = [
        Metric(f"bench.count{number}", "counter", "Some count.", f"container_bench{number}_total")
        for number in range(third)
    ]
    sizes = [
        Metric(f"bench.bytes{number}", "gauge", "Some size.", f"container_bench{number}_bytes")
        for number in range(third)
    ]
    return Table("bench", "bench", ("container",), (*seconds, *counts, *sizes))


def build_entities() -> tuple[Entity, ...]:
    return tuple(build_entity(number) for number in range(CONTAINERS))


def build_entity(number: int) -> Entity:
    identifier = f"{number:064x}"
    path = f"/{container_path(f'{number:08x}-0000-4000-8000-000000000000', identifier)}"
    image = "registry.example/team/service:1.2.3"
    names = (
        ("namespace", "shop"),
        ("pod", f"service-{number}"),
        ("container", "main"),
        ("image", image),
        ("id", path),
    )
    return Entity("container", (identifier, str(number)), names)


def build_peer(table: Table, entities: tuple[Entity, ...]) -> Peer:
    registry = CollectorRegistry()
    names = [name for name, _ in entities[0].labels]
    children: list[list[Counter | Gauge]] = []
    for metric in table.metrics:
        kind = Counter if metric.kind == "counter" else Gauge
        family = kind(metric.published or "", metric.help, names, registry=registry)
        children.append([family.labels(**dict(entity.labels)) for entity in entities])
    return Peer(registry, children, np.zeros((len(entities), len(table.metrics))))
