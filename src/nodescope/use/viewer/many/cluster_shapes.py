"""
The shapes of the cluster's answers, as shapes.py has those of nodes.

Times are epoch seconds; null means not measured, never zero.
"""

from typing import Literal

from pydantic import BaseModel, Field

from nodescope.use.viewer.shapes import EventJson, Numbers


class SeenFindingJson(BaseModel):
    id: str
    kind: str
    severity: str
    onset: float
    ended: float
    """0 while it is open."""
    who: str
    sentence: str


class NodeMinutesJson(BaseModel):
    """One node in cells of `step` seconds."""

    node: str
    from_: float = Field(alias="from")
    to: float
    step: float
    first: float
    newest: float
    containers: int | None
    """Not known, like all counts here, of a node that has never answered."""
    cores: float | None
    memory_bytes: float | None
    cpu: Numbers
    memory: Numbers
    pressure_cpu: Numbers
    pressure_memory: Numbers
    pressure_io: Numbers
    throttled: Numbers
    gpu: Numbers
    events: list[EventJson]
    findings: list[SeenFindingJson]


class MinutesJson(BaseModel):
    nodes: list[NodeMinutesJson]


class MeasureJson(BaseModel):
    """What a wall can show; `full` is the end of its scale, from `harm` on it hurts."""

    id: str
    title: str
    unit: str
    full: float
    harm: float
    help: str


class WallNodeJson(BaseModel):
    """One node of the wall; `mean` and `most` are of the range, by measure."""

    node: str
    state: Literal["ok", "asking", "away"]
    reason: str
    hurt: bool
    why: str
    container: str
    """The life that `why` is about; empty where it is about none."""
    newest: float | None
    answered: float | None
    containers: int | None
    """Not known, like all counts here, of a node that has never answered."""
    cores: float | None
    memory_bytes: float | None
    mean: dict[str, float | None]
    most: dict[str, float | None]
    restarts: int | None
    kills: int | None
    findings: int | None
    cells: Numbers
    """Of the measure, each the worst minute of its column."""


class WallJson(BaseModel):
    """Nodes over a range, the worst first; while `asking` is not 0, ask again for more."""

    sentence: str
    measure: str
    measures: list[MeasureJson]
    from_: float = Field(alias="from")
    to: float
    start: float
    """Where the first column begins."""
    step: float
    columns: int
    live: bool
    newest: float | None
    first: float | None
    asking: int
    trouble: str
    nodes: list[WallNodeJson]


class NodeUseJson(BaseModel):
    node: str
    used: float | None


class WorkloadSpreadJson(BaseModel):
    """One workload over all nodes that have it: the least, median and most that it used on one."""

    name: str
    namespace: str
    kind: str
    pods: int
    restarts: int
    nodes: int
    least: float | None
    median: float | None
    most: float | None
    total: float | None
    sentence: str
    on: list[NodeUseJson]


class ClusterWorkloadsJson(BaseModel):
    metric: str
    unit: str
    from_: float = Field(alias="from")
    to: float
    workloads: list[WorkloadSpreadJson]
    total: int
    """How many there are; `limit` may show fewer."""
    answered: int
    asking: int
    away: dict[str, str]


class SideJson(BaseModel):
    node: str
    from_: float = Field(alias="from")
    to: float


class LevelDifferenceJson(BaseModel):
    what: str
    unit: str
    left: float | None
    right: float | None


class ClusterComparisonJson(BaseModel):
    """Two nodes, or two ranges: measures, then workloads or nodes by their difference."""

    sentence: str
    left: SideJson
    right: SideJson
    measures: list[LevelDifferenceJson]
    kind: Literal["workloads", "nodes"]
    rows: list[LevelDifferenceJson]
    asking: int
