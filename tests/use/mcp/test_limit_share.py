"""The share of a limit that never changed is memory on another scale: as if it had been read and studied."""

import pytest

from nodescope.base.clock import SystemClock
from nodescope.base.time_range import TimeRange
from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.use.mcp.nodes.backend import Backend, summarize_lives
from nodescope.use.mcp.nodes.local import LocalFolders
from nodescope.use.mcp.tools.shared.limit_share import NAME, OF, SCALED, read_steady, scale_answers
from nodescope.use.mcp.tools.shared.merge_lives import merge_figures

END_MS = 1_770_000_030_000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    place = tmp_path_factory.mktemp("node")
    write_node(DemoRequest(place, 0.25, 6, 7, END_MS, "demo-1"), "0", lambda _: None)
    return LocalFolders([place], SystemClock()).entries()["demo-1"].backend


def test_figures_and_word_are_those_of_the_study(node: Backend) -> None:
    about = node.read_about()
    span = TimeRange(about.from_ms or 0, about.to_ms or 0)
    known = {row.name for row in node.read_metrics()}
    compared = 0
    for life in node.read_lives(span):
        limits = read_steady(node, span, [life.id], known)
        studied = merge_figures(summarize_lives(node, NAME, [life.id], span))
        memory = summarize_lives(node, OF, [life.id], span)
        scaled = scale_answers(memory, limits) if limits else None
        if scaled is None:
            continue
        figures = merge_figures(scaled)
        assert studied is not None
        assert figures is not None
        compared += 1
        assert figures.facts(("trend", "unit", "samples", "missing_share", "limit")) == studied.facts(
            ("trend", "unit", "samples", "missing_share", "limit")
        )
        for name in ("avg", "min", "max", "p95", "stddev"):
            assert figures.facts((name,))[name] == pytest.approx(studied.facts((name,))[name], rel=1e-9)
        assert all(name in scaled[0].findings[0].measures for name in SCALED)
    assert compared >= 3


def test_a_limit_that_is_read_less_often_than_memory_is_not_used(node: Backend) -> None:
    about = node.read_about()
    span = TimeRange(about.from_ms or 0, about.to_ms or 0)
    life = node.read_lives(span)[0]
    memory = summarize_lives(node, OF, [life.id], span)
    assert scale_answers(memory, {life.id: (2.0**30, memory[0].samples)}) is not None
    assert scale_answers(memory, {life.id: (2.0**30, memory[0].samples - 1)}) is None


def test_a_container_without_a_limit_has_none_that_is_steady(node: Backend) -> None:
    about = node.read_about()
    span = TimeRange(about.from_ms or 0, about.to_ms or 0)
    known = {row.name for row in node.read_metrics()}
    ids = [life.id for life in node.read_lives(span)]
    limited = [one for one in ids if read_steady(node, span, [one], known)]
    assert read_steady(node, span, limited, known).keys() == set(limited)
    assert read_steady(node, span, [*limited, "nobody"], known) == {}
    assert read_steady(node, span, limited, known - {NAME}) == {}
