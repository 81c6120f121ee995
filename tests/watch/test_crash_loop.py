"""A container that crashes again and again is one finding, also where nobody knows its name."""

from nodescope.base.frame import EXIT, Event
from nodescope.watch.detect.crash_loop import CrashLoops
from nodescope.watch.look import NodeLook
from nodescope.watch.sighting import Sighting


def crash(labels: list[dict[str, str]]) -> list[Sighting]:
    """Each life with an id and these labels; what is told after each of them."""
    loops, told = CrashLoops(), []
    for number, known in enumerate(labels):
        at = 60.0 * number
        facts = {"lifetime_seconds": 5.0}
        end = Event(EXIT, round(at * 1e9), "container", (f"{number}" * 64,), tuple(known.items()), facts)
        told += loops.look(NodeLook(at, 10.0, [], {}, 8, 1.0, 1.0, events=[end]))
    return told


def test_lives_of_a_pod_without_a_name_are_one_finding() -> None:
    """Each has an id of its own, which is all that is known of it."""
    told = crash([{"pod_uid": "uid-1"}] * 6)
    assert len(told) == 4
    assert {one.key for one in told} == {told[0].key}
    assert told[-1].evidence["ends"] == 6
