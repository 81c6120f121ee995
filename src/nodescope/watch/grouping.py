"""
What follows from a leak belongs under it: one thing that is wrong is one page.

Memory that leaks away makes others wait for memory. Who is blamed for that is the leak itself, or
whoever took the last of what was left. It stays a finding, curious, with its cause in words, and
the leak names those who wait. Only a leak that somebody was told of can have others under it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nodescope.base.findings.node_finding import NodeFinding
from nodescope.watch.sighting import Sighting


def find_waiting(seen: Iterable[Sighting]) -> Sighting | None:
    """Somebody waits for memory, and somebody is blamed for it."""
    return next(
        (one for one in seen if one.kind == "noisy_neighbour" and one.subject.device == "memory"), None
    )


def group_sightings(seen: Sequence[Sighting], told: Iterable[NodeFinding]) -> list[Sighting]:
    """The same sightings, consequences under a cause that was told."""
    waiting = find_waiting(seen)
    cause = find_cause(told, waiting) if waiting else None
    if waiting is None or cause is None:
        return list(seen)
    return [
        put_under(one, cause)
        if one is waiting
        else name_victims(one, waiting)
        if one.key == cause.key
        else one
        for one in seen
    ]


def find_cause(told: Iterable[NodeFinding], waiting: Sighting) -> NodeFinding | None:
    """The leak of the one that is blamed, or else the largest of those that took more than it did."""
    more = float(waiting.evidence["more"] or 0.0)
    found = [
        (name_cause(one) == waiting.cause, measure_growth(one), one)
        for one in told
        if one.kind == "memory_leak" and one.is_page_worthy
    ]
    fitting = [one for one in found if one[0] or one[1] >= more]
    return max(fitting, key=lambda one: one[:2])[2] if fitting else None


def name_cause(leak: NodeFinding) -> str:
    return leak.cause or leak.who


def measure_growth(leak: NodeFinding) -> float:
    pace, seconds = leak.evidence.get("rise_bytes_per_second"), leak.evidence.get("rise_seconds")
    return float(pace or 0.0) * float(seconds or 0.0)


def put_under(waiting: Sighting, cause: NodeFinding) -> Sighting:
    follows = f"It follows from the memory of {name_cause(cause)}, which has risen since before."
    return replace(waiting, severity="curious", sentence=f"{waiting.sentence} {follows}")


def name_victims(leak: Sighting, waiting: Sighting) -> Sighting:
    victims = tuple(name for name in waiting.victims if name != leak.subject.name)
    if not victims:
        return leak
    others = f" and {len(victims) - 1} more wait" if len(victims) > 1 else " waits"
    sentence = f"{leak.sentence} {victims[0]}{others} for memory already."
    return replace(leak, victims=victims, sentence=sentence)
