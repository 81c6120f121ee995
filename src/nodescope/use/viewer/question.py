"""
From the words of a request to what is asked: nodes, a range of time, a metric, whose.

Times are ISO 8601, epoch seconds, or relative to the newest sample: an archive
may be old, and `-15m` of it are still its last fifteen minutes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nodescope.base.entity import SCOPES
from nodescope.base.errors import RequestRejected
from nodescope.base.metric_names import PLAIN
from nodescope.base.quantity import parse_seconds
from nodescope.base.text import clean_text, hint_nearest, nearest_name
from nodescope.base.time_range import TimeRange, parse_moment
from nodescope.read.query.resolve import Rate, ResolvedMetric, resolve_metric
from nodescope.read.series_name import Subject, id_of, name_of
from nodescope.use.viewer.refusal import bad_request, not_found, nothing_yet
from nodescope.use.viewer.snapshots import ServedNode, Snapshot

DEFAULT_SECONDS = 3600.0
# Series in one answer, points in one series, numbers in one answer.
SERIES_MOST = 64
POINTS_DEFAULT, POINTS_MOST = 1000, 10_000
# Matches that an ambiguous id lists.
MATCHES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class SeriesMember:
    """One thing of one node."""

    node: ServedNode
    subject: Subject
    id: str
    name: str


def parse_span(snapshot: Snapshot, start: str, end: str, span: str) -> TimeRange:
    """`from` and `to`, or `range`, or the last hour there is."""
    first, newest = snapshot.from_ms, snapshot.to_ms
    if first is None or newest is None:
        if snapshot.refusals:
            raise nothing_yet("nothing here can be read", snapshot.refusals[0].reason)
        raise nothing_yet(
            "there is no data here yet", "an agent's first samples arrive within seconds of its start"
        )
    if span and (start or end):
        raise bad_request("range stands alone; give it, or from and to")
    try:
        to_ms = parse_moment(end, newest) if end else newest
        from_ms = parse_moment(start, newest) if start else to_ms - round(DEFAULT_SECONDS * 1000)
    except RequestRejected as error:
        raise bad_request(str(error)) from None
    if not start and not end:
        # An archive of ten minutes is shown as ten minutes, not as an hour with a hole.
        from_ms = max(from_ms, first)
    if span == "all":
        from_ms = first
    elif span:
        from_ms = max(first, newest - parse_range(span))
    if from_ms > to_ms:
        raise bad_request(f"the range ends ({to_ms / 1000:g}) before it begins ({from_ms / 1000:g})")
    return TimeRange(from_ms, to_ms)


def parse_range(text: str) -> int:
    try:
        return round(parse_seconds(text) * 1000)
    except (ValueError, OverflowError):
        raise bad_request(
            f"range={clean_text(text, 40)!r} is not accepted; accepted: 15m, 1h, 6h, 1d, 1w, all"
        ) from None


def choose_nodes(snapshot: Snapshot, name: str) -> tuple[ServedNode, ...]:
    """The node of that name, or all."""
    if not name:
        return snapshot.nodes
    chosen = tuple(node for node in snapshot.nodes if node.name == name)
    if not chosen:
        names = [node.name for node in snapshot.nodes]
        raise not_found(
            f'no node "{clean_text(name, 80)}"{hint_nearest(name, names)}',
            f"there are: {', '.join(names[:20])}",
        )
    return chosen


def suffix_of(snapshot: Snapshot, node: ServedNode) -> str:
    """What tells a node's own things from another's, where several are served."""
    return node.name if len(snapshot.nodes) > 1 else ""


def members_of(snapshot: Snapshot, nodes: Iterable[ServedNode]) -> list[SeriesMember]:
    """Containers (or services) of these nodes."""
    return [
        SeriesMember(node, subject, id_of(subject, suffix_of(snapshot, node)), name_of(subject))
        for node in nodes
        for subject in node.listed
    ]


def split_words(values: Sequence[str]) -> list[str]:
    """`a,b` and repeated parameters alike."""
    return [word.strip() for value in values for word in value.split(",") if word.strip()]


def choose_members(members: Sequence[SeriesMember], texts: Sequence[str]) -> list[SeriesMember]:
    """By full id, the beginning of one, or a name; each once, in the order asked for."""
    chosen: dict[str, SeriesMember] = {}
    for text in texts:
        found = match_member(members, text)
        chosen[found.id] = found
    return list(chosen.values())


def match_member(members: Sequence[SeriesMember], text: str) -> SeriesMember:
    exact = [one for one in members if text == one.id]
    begun = exact or [one for one in members if one.id.startswith(text)]
    matches = begun or [one for one in members if is_named(one, text)]
    if len(matches) == 1:
        return matches[0]
    shown = clean_text(text, 80)
    if matches:
        listing = ", ".join(f"{one.id[:20]} ({one.name})" for one in matches[:MATCHES_SHOWN])
        more = f" and {len(matches) - MATCHES_SHOWN} more" if len(matches) > MATCHES_SHOWN else ""
        raise bad_request(
            f'container "{shown}" is ambiguous: {listing}{more}', "give more characters of the id"
        )
    near = nearest_name(text, {one.name for one in members})
    raise not_found(
        f'no container "{shown}"; /api/containers lists all {len(members)}',
        f'did you mean "{near}"?' if near else "",
    )


def is_named(member: SeriesMember, text: str) -> bool:
    pod, container = member.subject.label("l_pod_name"), member.subject.label("l_container_name")
    return text in (member.name, pod, container)


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
        near = nearest_name(metric, known) if metric not in known else None
        detail = (
            reason if metric in known else f'no metric "{clean_text(metric, 80)}"; /api/metrics lists all'
        )
        raise not_found(detail or "there is no data here yet", f'did you mean "{near}"?' if near else "")
    return found
