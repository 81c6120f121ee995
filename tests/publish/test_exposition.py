"""Exposition against a naive renderer and prometheus_client's parsers, over changing sets of entities."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text
from tests.strategies import ENCODABLE, NUMBERS, entity_sets, examples, matrices, tables

from nodescope.base.block import Block, Info, Table
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.publish.exposition import Exposition, choose_name, render_values, split_scale
from nodescope.serve.prometheus_text import render_labels, render_value


def naive_value(raw: float, scale: float) -> str:
    value = raw / round(1 / scale) if scale < 1 else raw * scale
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def naive_labels(pairs: Sequence[tuple[str, str]]) -> str:
    shown = []
    for name, value in pairs:
        escaped = "".join({"\\": "\\\\", '"': '\\"', "\n": "\\n"}.get(letter, letter) for letter in value)
        shown.append(f'{name}="{escaped}"')
    return "{" + ",".join(shown) + "}" if shown else ""


def naive_render(blocks: Sequence[Block], *, openmetrics: bool) -> str:
    """Family by family, cell by cell; a cell that is NaN leaves no line, a family without lines no header."""
    order: dict[str, tuple[Metric, list[str]]] = {}
    info = ""
    for block in blocks:
        for column, metric in enumerate(block.table.metrics):
            if not metric.published:
                continue
            _, lines = order.setdefault(metric.published, (metric, []))
            for entity, row in zip(block.entities, block.values.tolist()):
                if not math.isnan(row[column]):
                    labels = naive_labels([*entity.labels, *metric.labels])
                    lines.append(f"{metric.published}{labels} {naive_value(row[column], metric.scale)}\n")
        if block.table.info:
            infos = [
                f"{block.table.info.published}"
                + naive_labels(
                    [*entity.labels, *((k, dict(entity.details).get(k, "")) for k in block.table.info.labels)]
                )
                + " 1\n"
                for entity in block.entities
                if entity.details
            ]
            if infos:
                info += f"# HELP {block.table.info.published} {block.table.info.help}\n"
                info += f"# TYPE {block.table.info.published} gauge\n" + "".join(infos)
    text = ""
    for name, (metric, lines) in order.items():
        if not lines:
            continue
        kind = "counter" if metric.kind == "counter" and name.endswith("_total") else "gauge"
        kind = "untyped" if metric.untyped else kind
        family = name.removesuffix("_total") if openmetrics and kind == "counter" else name
        kind = "unknown" if openmetrics and kind == "untyped" else kind
        sentence = metric.help.replace("\\", "\\\\").replace("\n", "\\n")
        text += f"# HELP {family} {sentence}\n# TYPE {family} {kind}\n" + "".join(lines)
    return text + info


@st.composite
def scrapes(draw: st.DrawFn) -> list[list[Block]]:
    """Scrapes of one instance: sets change now and then, NaN comes and goes in the cells."""
    schemas = [draw(tables(f"t{number}")) for number in range(draw(st.integers(1, 3)))]
    if draw(st.booleans()):
        schemas[0] = Table(
            "t0", "t0", ("container",), schemas[0].metrics, Info("t_info", "Always 1.", ("image",))
        )
    sets = [draw(entity_sets(3)) for _ in schemas]
    rounds = []
    for _ in range(draw(st.integers(1, 4))):
        blocks = []
        for number, table in enumerate(schemas):
            if draw(st.integers(0, 3)) == 0:
                sets[number] = draw(entity_sets(3))
            values = draw(matrices(len(sets[number]), len(table.metrics), NUMBERS | st.just(math.nan)))
            blocks.append(Block(table, sets[number], values, 0))
        rounds.append(blocks)
    return rounds


def make_block(*rows: float, name: str = "x_m", labels: tuple[tuple[str, str], ...] = ()) -> Block:
    table = Table("t", "t", ("container",), (Metric("m", "gauge", "A number.", name),))
    entities = tuple(Entity("container", (str(n),), (("id", str(n)), *labels)) for n in range(len(rows)))
    return Block(table, entities, np.array(rows, dtype=np.float64).reshape(len(rows), 1), 0)


def two_families(first: float, second: float) -> Block:
    table = Table("t", "t", ("node",), (Metric("a", "gauge", "A.", "x_a"), Metric("b", "gauge", "B.", "x_b")))
    return Block(table, TWO, np.array([[first, second]]), 0)


TWO = (Entity("node"),)


@given(scrapes(), st.booleans())
@examples(500)
@example([[two_families(1.0, 2.0)], [two_families(math.nan, 2.0)]], False)
@example([[two_families(1.0, 2.0)], [two_families(math.nan, math.nan)]], False)
@example([[two_families(math.nan, 2.0)], [two_families(1.0, 2.0)], [two_families(1.0, math.nan)]], True)
def test_exposition_equals_a_naive_renderer(rounds: list[list[Block]], openmetrics: bool) -> None:
    """forall sequences of blocks on one instance: render(blocks) == naive(blocks)"""
    exposition = Exposition("compatible", openmetrics=openmetrics)
    for blocks in rounds:
        assert exposition.render(blocks) == naive_render(blocks, openmetrics=openmetrics)


@given(scrapes())
@examples(500)
def test_the_text_is_read_back_by_the_parser_of_prometheus(rounds: list[list[Block]]) -> None:
    """forall blocks: every cell that was measured comes back with its labels and value."""
    exposition = Exposition("compatible", openmetrics=False)
    for blocks in rounds:
        found = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in parse_text(exposition.render(blocks))
            for sample in family.samples
        }
        for block in blocks:
            for column, metric in enumerate(block.table.metrics):
                for entity, row in zip(block.entities, block.values.tolist()):
                    key = (metric.published or "", tuple(sorted(entity.labels)))
                    if not metric.published or math.isnan(row[column]):
                        assert key not in found
                    else:
                        assert found[key] == pytest.approx(row[column] * metric.scale)


@given(st.lists(ENCODABLE, min_size=1, max_size=3), st.lists(NUMBERS, min_size=1, max_size=3))
@examples(500)
@example(['"', "\\", "\n"], [1.0])
@example(["\\n"], [math.inf])
def test_hostile_labels_survive_the_parser_of_openmetrics(texts: list[str], numbers: list[float]) -> None:
    entities = tuple(
        Entity("container", (str(n),), (("id", str(n)), ("pod", t))) for n, t in enumerate(texts)
    )
    table = Table("t", "t", ("container",), (Metric("m", "gauge", "A number.", "x_m"),))
    values = np.resize(np.array(numbers), len(texts)).reshape(-1, 1)
    text = Exposition("compatible", openmetrics=True).render([Block(table, entities, values, 0)])
    found = {
        s.labels["id"]: (s.labels["pod"], s.value)
        for family in parse_openmetrics(text + "# EOF\n")  # type: ignore[no-untyped-call]
        for s in family.samples
    }
    for number, (pod, value) in enumerate(zip(texts, values[:, 0].tolist())):
        if math.isnan(value):
            assert str(number) not in found
        else:
            assert found[str(number)] == (pod, value)


def test_a_first_family_without_a_value_leaves_no_blank_line() -> None:
    """OpenMetrics refuses a blank line, and so would a strict scraper."""
    exposition = Exposition("compatible", openmetrics=True)
    exposition.render([two_families(1.0, 2.0)])
    text = exposition.render([two_families(math.nan, 2.0)])
    assert text.startswith("# HELP x_b")
    families = list(parse_openmetrics(text + "# EOF\n"))  # type: ignore[no-untyped-call]
    assert [family.name for family in families] == ["x_b"]


def test_no_block_is_no_text() -> None:
    assert Exposition("compatible", openmetrics=False).render([]) == ""
    assert Exposition("compatible", openmetrics=False).render([make_block()]) == ""


@given(st.lists(st.floats(allow_nan=False), max_size=20))
@examples(500)
@example([-0.0, 2.0**53, -(2.0**53), 2.0**53 - 1, 0.1, 1e-320])
def test_many_values_are_written_like_one(values: list[float]) -> None:
    """render_values(v) == [render_value(x) for x in v], and each reads back as the same number."""
    texts = render_values(np.array(values, dtype=np.float64))
    assert texts == [render_value(value) if math.isinf(value) or value else "0" for value in values]
    assert [float(text) for text in texts] == values


@pytest.mark.parametrize("scale", [1e-3, 1e-6, 1e-9, 0.01, 1 / 128, 1 / 250, 0.75, 0.3, 1.0, 1024.0, 2.5])
def test_a_scale_is_split_without_changing_it(scale: float) -> None:
    """Scale == factor / divisor, for scales that are no inverse of a whole number, too."""
    factor, divisor = split_scale(scale)
    assert factor / divisor == pytest.approx(scale, rel=1e-12)


def test_a_first_measured_column_speaks_for_several() -> None:
    """On a hybrid node v1 and v2 publish the same name; a cell comes from whichever has it."""
    table = Table(
        "t", "t", ("container",), (Metric("v1", "gauge", "M.", "x_m"), Metric("v2", "gauge", "M.", "x_m"))
    )
    entities = tuple(Entity("container", (n,), (("id", n),)) for n in "abc")
    values = np.array([[1.0, math.nan], [math.nan, 2.0], [3.0, 4.0]])
    text = Exposition("compatible", openmetrics=False).render([Block(table, entities, values, 0)])
    assert text.splitlines()[2:] == ['x_m{id="a"} 1', 'x_m{id="b"} 2', 'x_m{id="c"} 3']


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("node_load1", "nodescope_node_load1"),
        ("container_processes", "nodescope_container_processes"),
        ("node_health_score", "node_health_score"),
        ("node_memory_total_bytes", "node_memory_total_bytes"),
        ("cpu_process_rss_bytes", "cpu_process_rss_bytes"),
    ],
)
def test_own_names_leave_what_the_requirements_fix(name: str, own: str) -> None:
    assert choose_name(name, "own") == own
    assert choose_name(name, "compatible") == name


def test_no_labels_are_no_braces() -> None:
    assert render_labels(()) == ""
    assert render_labels((("a", 'x"\\\n'),)) == '{a="x\\"\\\\\\n"}'


LIMIT = Metric("limit", "gauge", "Limit.", "container_spec_memory_limit_bytes", unit="bytes")
QUOTA = Metric("quota", "gauge", "Quota.", "container_spec_cpu_quota")


def render_limits(mode: str, limit: float, quota: float) -> list[str]:
    table = Table("limits", "container", ("container",), (LIMIT, QUOTA))
    block = Block(table, (Entity("container", ("a",), (("id", "/a"),)),), np.array([[limit, quota]]), 0)
    text = Exposition(mode, openmetrics=False).render([block])
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_no_limit_is_what_cadvisor_writes_under_its_names_and_the_truth_under_ours() -> None:
    assert render_limits("compatible", np.inf, np.inf) == [
        'container_spec_memory_limit_bytes{id="/a"} 0',
        'nodescope_container_spec_memory_limit_bytes{id="/a"} +Inf',
        'nodescope_container_spec_cpu_quota{id="/a"} +Inf',
    ]
    assert render_limits("own", np.inf, np.inf) == [
        'nodescope_container_spec_memory_limit_bytes{id="/a"} +Inf',
        'nodescope_container_spec_cpu_quota{id="/a"} +Inf',
    ]


def test_a_limit_is_the_same_under_both_names() -> None:
    assert render_limits("compatible", 1024.0, 50_000.0) == [
        'container_spec_memory_limit_bytes{id="/a"} 1024',
        'nodescope_container_spec_memory_limit_bytes{id="/a"} 1024',
        'container_spec_cpu_quota{id="/a"} 50000',
        'nodescope_container_spec_cpu_quota{id="/a"} 50000',
    ]


class CountedLabels(tuple[tuple[str, str], ...]):
    """Labels that say how often they were looked through."""

    __slots__ = ()
    looked = 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        CountedLabels.looked += 1
        return super().__iter__()


def test_of_a_set_that_changed_only_who_came_is_rendered() -> None:
    """Two hundred containers stay, one comes at each scrape: nobody else's labels are looked at again."""
    metrics = (Metric("a", "gauge", "A.", "a_bytes"), Metric("b", "counter", "B.", "b_total"))
    table = Table(
        "container", "container", ("container",), metrics, Info("container_info", "Who.", ("image",))
    )
    entities = tuple(
        Entity("container", (str(number),), CountedLabels([("name", f"n{number}")]), (("image", "i"),))
        for number in range(200)
    )
    exposition = Exposition("compatible", openmetrics=False)

    def render(shown: tuple[Entity, ...]) -> tuple[int, str]:
        before = CountedLabels.looked
        text = exposition.render([Block(table, shown, np.ones((len(shown), 2)), 0)])
        return CountedLabels.looked - before, text

    _, first = render(entities[:199])
    looked, second = render(entities)
    alone, _ = render(entities[:198])
    # For its series once, and twice for its line of the info family.
    assert (looked, alone) == (3, 0)
    assert second.count('name="n199"') == 3
    assert [line for line in second.splitlines() if "n199" not in line] == first.splitlines()
