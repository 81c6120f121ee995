"""What a scrape gets: the format it prefers, the sources it asks for, nothing of a source that failed."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import NODES, FixtureNode, TurnableClock, build_parts_at

from nodescope.base.block import Block, Table
from nodescope.base.clock import SystemClock
from nodescope.base.entity import NODE
from nodescope.base.errors import RequestRejected
from nodescope.base.frame import OK, Event, Frame, Outcome
from nodescope.base.metric import Metric
from nodescope.base.self_counters import SamplerCounters
from nodescope.hold.ring import Ring
from nodescope.publish.exposition import Exposition, render_pieces
from nodescope.publish.scrape import IDLE_MOST, Scrape, compress_pieces, expand_sources, prefers_openmetrics
from nodescope.publish.self_metrics import OBITUARIES, Obituaries, SelfMetrics

SECOND = 10**9


@pytest.mark.parametrize(
    ("accept", "wants"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0", True),
        ("application/openmetrics-text; version=1.0.0; q=0.5, text/plain; q=0.9", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=abc", False),
        ("application/openmetrics-text;version=2.0.0", False),
        ("APPLICATION/OpenMetrics-Text", True),
        # In the manner of Prometheus.
        (
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            True,
        ),
    ],
)
def test_openmetrics_is_sent_to_who_prefers_it(accept: str, wants: bool) -> None:
    assert prefers_openmetrics(accept) is wants


@given(st.text(max_size=40))
def test_any_accept_header_is_answered(accept: str) -> None:
    assert prefers_openmetrics(accept) in (True, False)


@given(st.binary(max_size=3000))
def test_gzip_is_undone_by_gzip(body: bytes) -> None:
    assert gzip.decompress(compress_pieces([body[:7], body[7:]])) == body


def test_groups_are_resolved_and_a_wrong_source_is_refused_by_name() -> None:
    assert expand_sources(("gpu", "cpu"), ("cpu", "memory")) == ("amd", "cpu", "nvidia", "pod_resources")
    with pytest.raises(RequestRejected, match='did you mean "memory"'):
        expand_sources(("memroy",), ("cpu", "memory"))


def make_scrape() -> Scrape:
    ring = Ring(120.0, 10**9, 1.0)
    return Scrape(ring, SelfMetrics(SamplerCounters(), ring, Obituaries()), SystemClock(), "compatible")


def make_frame(sequence: int, outcomes: dict[str, Outcome]) -> Frame:
    blocks = tuple(
        Block(
            Table(name, name, ("node",), (Metric(f"{name}.m", "gauge", "A number.", f"x_{name}"),)),
            (NODE,),
            np.array([[float(sequence)]]),
            0,
        )
        for name in outcomes
    )
    return Frame(sequence, 0, sequence * SECOND, blocks, outcomes)


def test_a_source_that_failed_shows_its_outcome_and_no_numbers() -> None:
    scrape = make_scrape()
    scrape.ring.accept(make_frame(1, {"cpu": OK, "memory": Outcome("failed", "broken")}))
    text = scrape.render((), openmetrics=False)
    assert "x_cpu 1\n" in text
    assert "x_memory " not in text
    assert 'nodescope_source_up{source="memory"} 0' in text


def test_a_scrape_of_one_source_has_nothing_else() -> None:
    scrape = make_scrape()
    scrape.ring.accept(make_frame(1, {"cpu": OK, "memory": OK}))
    assert scrape.render(("memory",), openmetrics=False).splitlines()[2:] == ["x_memory 1"]


def test_every_tick_is_shown_and_openmetrics_ends_with_its_end() -> None:
    scrape = make_scrape()
    for sequence in (1, 2):
        scrape.ring.accept(make_frame(sequence, {"cpu": OK}))
        text = scrape.render((), openmetrics=True)
        assert f"x_cpu {sequence}\n" in text
        assert text.endswith("# EOF\n")


def test_all_who_ask_in_one_tick_share_one_text() -> None:
    """A hundred clients that do not read would else hold a hundred of them."""
    scrape = make_scrape()
    scrape.ring.accept(make_frame(1, {"cpu": OK}))
    first, second = (next(scrape.read((), openmetrics=False)) for _ in range(2))
    assert first is second
    scrape.ring.accept(make_frame(2, {"cpu": OK}))
    assert b"x_cpu 2" in next(scrape.read((), openmetrics=False))


def test_self_metrics_exist_before_the_first_tick() -> None:
    text = make_scrape().render((), openmetrics=False)
    for name in (
        "metrics_samples_available",
        "pcm_errors_total",
        "api_latency_seconds_count",
        "nodescope_build_info",
    ):
        assert f"\n{name}" in f"\n{text}"


# -- obituaries -----------------------------------------------------------------


def make_exit(number: int, kind: str = "exit", scope: str = "container") -> Event:
    facts = {"cpu_seconds": 1.5, "lifetime_seconds": 2.0, "memory_peak_bytes": 4096.0}
    return Event(kind, 0, scope, (str(number),), (("pod", f"p{number}"), ("id", f"/{number}")), facts)


def bury(obituaries: Obituaries, mono_ns: int, *events: Event) -> None:
    obituaries.accept(Frame(0, 0, mono_ns, (), {}, events))


def test_an_obituary_is_shown_for_a_minute_and_counted_for_ever() -> None:
    obituaries = Obituaries()
    bury(obituaries, 0, make_exit(1), make_exit(2, "oom_exit"))
    bury(obituaries, 60 * SECOND)
    assert len(obituaries.kept) == 2
    bury(obituaries, 61 * SECOND)
    assert not obituaries.kept
    assert obituaries.total == 2


def test_starts_and_services_leave_no_obituary() -> None:
    obituaries = Obituaries()
    bury(obituaries, 0, make_exit(1, "start"), make_exit(2, "exit", "service"))
    assert obituaries.total == 0


def test_a_crash_loop_does_not_fill_the_memory() -> None:
    obituaries = Obituaries()
    bury(obituaries, 0, *(make_exit(number) for number in range(OBITUARIES + 500)))
    assert len(obituaries.kept) == OBITUARIES
    assert obituaries.total == OBITUARIES + 500


def test_an_exit_is_published_with_its_facts() -> None:
    scrape = make_scrape()
    bury(scrape.own.obituaries, 0, make_exit(7))
    text = scrape.render((), openmetrics=False)
    labels = '{namespace="",pod="p7",container="",id="/7",container_id=""}'
    assert f"nodescope_container_exit_cpu_seconds{labels} 1.5\n" in text
    assert "nodescope_container_exits_total 1\n" in text


def test_labels_are_rendered_again_only_when_a_set_of_entities_changed(tmp_path: Path) -> None:
    """A tick with the same containers, processes and devices takes the plan of the last scrape."""
    node = FixtureNode("cgroup2-systemd", tmp_path)
    for _ in range(2):
        node.tick()
        node.clock.advance(SECOND)
        node.parts.scrape.render((), openmetrics=False)
    (prepared,) = node.parts.scrape._prepared.values()
    plan = prepared.exposition._plan
    node.tick()
    node.parts.scrape.render((), openmetrics=False)
    assert prepared.exposition._plan is plan
    node.close()


@pytest.mark.parametrize("openmetrics", [True, False])
def test_a_large_scrape_in_pieces_is_the_same_text(openmetrics: bool) -> None:
    """On a node with containers, services left out, cells that are missing, and infos."""
    parts = build_parts_at(NODES / "cgroup2-systemd" / "t0", TurnableClock(), node="n")
    parts.sampler.tick()
    scrape = parts.scrape
    blocks = scrape._select((), {})
    whole = Exposition("compatible", openmetrics=openmetrics).render(blocks)
    pieces = list(render_pieces(blocks, "compatible", openmetrics=openmetrics))
    assert len(pieces) > 50
    assert b"".join(pieces).decode() == whole
    scrape.large_cells = 0
    text = b"".join(scrape.read((), openmetrics=openmetrics)).decode()
    assert text.startswith(whole)
    assert "nodescope_build_info" in text
    assert text.endswith("# EOF\n") is openmetrics
    parts.sampler.stop()


def test_what_was_rendered_is_forgotten_when_its_tick_is_over_and_nobody_asks() -> None:
    scrape = make_scrape()
    scrape.ring.accept(make_frame(1, {"cpu": OK}))
    scrape.render((), openmetrics=False)
    (prepared,) = scrape._prepared.values()
    scrape.forget()
    assert b"x_cpu 1" in prepared.body
    scrape.ring.accept(make_frame(2, {"cpu": OK}))
    scrape.forget()
    assert prepared.body == b""
    assert "x_cpu 2" in scrape.render((), openmetrics=False)
    for _ in range(IDLE_MOST + 1):
        scrape.forget()
    assert not scrape._prepared
    assert "x_cpu 2" in scrape.render((), openmetrics=False)
