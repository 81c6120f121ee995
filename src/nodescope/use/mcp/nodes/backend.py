"""
What the tools ask of one node, whoever answers: a data folder here, or a viewer over HTTP.

Every answer is small and already reduced: names, figures, findings. Text that
came from tenants (pod names, images, labels) is cleaned where it enters.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from nodescope.base.text import clean_text
from nodescope.base.time_range import TimeRange

# A study's answer in its one JSON form (contract of findings).
StudyAnswer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class About:
    """What a node's data is."""

    node: str
    version: str
    from_ms: int | None
    to_ms: int | None
    containers: int
    problems: tuple[str, ...] = ()
    """Files that are not served, and why."""


@dataclass(frozen=True, slots=True)
class MetricRow:
    """A metric that can be asked for."""

    name: str
    unit: str
    kind: str
    help: str
    is_plain: bool
    scope: str = "container"


@dataclass(frozen=True, slots=True)
class ArchivedLife:
    """One container from its start to its end; a restart is another life."""

    container_id: str
    node: str
    namespace: str
    pod: str
    container: str
    qos_class: str
    first_ms: int
    last_ms: int
    image: str = ""
    restarts: int = 0

    @property
    def name(self) -> str:
        """pod/container for people; a short id where names are not known."""
        return "/".join(part for part in (self.pod, self.container) if part) or self.container_id[:12]


# A pod's name may be 253 characters; longer than this it would crowd out the
# sentence it stands in. Its end, which tells replicas apart, stays.
NAME_CHARACTERS, KEPT_END = 80, 20


def clean_name(text: object) -> str:
    """A tenant's text as it may stand between quotation marks in a sentence: it cannot end them, nor fill it."""
    name = clean_text(str(text or ""), 1000).replace('"', "'")
    if len(name) <= NAME_CHARACTERS:
        return name
    return f"{name[: NAME_CHARACTERS - KEPT_END - 3]}...{name[-KEPT_END:]}"


@dataclass(frozen=True, slots=True)
class MetricLevel:
    """One life's figures of a metric over a span."""

    container_id: str
    mean: float
    least: float
    most: float
    samples: int


@dataclass(frozen=True, slots=True)
class Levels:
    """A metric of many lives, and in which unit."""

    unit: str
    rows: tuple[MetricLevel, ...]
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Thing:
    """A GPU, a disk, a core, the node itself: what has metrics and is no container."""

    name: str
    """For people: GPU 0, A100; a uuid is among the labels."""
    level: MetricLevel
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """Something that happened to a container: start, exit, oom, restart."""

    at_ms: int
    kind: str
    container_id: str
    facts: Mapping[str, Any] = field(default_factory=dict)


class Backend(Protocol):
    """
    One node. Calls block, and are made on threads.

    What cannot be answered as asked raises RequestRejected with the remedy; a
    node that cannot be reached raises NodeAway.
    """

    def read_about(self) -> About: ...

    def read_metrics(self) -> list[MetricRow]: ...

    def read_lives(self, span: TimeRange | None) -> list[ArchivedLife]:
        """Containers that lived in the span, or ever."""
        ...

    def read_levels(self, metric: str, span: TimeRange, containers: Sequence[str] | None) -> Levels: ...

    def read_things(self, metric: str, span: TimeRange) -> tuple[str, list[Thing]]:
        """Of a metric that is not of containers: its unit, and everything that has it."""
        ...

    def study(self, name: str, metric: str, containers: Sequence[str], span: TimeRange) -> list[StudyAnswer]:
        """One answer for each container that has samples; correlation answers for the first only."""
        ...

    def read_events(self, span: TimeRange) -> list[NodeEvent]: ...


Item = TypeVar("Item")


def parts_of(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """In pieces that one request takes."""
    return (items[start : start + size] for start in range(0, len(items), size))
