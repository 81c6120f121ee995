"""
One thing that is wrong on a node: from its birth to its end it has one identity.

A finding is *born* when the watcher suspects something, *confirmed* when the
evidence is enough to tell somebody, *updated* when what was told has changed,
and *resolved* when it is over. Its severity is its consequence:

    kill      a container was killed, or will be soon; pods will be evicted
    hurt      users wait: throttled, crowded out, a device is gone, a crash loop
    waste     nobody waits, something is paid for and not used
    curious   worth knowing, no reason to get up: learned, or said to be no problem

Only confirmed findings of the first two are worth a page.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any

# Most urgent first.
SEVERITIES = ("kill", "hurt", "waste", "curious")
PAGE_SEVERITIES = frozenset({"kill", "hurt"})
STATES = ("born", "confirmed", "updated", "resolved")
CONFIRMED_STATES = frozenset({"confirmed", "updated"})
# In order of consequence, where severities are equal.
KINDS = (
    "memory_leak",
    "oom_kill",
    "disk_full",
    "gpu_loss",
    "crash_loop",
    "noisy_neighbour",
    "cpu_throttling",
    "waste",
)

Fact = float | int | str | bool | None


@dataclass(frozen=True, slots=True)
class NodeFinding:
    """A finding at one moment of its life; the next moment is a new object with the same id."""

    id: str
    """The same over its whole life, also when it comes back within the hour."""
    key: str
    """What it is about: kind, namespace, workload, container or device. Findings of one key are one after the other."""
    kind: str
    severity: str
    state: str
    node: str
    onset: float
    """Epoch seconds at which it began, which is before it was seen."""
    born: float
    """When it was first suspected."""
    updated: float
    """When this moment of its life was told."""
    sentence: str
    """What happened and what it means, in one or two sentences."""
    advice: str = ""
    """What to look at next."""
    confirmed: float | None = None
    ended: float | None = None
    namespace: str = ""
    workload: str = ""
    pod: str = ""
    container: str = ""
    """The container's name; the life that is meant is in container_id."""
    container_id: str = ""
    device: str = ""
    """A mount point, a GPU, or the resource that a neighbour takes: cpu, io, memory."""
    pod_uid: str = ""
    """Of the pod; empty where there is none."""
    cause: str = ""
    """The workload that took what others lack, or the reason in words."""
    victims: tuple[str, ...] = ()
    """At most eight workloads that wait, the worst first."""
    victims_count: int = 0
    time_to_limit_seconds: float | None = None
    """How long until the limit, by now's pace; None where none is being approached."""
    evidence: Mapping[str, Fact] = field(default_factory=dict)
    """Numbers with their unit in the name."""
    times: int = 1
    """How often it came back: what flaps is one finding."""
    is_learned: bool = False
    """It is so every day at this hour."""
    feedback: str = ""
    """What a person said about it: not_a_problem, or empty."""
    silenced: str = ""
    """The silence that keeps it from paging anybody; empty where none does."""
    revision: int = 0
    """Counts all changes of this node's findings; a reader asks for those after the last it has."""

    @property
    def is_open(self) -> bool:
        return self.state != "resolved"

    @property
    def is_confirmed(self) -> bool:
        return self.state in CONFIRMED_STATES

    @property
    def is_page_worthy(self) -> bool:
        """Whether somebody should be told now."""
        return self.is_confirmed and self.severity in PAGE_SEVERITIES and not self.silenced

    @property
    def who(self) -> str:
        """The workload, container or device, as a sentence calls it."""
        name = f"{self.namespace}/{self.workload}" if self.namespace else self.workload
        return name or self.device or self.container

    def to_json(self) -> dict[str, Any]:
        # Every field is plain but these: a copy in depth would cost ten times as much, at every save.
        content: dict[str, Any] = {name: getattr(self, name) for name in FIELDS}
        content["victims"] = list(self.victims)
        content["evidence"] = {name: plain_fact(value) for name, value in self.evidence.items()}
        content["time_to_limit_seconds"] = plain_fact(self.time_to_limit_seconds)
        return content


FIELDS = {item.name: item for item in fields(NodeFinding)}
TEXTS = frozenset(name for name, item in FIELDS.items() if item.type is str)
NUMBERS = frozenset({"onset", "born", "updated", "confirmed", "ended", "time_to_limit_seconds"})
NEEDED = ("id", "key", "kind", "severity", "state", "node", "onset", "born", "updated", "sentence")


def plain_fact(value: Fact) -> Fact:
    """JSON knows no NaN and no infinity."""
    return None if isinstance(value, float) and not isfinite(value) else value


def parse_finding(content: Mapping[str, Any]) -> NodeFinding | None:
    """A finding from its JSON; None where it is not one, so that a damaged file costs one finding at the most."""
    given = {name: value for name, value in content.items() if name in FIELDS}
    if any(name not in given for name in NEEDED) or not is_well_typed(given):
        return None
    if given["severity"] not in SEVERITIES or given["state"] not in STATES or given["kind"] not in KINDS:
        return None
    victims = given.get("victims", ())
    return NodeFinding(**{**given, "victims": tuple(str(name) for name in victims)})


def is_well_typed(given: Mapping[str, Any]) -> bool:
    """Text is text and numbers are numbers; what is not said has its default."""
    texts = all(isinstance(given[name], str) for name in TEXTS & given.keys())
    numbers = all(is_number(given[name]) for name in NUMBERS & given.keys())
    counts = all(isinstance(given.get(name, 0), int) for name in ("times", "revision", "victims_count"))
    shapes = isinstance(given.get("evidence", {}), Mapping) and isinstance(
        given.get("victims", []), list | tuple
    )
    return texts and numbers and counts and shapes


def is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def rank_findings(findings: Iterable[NodeFinding]) -> list[NodeFinding]:
    """Open before resolved, confirmed before suspected, then by consequence, then the soonest limit."""

    def order(finding: NodeFinding) -> tuple[bool, bool, int, int, float, float]:
        return (
            not finding.is_open,
            not finding.is_confirmed,
            SEVERITIES.index(finding.severity),
            KINDS.index(finding.kind),
            finding.time_to_limit_seconds if finding.time_to_limit_seconds is not None else float("inf"),
            -finding.updated,
        )

    return sorted(findings, key=order)


def describe_health(findings: Sequence[NodeFinding], node: str, containers: int | None = None) -> str:
    """One line for a node: how many things are wrong, or that nothing is."""
    told = [finding for finding in findings if finding.is_page_worthy]
    others = sum(finding.is_open for finding in findings) - len(told)
    beside = f" {others} more to know, none urgent." if others else ""
    if not told:
        over = f" ({containers} containers)" if containers else ""
        return f"Nothing is wrong on {node}{over}.{beside}"
    count = "1 thing is" if len(told) == 1 else f"{len(told)} things are"
    return f"{count} wrong on {node}: {rank_findings(told)[0].sentence}{beside}"
