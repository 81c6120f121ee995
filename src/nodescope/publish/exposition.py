"""
Exposition: assembled, not built.

`name{labels} ` is rendered once per series and kept while the set of entities
is unchanged; a scrape joins these prefixes with the values of the tick. A
plan lists every cell that was ever measured for its sets of entities; a cell
that is NaN now leaves no line.

    parts = [prefix 0, value 0, prefix 1, value 1, ...]

The first prefix of a family carries its HELP and TYPE. Families that share no
table are sections of their own: processes come and go at nearly every scrape,
and what is not about them stays as it is. Most numbers stay, too, and so does their text.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Block, Info, Integers, Table, Values
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

    def known(self, key: Hashable) -> Any:
        return self._before.get(key)

    def keep(self, key: Hashable, made: Result) -> Result:
        self._now[key] = made
        return made


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


def info_line(name: str, info: Info, entity: Entity) -> str:
    # Services have no identity to tell beyond their path.
    if not entity.details or entity.scope == "service":
        return ""
    pairs = [*entity.labels, *((label, entity.attribute(label) or "") for label in info.labels)]
    return f"{name}{render_labels(pairs)} 1\n"


@dataclass(slots=True)
class Section:
    """Families that share tables with each other, and with no other family."""

    families: list[ExpositionFamily] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)


def split_sections(families: Sequence[ExpositionFamily]) -> list[Section]:
    """In the order of their first families, which keep theirs."""
    sections: list[Section] = []
    for family in families:
        blocks = {number for number, _ in (*family.sources, *family.infos)}
        section = Section()
        # Two sections that this family joins become one, at the place of the first.
        for other in [one for one in sections if not blocks.isdisjoint(one.blocks)]:
            if not section.families:
                section = other
            else:
                section.families += other.families
                section.blocks += other.blocks
                sections.remove(other)
        if not section.families:
            sections.append(section)
        section.families.append(family)
        section.blocks += sorted(blocks.difference(section.blocks))
    return sections


@dataclass(slots=True)
class CellPicks:
    """Where the cells of a section are, one by one in exposition order, in the values of its blocks laid end to end."""

    places: Integers
    others: list[tuple[Integers, Integers]]
    """(cells, places) of the columns that count where those before were not measured."""
    limits: list[tuple[slice, float]]
    """What stands for +Inf, and in which cells."""

    def take(self, values: Sequence[Values]) -> Values:
        flat = np.concatenate([one.ravel() for one in values])
        cells = flat[self.places]
        for which, places in self.others:
            missing = np.isnan(cells[which])
            cells[which[missing]] = flat[places[missing]]
        for span, no_limit in self.limits:
            part = cells[span]
            part[np.isposinf(part)] = no_limit
        return cells


def list_picks(section: Section, blocks: Sequence[Block]) -> CellPicks:
    offsets, end = {}, 0
    for number in section.blocks:
        offsets[number] = end
        end += blocks[number].values.size
    places: list[Integers] = [np.empty(0, np.int64)]
    others: dict[int, list[tuple[Integers, Integers]]] = {}
    limits = []
    count = 0
    for source in (source for family in section.families for source in family.sources.values()):
        rows, columns = blocks[source.block].values.shape
        rows_at = offsets[source.block] + columns * np.arange(rows)
        places.append(rows_at + source.columns[0])
        for turn, column in enumerate(source.columns[1:]):
            others.setdefault(turn, []).append((np.arange(count, count + rows), rows_at + column))
        if source.no_limit is not None:
            limits.append((slice(count, count + rows), source.no_limit))
        count += rows
    joined = [
        (np.concatenate([which for which, _ in turn]), np.concatenate([at for _, at in turn]))
        for turn in others.values()
    ]
    return CellPicks(np.concatenate(places), joined, limits)


@dataclass(slots=True)
class SectionPlan:
    """Prefixes of one section and where each value comes from, for one state of its entity sets."""

    picks: CellPicks
    measured: NDArray[np.bool_]
    """Which of its cells have a line here."""
    divisors: Values
    factors: Values
    prefixes: list[str] = field(default_factory=list)
    headers: dict[int, str] = field(default_factory=dict)
    """Line number at which a family starts -> the header it carries; ascending."""
    tail: str = ""


@dataclass(slots=True)
class ExpositionPlan:
    """The sections of one state of all entity sets, and what was rendered of them last."""

    key: tuple[object, ...]
    sections: list[tuple[Section, SectionPlan]]
    divisors: Values
    factors: Values
    prefixes: list[str]
    headers: dict[int, str]
    tail: str
    values: Values
    """What the texts were rendered of; NaN where there is none yet."""
    texts: NDArray[np.object_]

    def take(self, blocks: Sequence[Block]) -> tuple[Values, bool]:
        """The values of all lines, and whether all that was measured has a line."""
        chosen, is_complete = [np.empty(0)], True
        for section, plan in self.sections:
            cells = plan.picks.take([blocks[number].values for number in section.blocks])
            is_complete = is_complete and bool(np.isnan(cells[~plan.measured]).all())
            chosen.append(cells[plan.measured])
        # Dividing by a power of ten gives the shortest decimal; multiplying
        # by its inverse does not.
        return np.concatenate(chosen) * self.factors / self.divisors, is_complete

    def render_texts(self, values: Values) -> list[str]:
        """Only what is not as it was; of a missing one the text is not used."""
        # NaN is not equal to itself: what was never rendered is not left out.
        changed = np.flatnonzero((values != self.values) & ~np.isnan(values))
        self.texts[changed] = render_values(values[changed])
        self.values[changed] = values[changed]
        texts: list[str] = self.texts.tolist()
        return texts


class Exposition:
    """Renders blocks as text; one instance per flavour and selection."""

    def __init__(self, mode: str, *, openmetrics: bool) -> None:
        self._mode = mode
        self._openmetrics = openmetrics
        self._plan: ExpositionPlan | None = None
        self._memory = Memory()
        self._rendered: dict[tuple[str, str], RenderedSet] = {}
        """By table and info family, of their newest sets: of the next one, most entities are the same."""

    def render(self, blocks: Sequence[Block]) -> str:
        key = tuple(item for block in blocks for item in (block.table, block.entities))
        plan = self._plan
        if plan is None or not are_same(plan.key, key):
            plan = self._plan = self._build(blocks, key)
        values, is_complete = plan.take(blocks)
        if not is_complete:
            plan = self._plan = self._build(blocks, key)
            values, _ = plan.take(blocks)
        parts: list[str] = [""] * (2 * len(values))
        parts[0::2] = plan.prefixes
        parts[1::2] = plan.render_texts(values)
        missing = np.flatnonzero(np.isnan(values)).tolist()
        if missing:
            self._blank(parts, plan, missing)
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

    def _build(self, blocks: Sequence[Block], key: tuple[object, ...]) -> ExpositionPlan:
        memory = self._memory
        memory.turn()
        tables = [block.table for block in blocks]
        # They change when a source comes or goes; the plan keeps them alive like the sets.
        sections = memory.recall(tuple(map(id, tables)), partial(self._split, tables))
        plans = [(section, self._plan_section(section, blocks)) for section in sections]
        memory.settle()
        names = {table.name for table in tables}
        self._rendered = {key: known for key, known in self._rendered.items() if key[0] in names}
        made = join_sections(key, plans)
        if self._plan:
            keep_texts(self._plan, made)
        return made

    def _split(self, tables: Sequence[Table]) -> list[Section]:
        return split_sections(list_families(tables, self._mode, openmetrics=self._openmetrics))

    def _plan_section(self, section: Section, blocks: Sequence[Block]) -> SectionPlan:
        """The one of before, if all that is measured now has a line in it."""
        place = (id(section), *(id(blocks[number].entities) for number in section.blocks))
        known: SectionPlan | None = self._memory.known(place)
        picks = known.picks if known else list_picks(section, blocks)
        measured = ~np.isnan(picks.take([blocks[number].values for number in section.blocks]))
        if known:
            if not (measured & ~known.measured).any():
                return self._memory.keep(place, known)
            measured |= known.measured
        return self._memory.keep(place, self._render_section(section, blocks, picks, measured))

    def _render_section(
        self, section: Section, blocks: Sequence[Block], picks: CellPicks, measured: NDArray[np.bool_]
    ) -> SectionPlan:
        plan = SectionPlan(picks, measured, np.empty(0), np.empty(0))
        counts: list[int] = []
        place = 0
        for family in section.families:
            start = len(plan.prefixes)
            for source in family.sources.values():
                entities = blocks[source.block].entities
                kept = measured[place : place + len(entities)]
                place += len(entities)
                rendered = self._render_entities(blocks[source.block])
                lines = prefix_lines(family.name, source.metric, rendered, kept)
                plan.prefixes += lines
                counts.append(len(lines))
            if len(plan.prefixes) > start:
                plan.headers[start] = "\n" + family.header.rstrip("\n")
                plan.prefixes[start] = plan.headers[start] + plan.prefixes[start]
            elif family.infos:
                plan.tail += self._render_infos(family, blocks)
        sources = [source for family in section.families for source in family.sources.values()]
        plan.factors = np.repeat([source.factor for source in sources], counts)
        plan.divisors = np.repeat([source.divisor for source in sources], counts)
        return plan

    def _render_entities(self, block: Block) -> list[str]:
        place = (block.table.name, "")
        return self._memory.recall(
            id(block.entities), partial(self._render_each, place, block.entities, render_entity)
        )

    def _render_infos(self, family: ExpositionFamily, blocks: Sequence[Block]) -> str:
        text = ""
        for number, info in family.infos:
            make = partial(info_line, family.name, info)
            place = (blocks[number].table.name, family.name)
            text += "".join(self._render_each(place, blocks[number].entities, make))
        return family.header + text if text else ""

    def _render_each(
        self, place: tuple[str, str], entities: tuple[Entity, ...], make: Callable[[Entity], str]
    ) -> list[str]:
        """Those that stayed are the same objects, and so is their text."""
        before = self._rendered.get(place)
        known = dict(zip(map(id, before.entities), before.texts)) if before else {}
        texts = [make(entity) if (text := known.get(id(entity))) is None else text for entity in entities]
        self._rendered[place] = RenderedSet(entities, texts)
        return texts


def join_sections(key: tuple[object, ...], plans: list[tuple[Section, SectionPlan]]) -> ExpositionPlan:
    nothing = np.empty(0)
    prefixes: list[str] = []
    headers: dict[int, str] = {}
    for _, plan in plans:
        first = len(prefixes)
        headers.update((first + line, header) for line, header in plan.headers.items())
        prefixes += plan.prefixes
    return ExpositionPlan(
        key,
        plans,
        np.concatenate([nothing, *(plan.divisors for _, plan in plans)]),
        np.concatenate([nothing, *(plan.factors for _, plan in plans)]),
        prefixes,
        headers,
        "".join(plan.tail for _, plan in plans),
        np.full(len(prefixes), np.nan),
        np.full(len(prefixes), "", object),
    )


def keep_texts(before: ExpositionPlan, now: ExpositionPlan) -> None:
    """Of the sections that both have, what was rendered stays."""
    starts, start = {}, 0
    for _, plan in before.sections:
        starts[id(plan)] = start
        start += len(plan.prefixes)
    start = 0
    for _, plan in now.sections:
        end = start + len(plan.prefixes)
        was = starts.get(id(plan))
        if was is not None:
            now.values[start:end] = before.values[was : was + end - start]
            now.texts[start:end] = before.texts[was : was + end - start]
        start = end


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
        infos = "".join(
            info_line(family.name, info, entity)
            for number, info in family.infos
            for entity in blocks[number].entities
        )
        if infos:
            tail.append((family.header + infos).encode("utf-8", "replace"))
    yield from tail


def source_lines(
    name: str, source: BlockSource, block: Block, rendered: dict[int, list[str]]
) -> Iterator[str]:
    """Of one family: the lines that come from one block."""
    cells = pick_cells(source, block.values)
    kept = ~np.isnan(cells)
    if id(block.entities) not in rendered:
        rendered[id(block.entities)] = [render_entity(entity) for entity in block.entities]
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


class RenderedSet(NamedTuple):
    """The labels of a set of entities, which it keeps alive: an identity is no other's meanwhile."""

    entities: tuple[Entity, ...]
    texts: list[str]


def render_entity(entity: Entity) -> str:
    """Its labels, without the braces."""
    return render_labels(entity.labels)[1:-1]


def prefix_lines(name: str, metric: Metric, rendered: Sequence[str], kept: NDArray[np.bool_]) -> list[str]:
    """`name{labels} ` of the entities that have a line."""
    fixed = render_labels(metric.labels)[1:-1]
    texts = [rendered[number] for number in np.flatnonzero(kept).tolist()]
    if fixed:
        texts = [f"{text},{fixed}" if text else fixed for text in texts]
    return [f"\n{name}{{{text}}} " if text else f"\n{name} " for text in texts]


def pick_cells(source: BlockSource, values: Values) -> Values:
    """Of one family's block: of several columns the first that was measured."""
    cells = values[:, source.columns[0]]
    for column in source.columns[1:]:
        cells = np.where(np.isnan(cells), values[:, column], cells)
    return cells if source.no_limit is None else np.where(np.isposinf(cells), source.no_limit, cells)
