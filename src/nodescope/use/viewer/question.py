"""
From the words of a request to what is meant: nodes, a range of time, containers.

Times are ISO 8601, epoch seconds, or relative to the newest sample: an archive
may be old, and `-15m` of it are still its last fifteen minutes.
"""

from collections.abc import Sequence

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import parse_seconds
from nodescope.base.text import clean_text, hint_nearest
from nodescope.base.time_range import TimeRange, parse_moment
from nodescope.use.answers.containers import (
    ContainerAmbiguous,
    ContainerUnknown,
    Life,
    find_life,
    group_lives,
)
from nodescope.use.answers.refusal import Refused, bad_request, not_found, nothing_yet
from nodescope.use.answers.snapshots import ServedNode, Snapshot
from nodescope.use.answers.workloads import group_workloads, match_workloads

DEFAULT_SECONDS = 3600.0
# Points in one series.
POINTS_DEFAULT, POINTS_MOST = 1000, 10_000
# Matches that an ambiguous id lists.
MATCHES_SHOWN = 5


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


def split_words(values: Sequence[str]) -> list[str]:
    """`a,b` and repeated parameters alike."""
    return [word.strip() for value in values for word in value.split(",") if word.strip()]


def parse_labels(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for text in texts:
        key, colon, value = text.partition(":")
        if not colon or not key:
            raise bad_request(f"labels={text[:80]!r} is not accepted; accepted: key:value, several by comma")
        pairs.append((key, value))
    return tuple(pairs)


def choose_lives(lives: Sequence[Life], texts: Sequence[str]) -> list[Life]:
    """By id, the beginning of one, or a name: a container's with all its lives, a workload's with all its pods."""
    return list({life.id: life for text in texts for life in choose_named(lives, text)}.values())


def choose_named(lives: Sequence[Life], text: str) -> tuple[Life, ...]:
    try:
        return (find_life(lives, text),)
    except (ContainerAmbiguous, ContainerUnknown) as error:
        if isinstance(error, ContainerAmbiguous) and len(same := group_lives(error.candidates)) == 1:
            return same[0].lives
        named = match_workloads(group_workloads(lives), text)
        if len(named) == 1:
            return named[0].choose_main().lives
        raise (
            refuse_ambiguous(error) if isinstance(error, ContainerAmbiguous) else refuse_unknown(error)
        ) from None


def refuse_ambiguous(error: ContainerAmbiguous) -> Refused:
    matches = error.candidates
    listing = ", ".join(f"{one.id[:20]} ({one.name})" for one in matches[:MATCHES_SHOWN])
    more = f" and {len(matches) - MATCHES_SHOWN} more" if len(matches) > MATCHES_SHOWN else ""
    return bad_request(
        f'container "{clean_text(error.text, 80)}" is ambiguous: {listing}{more}',
        "give more characters of the id",
    )


def refuse_unknown(error: ContainerUnknown) -> Refused:
    near = error.nearest()
    return not_found(
        f'no container "{clean_text(error.text, 80)}"; /api/containers lists all {len(error.lives)}',
        f'did you mean "{near}"?' if near else "",
    )
