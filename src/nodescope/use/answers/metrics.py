"""Which metrics a node has: plain names first, in the order people ask for them; and what a name means there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nodescope.base.entity import SCOPES
from nodescope.base.errors import RequestRejected
from nodescope.base.metric_names import PLAIN, find_plain
from nodescope.base.text import clean_text, hint_nearest, nearest_name
from nodescope.read.query.resolve import Rate, ResolvedMetric, resolve_all, resolve_metric
from nodescope.use.answers.refusal import bad_request, not_found
from nodescope.use.answers.snapshots import ServedNode

# In the order a person asks for them: pickers and pages show these first.
METRIC_ORDER = (
    "cpu",
    "memory",
    "pressure_memory",
    "pressure_cpu",
    "cpu_throttled",
    "memory_working_set",
    "memory_limit_share",
    "cpu_limit_share",
    "pressure_io",
    "network_receive",
    "network_transmit",
    "disk_read",
    "disk_write",
    "oom_kills",
)
# Behind them: the other plain names, then the kernel's own.
PLAIN_PRIORITY, RAW_PRIORITY = 100, 1000


@dataclass(frozen=True, slots=True)
class MetricRow:
    """A metric that a node has."""

    name: str
    scope: str
    is_plain: bool
    kind: str
    unit: str
    help: str
    priority: int = RAW_PRIORITY
    """Its place in a list for people; the lowest first."""
    scale: float | None = None
    """A number in the archive times scale is in the unit; None for a plain name, which is derived from others."""


def list_metrics(nodes: Sequence[ServedNode]) -> list[MetricRow]:
    found: dict[str, MetricRow] = {}
    for node in nodes:
        for row in (*list_plain(node), *list_raw(node)):
            found.setdefault(row.name, row)
    return sorted(found.values(), key=lambda row: (row.priority, row.name))


def list_plain(node: ServedNode) -> Iterator[MetricRow]:
    for plain, resolved in resolve_all(node.metrics):
        scope = choose_scope(node.scopes.get(resolved.metrics[0].name, set()))
        place = METRIC_ORDER.index(plain.name) if plain.name in METRIC_ORDER else PLAIN_PRIORITY
        yield MetricRow(plain.name, scope, True, "gauge", resolved.unit, plain.help, place)


def list_raw(node: ServedNode) -> Iterator[MetricRow]:
    for metric in node.metrics.values():
        scope = choose_scope(node.scopes.get(metric.name, set()))
        yield MetricRow(
            metric.name, scope, False, metric.kind, metric.unit or "count", metric.help, scale=metric.scale
        )


def choose_scope(scopes: set[str]) -> str:
    """Services have what containers have; a pod's network is shown by container."""
    words = sorted({"container" if scope in ("service", "pod") else scope for scope in scopes})
    return "container" if "container" in words else words[0] if words else "node"


def resolve(
    nodes: Sequence[ServedNode], metric: str, rate: Rate = "auto", scope: str = ""
) -> dict[str, ResolvedMetric]:
    """By node: the metric as that node has it; refused where none has it."""
    if scope and scope not in SCOPES:
        raise bad_request(
            f'no scope "{clean_text(scope, 40)}"{hint_nearest(scope, SCOPES)} accepted: {", ".join(SCOPES)}'
        )
    found: dict[str, ResolvedMetric] = {}
    reason = ""
    for node in nodes:
        try:
            found[node.name] = resolve_metric(metric, node.metrics, rate, scope or None)
        except RequestRejected as error:
            reason = str(error)
    if not found:
        known = {*PLAIN, *(name for node in nodes for name in node.metrics)}
        near = nearest_name(find_plain(metric), known) if metric not in known else None
        detail = (
            reason if metric in known else f'no metric "{clean_text(metric, 80)}"; /api/metrics lists all'
        )
        raise not_found(detail or "there is no data here yet", f'did you mean "{near}"?' if near else "")
    return found
