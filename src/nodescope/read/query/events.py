"""
What happened to containers: starts, restarts, exits, OOM kills, from the sidecars and the live tail.

The agent notes a start and an end in the frame of the tick that saw
them; sidecars have them, so no row is read here. Files without a sidecar tell them
by first and last samples (other_events.py). There are four kinds:

    start    a container that was not there before
    restart  the same, of a pod's container that had an earlier life (facts: previous)
    exit     it ended (facts: lifetime_seconds, peak and totals where they were known)
    oom      it ended after the kernel killed it for memory (facts as of exit, oom_kills)

An agent that starts sees every running container for the first time; that is
not their start. It counts as one only when an earlier run of the agent
had not seen the container, with the fact `seen: when the agent started`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from nodescope.base.entity import Entity
from nodescope.base.errors import ArchiveRefused
from nodescope.base.frame import EXIT, OOM_EXIT, START
from nodescope.keep.convert import list_events
from nodescope.keep.label_columns import Identity, Subject, describe_entity
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.listing import FileEntry
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.other_events import infer_events

Kind = Literal["start", "restart", "exit", "oom"]
# As the container source writes them.
WRITTEN: Mapping[str, Kind] = {START: "start", EXIT: "exit", OOM_EXIT: "oom"}
# A tick's events bear the time of the tick, its samples the time of their
# reading, some ms later; a slow tick may take a second.
SLACK_MS = 2000


@dataclass(frozen=True, slots=True)
class Happening:
    """One event of one container (or service), with the names that are known by now."""

    kind: Kind
    at_ms: int
    subject: Subject
    facts: Mapping[str, float | str]


def read_events(
    catalog: Catalog,
    from_ms: int | None = None,
    to_ms: int | None = None,
    containers: Collection[str] | None = None,
    kinds: Collection[Kind] = get_args(Kind),
    tail: LiveTail | None = None,
) -> list[Happening]:
    """In order of time; full container ids, or None for all."""
    lives = Lives({**catalog.subjects, **unseen(catalog, tail)})
    starts = (catalog.from_ms, tail.from_ms if tail else None)
    earliest_ms = next((one for one in starts if one is not None), 0)
    first, last = from_ms if from_ms is not None else 0, to_ms if to_ms is not None else 2**62
    found: dict[tuple[str, int, Identity], Happening] = {}
    for written, is_first_tick in read_written(catalog, tail, first, last):
        if not first <= written.at_ms <= last:
            continue
        happening = lives.classify(written, earliest_ms, is_first_tick=is_first_tick)
        if happening is None or happening.kind not in kinds:
            continue
        if containers is not None and happening.subject.label("l_container_id") not in containers:
            continue
        # A frame may be both in a file and in the tail.
        found.setdefault((written.kind, written.at_ms, written.subject.identity), happening)
    return sorted(found.values(), key=lambda one: (one.at_ms, one.subject.identity))


def unseen(catalog: Catalog, tail: LiveTail | None) -> dict[Identity, Subject]:
    """Containers that only the tail has."""
    return {key: one for key, one in tail.subjects.items() if key not in catalog.subjects} if tail else {}


class Lives:
    """When each container ran: what makes a start a restart, or no start at all."""

    def __init__(self, subjects: Mapping[Identity, Subject]) -> None:
        self._subjects = subjects
        self._by_place: dict[tuple[str, str], list[Subject]] = {}
        for subject in subjects.values():
            place = self._place(subject)
            if place:
                self._by_place.setdefault(place, []).append(subject)

    @staticmethod
    def _place(subject: Subject) -> tuple[str, str] | None:
        """A pod's container by name: what a restart keeps."""
        pod = subject.label("l_pod_uid") or subject.label("l_pod_name")
        name = subject.label("l_container_name")
        is_container = subject.label("l_scope") == "container"
        return (pod, name) if is_container and pod and name else None

    def classify(self, written: Happening, earliest_ms: int, *, is_first_tick: bool) -> Happening | None:
        """A start may be a restart; seen by an agent's first tick, it may be none."""
        known = self._subjects.get(written.subject.identity, written.subject)
        at_ms, facts = written.at_ms, dict(written.facts)
        if written.kind != "start":
            return Happening(written.kind, at_ms, known, facts)
        if is_first_tick:
            is_first_run = at_ms <= earliest_ms + SLACK_MS
            was_known = 0 < known.first_ms < at_ms - SLACK_MS
            if is_first_run or was_known:
                return None
            facts["seen"] = "when the agent started"
        before = self._previous(known, at_ms)
        if before is None:
            return Happening("start", at_ms, known, facts)
        facts["previous"] = before.label("l_container_id") or ""
        return Happening("restart", at_ms, known, facts)

    def _previous(self, subject: Subject, at_ms: int) -> Subject | None:
        place, identity = self._place(subject), subject.identity
        earlier = [
            one
            for one in (self._by_place.get(place, ()) if place else ())
            if one.first_ms < at_ms and one.identity != identity
        ]
        return max(earlier, key=lambda one: one.last_ms, default=None)


# -- where they are written --------------------------------------------------------


Written = tuple[Happening, bool]
"""An event as it was written, and whether the first tick of a run saw it."""


def read_written(catalog: Catalog, tail: LiveTail | None, from_ms: int, to_ms: int) -> Iterator[Written]:
    for entry in catalog.select(from_ms - SLACK_MS, to_ms + SLACK_MS):
        if entry.sidecar is None:
            continue
        try:
            events = entry.sidecar.story.events
        except ArchiveRefused:
            # Its head was good, its story is not; the catalog's other files are.
            continue
        if events:
            starts = run_starts(entry)
            yield from parse_events(events, entry.sidecar.head.node, starts)
    for seen in infer_events(catalog, from_ms, to_ms):
        yield Happening(cast("Kind", seen.kind), seen.at_ms, seen.subject, seen.facts), False
    if tail:
        frames = [frame for day in tail.days for frame in day.frames]
        # A run's frames count from 0: its first is the one that sees everybody anew.
        starts = [frame.at_ns // 1_000_000 for frame in frames if frame.sequence == 0]
        yield from parse_events(list_events(frames), tail.node, starts)


def run_starts(entry: FileEntry) -> list[int]:
    """When the runs of a file began, where the file shows it: a run's first segment has number 1."""
    ticks = entry.ticks()
    if ticks is None or entry.sidecar is None:
        return []
    numbers = entry.sidecar.head.segments
    return [
        int(ticks.time_ms[ticks.run == place].min())
        for place, run in enumerate(ticks.runs)
        if any(first <= FIRST_SEGMENT for first, _ in numbers.get(run, ())) and (ticks.run == place).any()
    ]


# The archiver counts segments from here.
FIRST_SEGMENT = 1


def parse_events(events: Iterable[Mapping[str, Any]], node: str, starts: Sequence[int]) -> Iterator[Written]:
    for written in events:
        kind = WRITTEN.get(str(written.get("kind")))
        if kind is None:
            continue
        at_ms = int(written["at_ms"])
        labels = tuple((str(key), str(word)) for key, word in dict(written.get("labels", {})).items())
        entity = Entity(str(written["scope"]), tuple(map(str, written["ids"])), labels)
        facts = cast("Mapping[str, float | str]", written.get("facts", {}))
        is_first_tick = any(abs(at_ms - start) <= SLACK_MS for start in starts)
        yield Happening(kind, at_ms, describe_entity(entity, node, at_ms), facts), is_first_tick
