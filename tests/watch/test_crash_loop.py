"""A container that crashes again and again is one finding, also where nobody knows its name."""

from nodescope.base.frame import EXIT, Event
from nodescope.watch.detect.crash_loop import CrashLoops
from nodescope.watch.look import NodeLook
from nodescope.watch.sighting import Sighting

POD = {"pod_uid": "uid-1"}
NAMED = {**POD, "namespace": "shop", "pod": "web-1", "container": "app"}


def crash(labels: dict[str, str], ends: int, every: float = 60.0, lived: float = 5.0) -> list[Sighting]:
    """Each life with an id of its own; what is told after each of them."""
    loops, told = CrashLoops(), []
    for number in range(ends):
        at = 600.0 + every * number
        facts = {"lifetime_seconds": lived}
        end = Event(EXIT, round(at * 1e9), "container", (f"{number}" * 64,), tuple(labels.items()), facts)
        told += loops.look(NodeLook(at, 10.0, [], {}, 8, 1.0, 1.0, events=[end]))
    return told


def test_three_ends_of_a_container_are_a_loop() -> None:
    assert not crash(NAMED, 2)
    assert crash(NAMED, 3)[0].subject.pod == "web-1"


def test_lives_of_a_pod_without_a_name_are_one_finding() -> None:
    """Each has an id of its own, which is all that is known of it; its init containers end once each."""
    assert not crash(POD, 4)
    told = crash(POD, 6)
    assert len(told) == 2
    assert {one.key for one in told} == {told[0].key}
    assert told[-1].evidence["ends"] == 6


def test_containers_of_a_pod_that_is_deleted_are_no_loop() -> None:
    """They ran beside each other, and end within a moment."""
    for labels in (POD, NAMED):
        assert not crash(labels, 8, every=0.5, lived=300.0)
