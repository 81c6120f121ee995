"""What the watcher of a node found, as its archive and live tail have it: of each finding the newest state."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nodescope.base.errors import ArchiveRefused
from nodescope.base.findings import NodeFinding
from nodescope.base.findings.event_form import read_event
from nodescope.keep.convert import list_events
from nodescope.read.files.catalog import Catalog
from nodescope.read.live.tail import LiveTail

# A finding that is open is told again every five minutes: its end is found in the files after the span.
AFTER_MS = 900_000


def read_findings(
    catalog: Catalog, from_ms: int, to_ms: int, tail: LiveTail | None = None
) -> list[NodeFinding]:
    """Those of which a change was written in the span, each as it was at the last of them."""
    changes = read_changes(catalog, from_ms, to_ms, tail)
    return keep_newest(one for one in changes if from_ms <= one.updated * 1000 <= to_ms + 1000)


def read_open_findings(
    catalog: Catalog, from_ms: int, to_ms: int, tail: LiveTail | None = None
) -> list[NodeFinding]:
    """Confirmed at some time, and open at some moment of the span; in order of their beginning."""
    newest = keep_newest(read_changes(catalog, 0, to_ms + AFTER_MS, tail))
    inside = (one for one in newest if one.confirmed is not None and one.onset * 1000 <= to_ms)
    return sorted(
        (one for one in inside if one.ended is None or one.ended * 1000 >= from_ms), key=lambda one: one.onset
    )


def keep_newest(changes: Iterable[NodeFinding]) -> list[NodeFinding]:
    newest: dict[str, NodeFinding] = {}
    for finding in changes:
        known = newest.get(finding.id)
        if known is None or finding.revision >= known.revision:
            newest[finding.id] = finding
    return list(newest.values())


def read_changes(catalog: Catalog, from_ms: int, to_ms: int, tail: LiveTail | None) -> Iterator[NodeFinding]:
    for entry in catalog.select(from_ms, to_ms):
        if entry.sidecar is None:
            continue
        try:
            yield from parse_changes(entry.sidecar.story.events)
        except ArchiveRefused:
            # Its head was good, its story is not; the catalog's other files are.
            continue
    if tail:
        yield from parse_changes(list_events([frame for day in tail.days for frame in day.frames]))


def parse_changes(events: Iterable[Mapping[str, Any]]) -> Iterator[NodeFinding]:
    for written in events:
        facts = written.get("facts")
        finding = read_event(str(written.get("kind")), facts if isinstance(facts, Mapping) else {})
        if finding is not None:
            yield finding
