"""
Exposition: assembled, not built.

`name{labels} ` is rendered once per series and kept while the set of entities
is unchanged; a scrape joins these prefixes with the values of the tick. A
plan lists every cell that was ever measured for its sets of entities; a cell
that is NaN now leaves no line.

    parts = [prefix 0, value 0, prefix 1, value 1, ...]

The first prefix of a family carries its HELP and TYPE.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Block, Info, Table, Values
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.serve.prometheus_text import EXACT, render_header, render_labels

# Names that the requirement documents fix: never prefixed.
SEED_NAMES = frozenset(
    [
        "cpu_load_1m",
        "node_cpu_utilization_ratio",
        "node_cpu_pressure_avg10",
        "node_memory_pressure_avg10",
        "node_memory_total_bytes",
        "node_memory_available_bytes",
        "node_health_score",
    ]
)
# What cAdvisor writes where there is no limit: 0, or no series at all. A rule
# for its names (`> 0`, usage / limit) would take +Inf for a limit, and never fire.
NO_LIMIT = {
    "container_spec_memory_limit_bytes": 0.0,
    "container_threads_max": 0.0,
    "container_spec_cpu_quota": np.nan,
}
Result = TypeVar("Result")


def render_values(values: Values) -> list[str]:
    """Many numbers at once: whole ones as integers, which is shorter and faster."""
    texts = np.empty(len(values), dtype=object)
    whole = (values == np.floor(values)) & (np.abs(values) < EXACT)
    broken = ~whole & np.isfinite(values)
    texts[whole] = list(map(repr, values[whole].astype(np.int64).tolist()))
    texts[broken] = list(map(repr, values[broken].tolist()))
    texts[np.isposinf(values)] = "+Inf"
    texts[np.isneginf(values)] = "-Inf"
    result: list[str] = texts.tolist()
    return result


def choose_name(name: str, mode: str) -> str:
    """`own` keeps our series apart from kubelet's and node_exporter's."""
    if mode == "own" and name.startswith(("container_", "node_")) and name not in SEED_NAMES:
        return f"nodescope_{name}"
    return name


def type_of(metric: Metric, name: str) -> str:
    if metric.untyped:
        return "untyped"
    # The linter wants a counter to end in _total; cAdvisor's failcnt does not.
    return "counter" if metric.kind == "counter" and name.endswith("_total") else "gauge"


@dataclass(slots=True)
class BlockSource:
    """Where a family's cells come from: a block, and columns of which the first measured counts."""

    block: int
    columns: list[int]
    metric: Metric
    factor: float
    divisor: float
    no_limit: float | None = None
    """What stands for +Inf; None where +Inf itself does."""

    @property
    def pick(self) -> "Pick":
        return self.block, self.columns, self.no_limit


Pick = tuple[int, list[int], float | None]


@dataclass(slots=True)
class ExpositionFamily:
    """All series of one published name."""

    name: str
    header: str
    sources: dict[tuple[int, tuple[tuple[str, str], ...]], BlockSource] = field(default_factory=dict)
    infos: list[tuple[int, Info]] = field(default_factory=list)
    """Of these blocks every entity has a line that does not change."""


class Memory:
    """
    What was rendered of sets of entities, by the set's identity.

    One set changes (processes do at nearly every scrape), the others do not:
    only what the newest plan uses is kept, and that plan keeps the sets alive,
    so that an identity is never another's.
    """

    def __init__(self) -> None:
        self._before: dict[Hashable, Any] = {}
        self._now: dict[Hashable, Any] = {}

    def turn(self) -> None:
        """A new plan begins: what the last one used is at hand until `settle`."""
        self._before, self._now = self._now, {}

    def settle(self) -> None:
        """The plan is made. Of thousands of containers that went, what was rendered goes with them."""
        self._before = {}

    def recall(self, key: Hashable, make: Callable[[], Result]) -> Result:
        if key not in self._now:
            self._now[key] = self._before[key] if key in self._before else make()
        known: Result = self._now[key]
        return known


def list_published(metric: Metric, mode: str) -> Iterator[tuple[str, float | None]]:
    """Its names, each with what stands for no limit; beside a name of cAdvisor's the truth under ours."""
    for name in (metric.published, *metric.also):
        if name and mode == "compatible" and name in NO_LIMIT:
            yield name, NO_LIMIT[name]
            yield f"nodescope_{name}", None
        elif name:
            yield choose_name(name, mode), None


