"""What happened to whom, told once, from sidecars and log alike."""

from pathlib import Path

from tests.keep.frames import (
    MONO_NS,
    SECOND_NS,
    START_NS,
    A,
    B,
    container,
    frame_at,
    read_log_tail,
    write_log,
)

from nodescope.base.entity import Entity
from nodescope.base.frame import Event
from nodescope.keep.consolidator import Consolidator
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.read.files.catalog import read_catalog
from nodescope.read.query.events import Happening, read_events

START_MS = START_NS // 10**6
LATER_MS = START_MS + 90 * 86_400_000
# The same pod and name as A, another id: A's next life.
NEXT = Entity("container", ("e" * 64, "78"), A.labels, (("container_id", "e" * 64), ("qos", "Burstable")))


def event(kind: str, entity: Entity, number: int, **facts: float) -> Event:
    return Event(kind, START_NS + number * SECOND_NS, "container", entity.ids, entity.labels, facts)


def write_story(folder: DataFolder) -> None:
    """A and B run when the agent starts; A is killed for memory in tick 5 and restarted in tick 7."""
    first = [frame_at(0, events=(event("start", A, 0), event("start", B, 0)))]
    first += [frame_at(number) for number in range(1, 5)]
    first += [frame_at(5, (B,), events=(event("oom_exit", A, 5, oom_kills=1.0),)), frame_at(6, (B,))]
    write_log(folder, first, segment=1)
    second = [frame_at(7, (B, NEXT), events=(event("start", NEXT, 7),))]
    second += [frame_at(number, (B, NEXT)) for number in range(8, 12)]
    write_log(folder, second, segment=2)


def tell(found: list[Happening]) -> list[tuple[str, int, str]]:
    return [
        (one.kind, (one.at_ms - START_MS) // 1000, (one.subject.label("l_container_id") or "")[:1])
        for one in found
    ]


STORY = [("oom", 5, "a"), ("restart", 7, "e")]


def test_a_container_that_ran_before_the_agent_did_not_start_with_it(tmp_path: Path) -> None:
    """Fresh, consolidated, or still in the log: the same story, each event once."""
    folder = DataFolder(tmp_path)
    write_story(folder)
    empty = read_catalog([folder.path])
    assert tell(read_events(empty, tail=read_log_tail(folder.path, empty))) == STORY
    convert_all(Disk(), folder)
    found = read_events(read_catalog([folder.path]))
    assert tell(found) == STORY
    assert found[0].facts["oom_kills"] == 1.0
    assert found[1].facts["previous"] == A.ids[0]
    Consolidator(Disk(), folder).run_pass(LATER_MS)
    assert tell(read_events(read_catalog([folder.path]))) == STORY


def test_an_agent_that_starts_again_tells_only_what_it_had_not_seen(tmp_path: Path) -> None:
    """Of the three that its first tick sees, only the one that came meanwhile is a start."""
    folder = DataFolder(tmp_path)
    write_story(folder)
    fresh = container("f", "pod-f")
    seen = (B, NEXT, fresh)
    first = frame_at(
        60,
        seen,
        mono_ns=MONO_NS + 60 * SECOND_NS,
        events=tuple(event("start", one, 60) for one in seen),
    )
    write_log(folder, [first, frame_at(61, seen)], run="run2", segment=1)
    convert_all(Disk(), folder)
    found = read_events(read_catalog([folder.path]))
    assert tell(found) == [*STORY, ("start", 60, "f")]
    assert found[-1].facts["seen"] == "when the agent started"


def test_events_are_chosen_by_time_container_and_kind(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    write_story(folder)
    convert_all(Disk(), folder)
    catalog = read_catalog([folder.path])
    assert tell(read_events(catalog, START_MS + 6000)) == STORY[1:]
    assert tell(read_events(catalog, to_ms=START_MS + 6000)) == STORY[:1]
    assert tell(read_events(catalog, containers=[A.ids[0]])) == STORY[:1]
    assert tell(read_events(catalog, kinds=["restart"])) == STORY[1:]


def test_names_that_arrived_later_are_on_earlier_events(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    write_log(folder, [frame_at(number) for number in range(3)], segment=1)
    nameless = container("d")
    born = frame_at(3, (A, B, nameless), events=(event("start", nameless, 3),))
    write_log(folder, [born, frame_at(4, (A, B, container("d", "pod-d")))], segment=2)
    convert_all(Disk(), folder)
    (found,) = read_events(read_catalog([folder.path]))
    assert found.subject.label("l_pod_name") == "pod-d"
