"""
What happened to containers: starts, restarts, exits, OOM kills, from the sidecars and the live tail.

The agent notes a start and an obituary in the frame of the tick that saw
them; sidecars carry them, so no row is read here. Four kinds are told:

    start    a container that was not there before
    restart  the same, of a pod's container that had an earlier life (facts: previous)
    exit     it ended (facts: lifetime_seconds, peak and totals where they were known)
    oom      it ended after the kernel killed it for memory (facts as of exit, oom_kills)

An agent that starts sees every running container for the first time; that is
not their start. Such a sight is told only when an earlier run of the agent
had not seen the container, with the fact `seen: when the agent started`.

    found = read_events(catalog, from_ms, to_ms, tail=tail)
    [event.to_json() for event in found]
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from nodescope.base.entity import Entity
from nodescope.base.errors import ArchiveRefused, RequestRejected
from nodescope.base.frame import Frame
from nodescope.base.text import hint_nearest
from nodescope.keep.convert import event_to_json
from nodescope.keep.label_columns import LABELS, Identity, Subject, describe_entity
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.listing import FileEntry
from nodescope.read.live.tail import LiveTail

Kind = Literal["start", "restart", "exit", "oom"]
KINDS: tuple[Kind, ...] = ("start", "restart", "exit", "oom")
# As the container source writes them.
WRITTEN: Mapping[str, Kind] = {"start": "start", "exit": "exit", "oom_exit": "oom"}
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

    def to_json(self) -> dict[str, Any]:
        labels = {name.removeprefix("l_"): word for name, word in zip(LABELS, self.subject.labels) if word}
        return {"kind": self.kind, "at": self.at_ms / 1000, **labels, "facts": dict(self.facts)}


@dataclass(frozen=True, slots=True)
class EventNote:
    """An event as it was written, and the run's first moment."""

    kind: Kind
    at_ms: int
    subject: Subject
    facts: Mapping[str, float | str]
    is_first_tick: bool


def read_events(
    catalog: Catalog,
    from_ms: int | None = None,
    to_ms: int | None = None,
    containers: Collection[str] | None = None,
    kinds: Collection[str] | None = None,
    tail: LiveTail | None = None,
) -> list[Happening]:
    """In order of time; full container ids, or None for all."""
    wanted = check_kinds(kinds)
    lives = Lives({**catalog.subjects, **unseen(catalog, tail)})
    earliest_ms = catalog.from_ms if catalog.from_ms is not None else first_of(tail)
    first, last = from_ms if from_ms is not None else 0, to_ms if to_ms is not None else 2**62
    found: dict[tuple[str, int, Identity], Happening] = {}
    for note in read_notes(catalog, tail, first, last):
        if not first <= note.at_ms <= last:
            continue
        happening = lives.tell(note, earliest_ms)
        if happening is None or happening.kind not in wanted:
            continue
        if containers is not None and happening.subject.label("l_container_id") not in containers:
            continue
        # A frame that is both in a file and in the tail tells the same twice.
        found.setdefault((note.kind, note.at_ms, note.subject.identity), happening)
    return sorted(found.values(), key=lambda one: (one.at_ms, one.subject.identity))


def check_kinds(kinds: Collection[str] | None) -> frozenset[str]:
    wanted = frozenset(KINDS if kinds is None else kinds)
    for kind in sorted(wanted - set(KINDS)):
        raise RequestRejected(
            f'no kind of event "{kind}"{hint_nearest(kind, KINDS)}; accepted: {", ".join(KINDS)}'
        )
    return wanted


def unseen(catalog: Catalog, tail: LiveTail | None) -> dict[Identity, Subject]:
    """Who is in the tail only."""
    return {key: one for key, one in tail.subjects.items() if key not in catalog.subjects} if tail else {}


def first_of(tail: LiveTail | None) -> int:
    return min((min(day.clocks) for day in tail.days if day.clocks), default=0) if tail else 0


class Lives:
    """Who lived when: what makes a start a restart, or no start at all."""

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

    def tell(self, note: EventNote, earliest_ms: int) -> Happening | None:
        known = self._subjects.get(note.subject.identity, note.subject)
        if note.kind != "start":
            return Happening(note.kind, note.at_ms, known, note.facts)
        facts = dict(note.facts)
        if note.is_first_tick:
            is_first_run = note.at_ms <= earliest_ms + SLACK_MS
            was_known = 0 < known.first_ms < note.at_ms - SLACK_MS
            if is_first_run or was_known:
                return None
            facts["seen"] = "when the agent started"
        before = self._previous(known, note.at_ms)
        if before is None:
            return Happening("start", note.at_ms, known, facts)
        facts["previous"] = before.label("l_container_id") or ""
        return Happening("restart", note.at_ms, known, facts)

    def _previous(self, subject: Subject, at_ms: int) -> Subject | None:
        place = self._place(subject)
        earlier = [
            one
            for one in (self._by_place.get(place, ()) if place else ())
            if one.identity != subject.identity and one.first_ms < at_ms
        ]
        return max(earlier, key=lambda one: one.last_ms, default=None)


# -- where they are written --------------------------------------------------------


def read_notes(catalog: Catalog, tail: LiveTail | None, from_ms: int, to_ms: int) -> Iterator[EventNote]:
    for entry in catalog.select(from_ms - SLACK_MS, to_ms + SLACK_MS):
        if entry.sidecar is None:
            continue
        try:
            written = entry.events()
        except ArchiveRefused:
            # Its head was good, its story is not; the catalog's other files are.
            continue
        if written:
            starts = run_starts(entry)
            yield from (note for one in written if (note := parse_note(one, entry.sidecar.head.node, starts)))
    if tail:
        yield from notes_of_tail(tail)


def run_starts(entry: FileEntry) -> list[int]:
    """When the runs of a file began, as far as the file can tell: its first segment has number 1."""
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


def parse_note(written: Mapping[str, Any], node: str, starts: Sequence[int]) -> EventNote | None:
    kind = WRITTEN.get(str(written.get("kind")))
    if kind is None:
        return None
    at_ms = int(written["at_ms"])
    labels = tuple((str(key), str(word)) for key, word in dict(written.get("labels", {})).items())
    entity = Entity(str(written["scope"]), tuple(map(str, written["ids"])), labels)
    subject = describe_entity(entity, node, at_ms)
    is_first = any(abs(at_ms - start) <= SLACK_MS for start in starts)
    facts = cast("Mapping[str, float | str]", written.get("facts", {}))
    return EventNote(kind, at_ms, subject, facts, is_first)


def notes_of_tail(tail: LiveTail) -> Iterator[EventNote]:
    frames: list[Frame] = [frame for day in tail.days for frame in day.frames]
    # A run's frames count from 0: its first is the one that sees everybody anew.
    starts = [frame.at_ns // 1_000_000 for frame in frames if frame.sequence == 0]
    for frame in frames:
        for event in frame.events:
            note = parse_note(event_to_json(event), tail.node, starts)
            if note:
                yield note
