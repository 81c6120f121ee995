"""
The shapes of all answers, for the OpenAPI document and for web/src/types.ts, which is generated from it.

Answers are rendered by hand (a panel has 24,000 numbers); tests hold them to
these shapes. Times are epoch seconds; null means not measured, never zero. A
field with a default is absent from some answers.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Numbers = list[float | None]


class ErrorJson(BaseModel):
    """What was wrong, in detail, and what would be accepted."""

    error: str
    detail: str
    hint: str


class HealthJson(BaseModel):
    status: Literal["ok"]
    version: str
    answers: Literal["resting", "starting", "ready"]


class LimitsJson(BaseModel):
    panels: int
    max_points: int
    containers: int
    studies: int


class ProblemJson(BaseModel):
    """A file that is not served, or a tail that could not be had."""

    file: str
    reason: str


class NodeSizeJson(BaseModel):
    """What one node has."""

    node: str
    cores: int | None
    memory_bytes: float | None
    ahead_seconds: float | None
    """How far its clock is ahead of the one that dated its files; null where they do not tell."""
    containers: int
    from_: float | None = Field(alias="from")
    to: float | None


class InstanceJson(BaseModel):
    version: str
    node: str
    nodes: list[str]
    from_: float | None = Field(alias="from")
    to: float | None
    live: bool
    lag_seconds: float | None
    agent: str | None
    cores: int | None
    memory_bytes: float | None
    sizes: list[NodeSizeJson]
    containers: int
    limit: LimitsJson
    problems: list[ProblemJson]
    cluster: bool = False
    """Whether this viewer has a page of many nodes, /cluster."""


class PeakJson(BaseModel):
    """The largest sample of the range, and between which moments it was."""

    value: float | None
    resource: Literal["memory", "cpu", "io"]
    whose: str | None
    from_: float = Field(alias="from")
    to: float


class TileJson(BaseModel):
    id: Literal["cpu", "memory", "pressure", "containers"]
    title: str
    value: float | None
    of: float | None
    unit: str
    sentence: str
    spark: Numbers
    resource: Literal["memory", "cpu", "io"] | None = None
    whose: str | None = None
    peak: PeakJson | None = None


class SummaryJson(BaseModel):
    tiles: list[TileJson]
    restarts: int
    oom_kills: int
    at: float
    """The end of the minute that the values are means of."""
    whose: str | None
    """Which containers, where a filter chose some; null of whole nodes."""


class MetricJson(BaseModel):
    name: str
    scope: str
    plain: bool
    kind: Literal["counter", "gauge"]
    unit: str
    help: str
    priority: int
    scale: float | None


class MetricsJson(BaseModel):
    metrics: list[MetricJson]


class CountedJson(BaseModel):
    name: str
    count: int


class FiltersJson(BaseModel):
    namespaces: list[CountedJson]
    qos_classes: list[CountedJson]
    nodes: list[CountedJson]
    labels: dict[str, list[str]]


class ContainerJson(BaseModel):
    id: str
    short_id: str
    name: str
    scope: str
    container: str | None
    pod: str | None
    namespace: str | None
    qos_class: str | None
    node: str
    image: str | None
    workload: str
    workload_kind: str
    workload_known_by: str
    cpu_request: float | None
    memory_request: float | None
    previous_exit: str | None
    """How the run before this one ended: exit code, reason, beginning of its id; null where the API did not say."""
    labels: dict[str, str]
    restarts: int
    """As Kubernetes counts them; with `lives=joined` those that were seen in the range."""
    kills: int
    """With `lives=joined`: lives of the range that were killed for memory."""
    lives: list[str]
    """With `lives=joined`: the ids that the row stands for, oldest first."""
    first_seen: float
    last_seen: float
    state: Literal["running", "exited", "oom_killed"]
    value: float | None
    over_span: float | None
    last: float | None
    max: float | None
    spark: Numbers
    limit: float | None


class ContainersJson(BaseModel):
    containers: list[ContainerJson]
    total: int
    truncated: bool
    metric: str
    unit: str
    ranked_from: float
    ranked_to: float
    sentence: str
    """How many there are, and how many of them run."""
    recorded_seconds: float | None
    """How much of the range was recorded: `over_span` is use divided by this."""


class WorkloadJson(BaseModel):
    """All pods of a workload on one node, over the range."""

    name: str
    namespace: str | None
    kind: str
    known_by: str
    node: str
    images: list[str]
    containers: list[str]
    pods: int
    lives: int
    restarts: int
    over_span: float | None
    mean: float | None
    per_pod: float | None
    min: float | None
    max: float | None
    there_share: float
    recorded_seconds: float | None
    """Where less than the range was recorded: how much. `over_span` is use divided by this."""
    share_of_node: float | None
    sentence: str


class DifferenceJson(BaseModel):
    """One figure in both spans."""

    sentence: str
    node: str | None
    container: str | None
    """Null of the total of a node."""
    metric: str | None
    unit: str | None
    before: float | None
    after: float | None


class ComparisonJson(BaseModel):
    sentence: str
    differences: list[DifferenceJson]
    """The largest first, at most twelve."""
    looked_at: str
    not_looked_at: list[str]


class WorkloadsJson(BaseModel):
    workloads: list[WorkloadJson]
    ranked: int
    """Workloads that have the metric; `limit` may show fewer."""
    total_over_span: float | None
    """Of all that were ranked; null of what does not add up."""
    share_of_nodes: float | None
    metric: str
    unit: str
    from_: float = Field(alias="from")
    to: float
    sentence: str
    """The first of them; of none, why."""


class RecordedJson(BaseModel):
    from_: float = Field(alias="from")
    to: float


class GapJson(BaseModel):
    from_: float = Field(alias="from")
    to: float
    reason: str


class SeriesJson(BaseModel):
    id: str
    name: str
    node: str
    labels: dict[str, str]
    mean: Numbers
    min: Numbers
    max: Numbers
    samples: int
    limit: float | None
    gaps: list[GapJson]
    lives: list[str]
    """With `lives=joined`: the ids that the series is made of, oldest first."""


class MissingJson(BaseModel):
    id: str
    reason: str


class TimeseriesJson(BaseModel):
    metric: str
    unit: str
    kind: Literal["counter", "gauge"]
    scope: str | None
    rate: bool
    from_: float = Field(alias="from")
    to: float
    bucket_seconds: float
    time: list[float]
    series: list[SeriesJson]
    missing: list[MissingJson]
    refused: list[str]
    """Files of the range that could not be read, and why."""
    recorded: list[RecordedJson]
    """The parts of the range in which the node was recorded."""


class StudyRowJson(BaseModel):
    id: str
    title: str
    help: str


class StudiesJson(BaseModel):
    studies: list[StudyRowJson]


class FindingJson(BaseModel):
    """One finding. Each kind adds fields of its own; those that the page reads are listed last."""

    model_config = ConfigDict(extra="allow")

    kind: str
    from_: float = Field(alias="from")
    to: float
    at: float | None
    confidence: float
    magnitude: float | None
    unit: str
    before: float | None
    after: float | None
    sentence: str
    evidence: dict[str, float | str | None]
    period_seconds: float | None = None
    strength: float | None = None
    slope_per_second: float | None = None
    limit: float | None = None
    time_to_limit_seconds: float | None = None


class StudiedSeriesJson(BaseModel):
    """The series that a study looked at; its id is the one of /api/timeseries."""

    id: str
    metric: str
    container: str | None
    node: str | None


class StudyResultJson(BaseModel):
    """What one study says about one series."""

    study: str
    version: int
    series: StudiedSeriesJson
    from_: float | None = Field(alias="from")
    to: float | None
    samples: int
    missing_share: float
    status: Literal["found", "none", "not_enough_data", "not_collected"]
    reason: str | None
    sentence: str
    findings: list[FindingJson]
    power: dict[str, float] = Field(default_factory=dict)
    """Of a No: what would have been found."""


class StudyJson(BaseModel):
    study: str
    results: list[StudyResultJson]


class EventJson(BaseModel):
    at: float
    kind: Literal["start", "exit", "oom", "restart", "note"]
    container: str
    name: str
    node: str
    sentence: str


class EventsJson(BaseModel):
    events: list[EventJson]
    truncated: bool


class AnnotationJson(BaseModel):
    """A note about a node's data; `at` is in epoch seconds."""

    id: str
    at: float
    text: str