def list_families(tables: Sequence[Table], mode: str, *, openmetrics: bool) -> list[ExpositionFamily]:
    """Published names in the order of their tables, each once."""
    families: dict[str, ExpositionFamily] = {}

    def open_family(name: str, metric_type: str, sentence: str) -> ExpositionFamily:
        if name not in families:
            families[name] = ExpositionFamily(
                name, render_header(name, metric_type, sentence, openmetrics=openmetrics)
            )
        return families[name]

    for number, table in enumerate(tables):
        for column, metric in enumerate(table.metrics):
            for name, no_limit in list_published(metric, mode):
                family = open_family(name, type_of(metric, name), metric.help)
                fresh = BlockSource(number, [], metric, *split_scale(metric.scale), no_limit)
                family.sources.setdefault((number, metric.labels), fresh).columns.append(column)
        if table.info:
            name = choose_name(table.info.published, mode)
            open_family(name, "gauge", table.info.help).infos.append((number, table.info))
    return list(families.values())


def info_lines(name: str, info: Info, entities: tuple[Entity, ...]) -> list[str]:
    lines = []
    for entity in entities:
        # Services have no identity to tell beyond their path.
        if entity.details and entity.scope != "service":
            pairs = [*entity.labels, *((label, entity.attribute(label) or "") for label in info.labels)]
            lines.append(f"{name}{render_labels(pairs)} 1\n")
    return lines


@dataclass(slots=True)
class ExpositionPlan:
    """Prefixes and where each value comes from, for one state of all entity sets."""

    key: tuple[object, ...]
    measured: NDArray[np.bool_]
    """Which cells, of all in exposition order, have a line here."""
    picks: list[Pick]
    """(block, columns, no limit): cells in exposition order are these columns, one after the other."""
    divisors: Values
    factors: Values
    prefixes: list[str]
    headers: dict[int, str]
    """Line number at which a family starts -> the header it carries; ascending."""
    tail: str


class Exposition:
    """Renders blocks as text; one instance per flavour and selection."""

    def __init__(self, mode: str, *, openmetrics: bool) -> None:
        self._mode = mode
        self._openmetrics = openmetrics
        self._plan: ExpositionPlan | None = None
        self._memory = Memory()

    def render(self, blocks: Sequence[Block]) -> str:
        key = tuple(item for block in blocks for item in (block.table, block.entities))
        plan = self._plan
        if plan is None or not are_same(plan.key, key):
            plan = self._plan = self._build(blocks, key, None)
        cells = pick_cells(plan.picks, blocks)
        if (~np.isnan(cells) & ~plan.measured).any():
            plan = self._plan = self._build(blocks, key, plan.measured)
        values = cells[plan.measured]
        # Dividing by a power of ten gives the shortest decimal; multiplying
        # by its inverse does not.
        values = values * plan.factors / plan.divisors
        parts: list[str] = [""] * (2 * len(values))
        parts[0::2] = plan.prefixes
        missing = np.isnan(values)
        if missing.any():
            parts[1::2] = render_values(np.where(missing, 0.0, values))
            self._blank(parts, plan, np.flatnonzero(missing).tolist())
        else:
            parts[1::2] = render_values(values)
        first = next((place for place, part in enumerate(parts) if part), None)
        if first is None:
            return plan.tail
        # Every line brings the break before it; the very first needs none.
        parts[first] = parts[first][1:]
        parts += ("\n", plan.tail)
        return "".join(parts)

    def _blank(self, parts: list[str], plan: ExpositionPlan, missing: list[int]) -> None:
        """Remove lines without a value; a header moves to the family's next line."""
        gone = set(missing)
        for line in missing:
            parts[2 * line] = parts[2 * line + 1] = ""
        for start, end in pairwise([*plan.headers, len(plan.prefixes)]):
            if start in gone:
                heir = next((line for line in range(start, end) if line not in gone), None)
                if heir is not None:
                    parts[2 * heir] = plan.headers[start] + plan.prefixes[heir]

    def _build(
        self, blocks: Sequence[Block], key: tuple[object, ...], before: NDArray[np.bool_] | None
    ) -> ExpositionPlan:
        memory = self._memory
        memory.turn()
        tables = [block.table for block in blocks]
        # They change when a source comes or goes; the plan keeps them alive like the sets.
        make = partial(list_families, tables, self._mode, openmetrics=self._openmetrics)
        families = memory.recall(tuple(map(id, tables)), make)
        picks = [source.pick for family in families for source in family.sources.values()]
        cells = pick_cells(picks, blocks)
        measured = ~np.isnan(cells) if before is None else ~np.isnan(cells) | before
        plan = ExpositionPlan(key, measured, picks, np.empty(0), np.empty(0), [], {}, "")
        rendered = [
            memory.recall(id(entities), partial(render_entities, entities))
            for entities in (block.entities for block in blocks)
        ]
        counts: list[int] = []
        place = 0
        for family in families:
            start = len(plan.prefixes)
            for source in family.sources.values():
                entities = blocks[source.block].entities
                kept = measured[place : place + len(entities)]
                place += len(entities)
                lines = memory.recall(
                    (family.name, source.metric.labels, id(entities), kept.tobytes()),
                    partial(prefix_lines, family.name, source.metric, rendered[source.block], kept),
                )
                plan.prefixes += lines
                counts.append(len(lines))
            if len(plan.prefixes) > start:
                plan.headers[start] = "\n" + family.header.rstrip("\n")
                plan.prefixes[start] = plan.headers[start] + plan.prefixes[start]
            elif family.infos:
                plan.tail += self._render_infos(family, blocks)
        sources = [source for family in families for source in family.sources.values()]
        plan.factors = np.repeat([source.factor for source in sources], counts)
        plan.divisors = np.repeat([source.divisor for source in sources], counts)
        memory.settle()
        return plan

    def _render_infos(self, family: ExpositionFamily, blocks: Sequence[Block]) -> str:
        lines: list[str] = []
        for number, info in family.infos:
            entities = blocks[number].entities
            make = partial(info_lines, family.name, info, entities)
            lines += self._memory.recall((family.name, id(entities)), make)
        return family.header + "".join(lines) if lines else ""


