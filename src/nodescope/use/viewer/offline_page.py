"""
One HTML file that opens from disk: the page, its data and its findings in one.

The web build leaves an element for the data; the answers that the page would
ask for are put there as JSON, so that the file shows exactly what the viewer
would have shown. How many points a series has follows from how many series
there are: the file stays small enough to be sent by mail.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nodescope.base.time_range import TimeRange
from nodescope.read.query.engine import Engine
from nodescope.use.viewer.container_table import Filter, answer_containers, answer_filters, answer_metrics
from nodescope.use.viewer.events import answer_events
from nodescope.use.viewer.findings import ALL, SERIES_MOST, answer_studies, answer_study
from nodescope.use.viewer.page import STATIC
from nodescope.use.viewer.question import SeriesMember, resolve
from nodescope.use.viewer.refusal import Refused, not_found, too_much
from nodescope.use.viewer.render import Json, render_json
from nodescope.use.viewer.snapshots import ServedNode, Snapshot
from nodescope.use.viewer.tiles import answer_summary
from nodescope.use.viewer.timeseries import (
    TimeseriesRequest,
    answer_timeseries,
    choose_busiest,
    is_of_containers,
)

PLACE = '<script type="application/json" id="nodescope-data">null</script>'
# What the page shows first, as far as the node has it.
FIRST_METRICS = ("cpu", "memory", "pressure_memory", "cpu_throttled")
METRICS_MOST = 5
# Numbers in the file: some 6 MB of text, which browsers open at once.
NUMBERS_MOST = 600_000
POINTS_LEAST, POINTS_MOST = 200, 4000
BYTES_MOST = 32 * 2**20
EVENTS_SHOWN = 500
ROWS_SHOWN = 200
# The text of JSON may not end the element it stands in.
ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@dataclass(frozen=True, slots=True)
class Booklet:
    """The file, and what is in it."""

    content: bytes
    metrics: tuple[str, ...]
    series: int
    points: int
    findings: int


def make_booklet(
    engine: Engine,
    snapshot: Snapshot,
    nodes: Sequence[ServedNode],
    instance: Json,
    metrics: Sequence[str],
    members: Sequence[SeriesMember] | None,
    span: TimeRange,
    static: Path = STATIC,
) -> Booklet:
    page = read_page(static)
    chosen = choose_metrics(nodes, metrics)
    if members is None:
        members = busiest_of(engine, snapshot, nodes, chosen, span)
    number = max(1, len(members)) * len(chosen)
    points = max(POINTS_LEAST, min(POINTS_MOST, NUMBERS_MOST // (3 * number)))
    series = [
        answer_timeseries(
            engine,
            snapshot,
            nodes,
            TimeseriesRequest(metric, span, points, "auto", whose(nodes, metric, members)),
        )
        for metric in chosen
    ]
    studied = [study(engine, snapshot, nodes, metric, members, span) for metric in chosen]
    carried = {
        # Where the agent was is nobody's business who reads the file.
        "instance": {
            **instance,
            "live": False,
            "agent": None,
            "from": span.from_ms / 1000,
            "to": span.to_ms / 1000,
        },
        "metrics": answer_metrics(nodes),
        "containers": answer_containers(
            engine, snapshot, nodes, chosen[0], span, Filter(), "value", ROWS_SHOWN
        ),
        "filters": answer_filters(snapshot, nodes),
        "events": answer_events(snapshot, nodes, span, None, EVENTS_SHOWN),
        "summary": answer_summary(engine, nodes, span),
        "studies": answer_studies(),
        "timeseries": series,
        "findings": studied,
    }
    content = page.replace(PLACE, PLACE.replace("null", escape(carried)), 1).encode("utf-8", "replace")
    if len(content) > BYTES_MOST:
        raise too_much(
            f"the page would have {len(content):,} bytes; accepted: up to {BYTES_MOST:,}",
            "ask for fewer containers or metrics",
        )
    told = sum(len(result["findings"]) for answer in studied for result in answer["results"])
    return Booklet(content, tuple(chosen), sum(len(one["series"]) for one in series), points, told)


def read_page(static: Path) -> str:
    try:
        page = (static / "export.html").read_text()
    except OSError as error:
        raise Refused(
            503,
            "not built",
            "the web page is not part of this build",
            "make web builds it, with Node 20 or newer",
        ) from error
    if page.count(PLACE) != 1:
        raise Refused(503, "not built", "export.html has no place for the data", "make web builds it anew")
    return page


def choose_metrics(nodes: Sequence[ServedNode], metrics: Sequence[str]) -> list[str]:
    if len(metrics) > METRICS_MOST:
        raise too_much(
            f"{len(metrics)} metrics; accepted: up to {METRICS_MOST}, as many as the page has panels"
        )
    for metric in metrics:
        resolve(nodes, metric)
    if metrics:
        return list(dict.fromkeys(metrics))
    found = []
    for metric in FIRST_METRICS:
        try:
            resolve(nodes, metric)
        except Refused:
            continue
        found.append(metric)
    if not found:
        raise not_found("none of cpu, memory and pressure was collected here", "name a metric")
    return found[:3]


def busiest_of(
    engine: Engine, snapshot: Snapshot, nodes: Sequence[ServedNode], metrics: Sequence[str], span: TimeRange
) -> list[SeriesMember]:
    """The busiest by each metric, each once: the same series in every panel."""
    found: dict[str, SeriesMember] = {}
    for metric in metrics:
        if is_of_containers(nodes, resolve(nodes, metric)):
            for member in choose_busiest(engine, snapshot, nodes, metric, span):
                found.setdefault(member.id, member)
    return list(found.values())[:SERIES_MOST]


def whose(
    nodes: Sequence[ServedNode], metric: str, members: Sequence[SeriesMember]
) -> tuple[SeriesMember, ...] | None:
    return tuple(members) if is_of_containers(nodes, resolve(nodes, metric)) else None


def study(
    engine: Engine,
    snapshot: Snapshot,
    nodes: Sequence[ServedNode],
    metric: str,
    members: Sequence[SeriesMember],
    span: TimeRange,
) -> Json:
    return answer_study(engine, snapshot, nodes, ALL, metric, whose(nodes, metric, members), "", span)


def escape(carried: Json) -> str:
    text = render_json(carried).decode()
    for letter, written in ESCAPES.items():
        text = text.replace(letter, written)
    return text