class AnnotationsJson(BaseModel):
    annotations: list[AnnotationJson]


class IncidentChangeJson(BaseModel):
    """What one workload took or lacked, before and while it lasted."""

    workload: str
    container: str
    metric: str
    unit: str
    before: float | None
    after: float | None
    from_: float = Field(alias="from")
    to: float
    lag_seconds: float | None
    overlap: float | None


class IncidentJson(BaseModel):
    sentence: str
    kind: Literal["taken", "oom_kill", "throttled", "deploy", "crash_loop", "change", "unexplained"]
    node: str
    resource: str
    causes: list[IncidentChangeJson]
    victims: list[IncidentChangeJson]
    victims_count: int
    from_: float = Field(alias="from")
    to: float
    over: bool
    confidence: float | None
    weight: float | None
    share: float | None
    limit: float | None
    limit_before: float | None
    killed: float
    kills: int
    image_before: str
    image_after: str
    new: bool
    notes: list[str]


class NodeIncidentsJson(BaseModel):
    """At most three incidents of one node, or `most`, the weightiest first."""

    sentence: str
    node: str
    from_: float = Field(alias="from")
    to: float
    history: float
    incidents: list[IncidentJson]
    workloads: int
    containers: int
    asked: str
    background: list[str]
    unseen: list[str]