def count_cells(blocks: Sequence[Block]) -> int:
    return sum(block.values.size for block in blocks)


def render_pieces(blocks: Sequence[Block], mode: str, *, openmetrics: bool) -> Iterator[bytes]:
    """
    The same text family by family, with nothing kept.

    The prefixes of 5,000 containers take twice the memory of their text, and
    the text is 37 MiB: where there are so many series, a scrape costs more time instead.
    """
    families = list_families([block.table for block in blocks], mode, openmetrics=openmetrics)
    rendered: dict[int, list[str]] = {}
    tail = []
    for family in families:
        lines = [
            line
            for source in family.sources.values()
            for line in source_lines(family.name, source, blocks[source.block], rendered)
        ]
        if lines:
            yield (family.header + "".join(lines)).encode("utf-8", "replace")
            continue
        infos = [
            line
            for number, info in family.infos
            for line in info_lines(family.name, info, blocks[number].entities)
        ]
        if infos:
            tail.append((family.header + "".join(infos)).encode("utf-8", "replace"))
    yield from tail


def source_lines(
    name: str, source: BlockSource, block: Block, rendered: dict[int, list[str]]
) -> Iterator[str]:
    """Of one family: the lines that come from one block."""
    cells = pick_cells([(0, source.columns, source.no_limit)], [block])
    kept = ~np.isnan(cells)
    if id(block.entities) not in rendered:
        rendered[id(block.entities)] = render_entities(block.entities)
    prefixes = prefix_lines(name, source.metric, rendered[id(block.entities)], kept)
    values = render_values(cells[kept] * source.factor / source.divisor)
    return (f"{prefix[1:]}{value}\n" for prefix, value in zip(prefixes, values))


def are_same(known: Sequence[object], now: Sequence[object]) -> bool:
    """The very same objects, one by one: they are not compared by what is in them."""
    return len(known) == len(now) and all(one is other for one, other in zip(known, now))


def split_scale(scale: float) -> tuple[float, float]:
    """Scale == factor / divisor, with one of them 1."""
    inverse = float(round(1 / scale)) if 0 < scale < 1 else 1.0
    # Only the inverse of a whole number is a divisor: 0.01 is, 0.3 is not.
    return (1.0, inverse) if abs(inverse * scale - 1) < 1e-9 else (scale, 1.0)


def render_entities(entities: tuple[Entity, ...]) -> list[str]:
    """Their labels, without the braces."""
    return [render_labels(entity.labels)[1:-1] for entity in entities]


def prefix_lines(name: str, metric: Metric, rendered: Sequence[str], kept: NDArray[np.bool_]) -> list[str]:
    """`name{labels} ` of the entities that have a line."""
    fixed = render_labels(metric.labels)[1:-1]
    lines = []
    for number in np.flatnonzero(kept).tolist():
        inside = ",".join(part for part in (rendered[number], fixed) if part)
        lines.append(f"\n{name}{{{inside}}} " if inside else f"\n{name} ")
    return lines


def pick_cells(picks: Sequence[Pick], blocks: Sequence[Block]) -> Values:
    """All cells in exposition order; of several columns the first that was measured."""
    chosen = []
    for number, columns, no_limit in picks:
        values = blocks[number].values
        cells = values[:, columns[0]]
        for column in columns[1:]:
            cells = np.where(np.isnan(cells), values[:, column], cells)
        if no_limit is not None:
            cells = np.where(np.isposinf(cells), no_limit, cells)
        chosen.append(cells)
    return np.concatenate(chosen) if chosen else np.empty(0)
