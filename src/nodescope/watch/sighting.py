"""What a detector sees at one look: the store makes of it a finding with a life."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodescope.base.findings.node_finding import Fact


@dataclass(frozen=True, slots=True)
class FindingSubject:
    """Whom a finding is about."""

    namespace: str = ""
    workload: str = ""
    pod: str = ""
    container: str = ""
    container_id: str = ""
    device: str = ""
    pod_uid: str = ""

    @property
    def name(self) -> str:
        """As a sentence calls it."""
        full = f"{self.namespace}/{self.workload}" if self.namespace else self.workload
        return full or self.device or self.container or self.container_id[:12]


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something is wrong now."""

    kind: str
    severity: str
    subject: FindingSubject
    onset: float
    sentence: str
    is_sure: bool
    """False: suspected only; a finding is born, and nobody is told."""
    advice: str = ""
    cause: str = ""
    victims: tuple[str, ...] = ()
    time_to_limit_seconds: float | None = None
    evidence: Mapping[str, Fact] = field(default_factory=dict)
    count: int = 0
    """Of what happens more than once, such as kills: a higher one is news at once."""
    is_learned: bool = False

    @property
    def key(self) -> str:
        """Stable over restarts of container and agent: names, never ids."""
        who = self.subject
        return f"{self.kind}|{who.namespace}|{who.workload}|{who.container}|{who.device}"