class IncidentsJson(BaseModel):
    nodes: list[NodeIncidentsJson]


class NodeFindingJson(BaseModel):
    """What the watcher found, at the newest moment of its life; times in epoch seconds."""

    id: str
    key: str
    kind: str
    severity: str
    state: str
    node: str
    onset: float
    born: float
    updated: float
    sentence: str
    advice: str
    confirmed: float | None
    ended: float | None
    namespace: str
    workload: str
    pod: str
    container: str
    container_id: str
    device: str
    pod_uid: str
    cause: str
    victims: list[str]
    victims_count: int
    time_to_limit_seconds: float | None
    evidence: dict[str, float | int | str | bool | None]
    times: int
    is_learned: bool
    feedback: str
    silenced: str
    revision: int


class NodeWrongJson(BaseModel):
    """What is wrong on a node, the worst first; incidents where no watcher has told of anything."""

    node: str
    sentence: str
    newest: float
    watched: bool
    findings: list[NodeFindingJson]
    incidents: list[NodeIncidentsJson]


class WrongJson(BaseModel):
    nodes: list[NodeWrongJson]


class ContainerNeedJson(BaseModel):
    """What one container of a workload needed on one node; what was not measured, requested or limited is null."""

    node: str
    namespace: str
    workload: str
    kind: str
    container: str
    replicas: int
    runs: int
    first: float
    last: float
    seen: float
    specified: bool
    cpu_request: float | None
    cpu_limit: float | None
    memory_request: float | None
    memory_limit: float | None
    cpu_mean: float | None
    cpu_busy: float | None
    cpu_most: float | None
    cpu_exact: bool
    throttled: float | None
    memory_most: float | None
    cache_known: bool
    cache_mean: float | None
    growth: float | None
    oom_kills: int
    killed_at: float | None


class NodeNeedsJson(BaseModel):
    node: str
    from_: float = Field(alias="from")
    to: float
    needs: list[ContainerNeedJson]
    unseen: list[str]


class SizesJson(BaseModel):
    """Requests and limits of one replica, in cores and bytes; null where there is none, or where it is not known."""

    cpu_request: float | None
    cpu_limit: float | None
    memory_request: float | None
    memory_limit: float | None


class SizeAdviceJson(BaseModel):
    """What one container of a workload should request and be limited to; of one replica, savings of all."""

    sentence: str
    risk: str
    state: Literal["sized", "fits", "not_yet", "not_measured"]
    namespace: str
    workload: str
    kind: str
    container: str
    replicas: int
    specified: bool
    now: SizesJson
    cpu_request: float | None
    cpu_limit: float | None
    memory_request: float | None
    memory_limit: float | None
    saved_cores: float | None
    saved_bytes: float | None
    ready: float


