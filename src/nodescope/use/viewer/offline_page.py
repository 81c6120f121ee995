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
from nodescope.use.answers.container_table import Filter, list_containers
from nodescope.use.answers.containers import Life
from nodescope.use.answers.events import list_events
from nodescope.use.answers.findings import ALL, STUDIES_MOST, run_studies
from nodescope.use.answers.incidents.answer import list_incidents
from nodescope.use.answers.incidents.json_form import render_incidents
from nodescope.use.answers.metrics import METRIC_ORDER, list_metrics, resolve
from nodescope.use.answers.overview import read_overview
from nodescope.use.answers.refusal import Refused, not_found, too_much
from nodescope.use.answers.snapshots import ServedNode, View
from nodescope.use.answers.timeseries import (
    TimeseriesRequest,
    choose_busiest,
    is_of_containers,
    read_timeseries,
)
from nodescope.use.answers.wire import (
    EVENTS,
    TIMESERIES,
    Json,
    render_containers,
    render_json,
    render_metrics,
    render_overview,
    render_studies,
)
from nodescope.use.viewer.page import STATIC
from nodescope.use.viewer.routes_facts import answer_filters, answer_studies

PLACE = '<script type="application/json" id="nodescope-data">null</script>'
# A file of more would be slow to open.
METRICS_MOST = 5
CARDS_MOST = 5
# Unless metrics are named: the first of these that the node has.
FIRST_METRICS, SHOWN_FIRST = METRIC_ORDER[:5], 3
# Numbers in the file: some 6 MB of text, which browsers open at once.
NUMBERS_MOST = 600_000
POINTS_LEAST, POINTS_MOST = 200, 4000
BYTES_MOST = 32 * 2**20
EVENTS_SHOWN = 500
ROWS_SHOWN = 200
# The text of JSON may not end the element it stands in.
ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@dataclass(frozen=True, slots=True)
class OfflinePage:
    """The file, and what is in it."""

    content: bytes
    metrics: tuple[str, ...]
    series: int
    points: int
    findings: int


def make_page(
    view: View,
    instance: Json,
    metrics: Sequence[str],
    lives: tuple[Life, ...] | None,
    span: TimeRange,
    static: Path = STATIC,
) -> OfflinePage:
    page = read_page(static)
    chosen = choose_metrics(view.nodes, metrics)
    if lives is None:
        lives = choose_everywhere(view, chosen, span)
    number = max(1, len(lives)) * len(chosen)
    points = max(POINTS_LEAST, min(POINTS_MOST, NUMBERS_MOST // (3 * number)))
    whose = {metric: lives if is_of_lives(view, metric) else None for metric in chosen}
    series = [
        read_timeseries(view, TimeseriesRequest(metric, span, points, "auto", whose[metric]))
        for metric in chosen
    ]
    studied = [run_studies(view, ALL, metric, whose[metric], span) for metric in chosen]
    carried = {
        # Where the agent was is nobody's business who reads the file.
        "instance": {
            **instance,
            "live": False,
            "agent": None,
            "from": span.from_ms / 1000,
            "to": span.to_ms / 1000,
        },
        "metrics": render_metrics(list_metrics(view.nodes)),
        "containers": render_containers(
            list_containers(view, chosen[0], span, Filter(), "value", ROWS_SHOWN)
        ),
        "filters": answer_filters(view),
        "events": EVENTS.render(list_events(view, span, None, EVENTS_SHOWN)),
        "incidents": render_incidents(list_incidents(view, span, most=CARDS_MOST)),
        "summary": render_overview(read_overview(view, span)),
        "studies": answer_studies(),
        "timeseries": [TIMESERIES.render(one) for one in series],
        "findings": [render_studies(ALL, answers) for answers in studied],
    }
    content = page.replace(PLACE, PLACE.replace("null", escape(carried)), 1).encode("utf-8", "replace")
    if len(content) > BYTES_MOST:
        raise too_much(
            f"the page would have {len(content):,} bytes; accepted: up to {BYTES_MOST:,}",
            "ask for fewer containers or metrics",
        )
    findings = sum(len(answer.findings) for answers in studied for answer in answers)
    return OfflinePage(content, tuple(chosen), sum(len(one.series) for one in series), points, findings)


def read_page(static: Path) -> str:
    try:
        page = (static / "export.html").read_text()
    except OSError as error:
        raise Refused(
            503,
            "not built",
            "the web page is missing from this installation",
            "install nodescope again",
        ) from error
    if page.count(PLACE) != 1:
        raise Refused(503, "not built", "export.html has no place for the data", "install nodescope again")
    return page


def choose_metrics(nodes: Sequence[ServedNode], metrics: Sequence[str]) -> list[str]:
    if len(metrics) > METRICS_MOST:
        raise too_much(f"{len(metrics)} metrics; accepted: up to {METRICS_MOST} in one file")
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
    return found[:SHOWN_FIRST]


def choose_everywhere(view: View, metrics: Sequence[str], span: TimeRange) -> tuple[Life, ...]:
    """The busiest by each metric, each once: the same series in every panel."""
    found: dict[str, Life] = {}
    for metric in metrics:
        if is_of_lives(view, metric):
            for life in choose_busiest(view, metric, span):
                found.setdefault(life.id, life)
    return tuple(found.values())[:STUDIES_MOST]


def is_of_lives(view: View, metric: str) -> bool:
    return is_of_containers(view.nodes, resolve(view.nodes, metric))


def escape(carried: Json) -> str:
    text = render_json(carried).decode()
    for letter, written in ESCAPES.items():
        text = text.replace(letter, written)
    return text