class RightsizeJson(BaseModel):
    sentence: str
    advice: list[SizeAdviceJson]
    patch: str
    nodes: list[NodeNeedsJson]


class ScanRowJson(BaseModel):
    """What a study found in one workload."""

    node: str
    workload: str
    container: str
    kind: str
    sentence: str
    unit: str
    confidence: float | None
    magnitude: float | None
    before: float | None
    after: float | None
    weight: float | None
    from_: float = Field(alias="from")
    to: float
    samples: int
    told: str


class NodeScanJson(BaseModel):
    """One study over all workloads of one node, the weightiest first."""

    node: str
    study: str
    metric: str
    from_: float = Field(alias="from")
    to: float
    workloads: int
    studied: int
    rows: list[ScanRowJson]
    unseen: list[str]


class ScanJson(BaseModel):
    sentence: str
    nodes: list[NodeScanJson]


class WorkloadUseJson(BaseModel):
    workload: str
    value: float | None
    share: float | None


class NodeSummaryJson(BaseModel):
    """A node over the range: what it is, how full, who uses most, what went wrong; null was not measured."""

    sentence: str
    lines: list[str]
    node: str
    from_: float = Field(alias="from")
    to: float
    cores: float | None
    memory_bytes: float | None
    cpu_whole: bool
    pods: int
    containers: int
    workloads: int
    cpu_mean: float | None
    cpu_most: float | None
    memory_mean: float | None
    memory_last: float | None
    pressure_cpu: float | None
    pressure_memory: float | None
    pressure_io: float | None
    disk: str
    disk_used: float | None
    disk_left: float | None
    restarts: int
    oom_kills: int
    busiest: list[WorkloadUseJson]
    largest: list[WorkloadUseJson]
    incidents: list[str]
    unseen: list[str]


class NodeSummariesJson(BaseModel):
    nodes: list[NodeSummaryJson]


class LivePointsJson(BaseModel):
    """The data of a `points` event: by metric, then by series, the values that are new."""

    at: float
    lag_seconds: float | None
    panels: dict[str, dict[str, float | None]]


class LiveStatusJson(BaseModel):
    """The data of a `status` event."""

    live: bool
    reason: str
    lag_seconds: float | None
    at: float | None
    """The time of the newest sample of any series; null where there is none."""


class ShiftJson(BaseModel):
    """One metric of one container, in the range and before it; null where it was not there."""

    container: str
    name: str
    namespace: str | None
    workload: str
    node: str
    metric: str
    unit: str
    before: float | None
    after: float | None
    before_curve: Numbers
    after_curve: Numbers
    sentence: str


class ShiftsJson(BaseModel):
    """The largest changes first; `pairs` is how many containers times metrics were compared."""

    sentence: str
    from_: float = Field(alias="from")
    to: float
    before_from: float
    bucket_seconds: float
    containers: int
    pairs: int
    unseen: list[str]
    """Nodes that recorded nothing before the range."""
    changes: list[ShiftJson]


class GroupSumJson(BaseModel):
    key: str
    name: str
    node: str
    containers: int
    mean: Numbers


class GroupsJson(BaseModel):
    """Sums by namespace, workload or node; of shares of time (`join` is max) the largest of the group."""

    metric: str
    unit: str
    join: Literal["sum", "max"]
    group: Literal["namespace", "workload", "node"]
    bucket_seconds: float
    time: list[float]
    total: int
    groups: list[GroupSumJson]


class HeatRowJson(BaseModel):
    """A container's share of its limit; of the node where it has none; of time where that is what was measured."""

    id: str
    name: str
    namespace: str | None
    node: str
    of: Literal["limit", "node", "time"]
    whole: float | None
    kills: int
    share: Numbers


class HeatJson(BaseModel):
    """The most harmed first."""

    metric: str
    bucket_seconds: float
    time: list[float]
    total: int
    rows: list[HeatRowJson]
