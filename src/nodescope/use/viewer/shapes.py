"""
The shapes of all answers, for the OpenAPI document.

Answers are rendered by hand (a panel has 24,000 numbers); tests hold them to
these shapes. Times are epoch seconds; null is nothing measured, never zero.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Numbers = list[float | None]


class Shape(BaseModel):
    model_config = ConfigDict(populate_by_name=True)


class Error(Shape):
    """What was wrong, in detail, and what would be accepted."""

    error: str
    detail: str
    hint: str


class Health(Shape):
    status: Literal["ok"]
    version: str


class Limits(Shape):
    panels: int
    max_points: int
    containers: int
    studies: int


class Problem(Shape):
    """A file that is not served, or a tail that could not be had."""

    file: str
    reason: str


class Instance(Shape):
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
    containers: int
    limit: Limits
    problems: list[Problem]


class Tile(Shape):
    id: Literal["cpu", "memory", "pressure", "containers"]
    title: str
    value: float | None
    of: float | None
    unit: str
    sentence: str
    spark: Numbers


class Summary(Shape):
    tiles: list[Tile]
    restarts: int
    oom_kills: int


class Metric(Shape):
    name: str
    scope: str
    plain: bool
    kind: Literal["counter", "gauge"]
    unit: str
    help: str
    priority: int


class Metrics(Shape):
    metrics: list[Metric]


class Counted(Shape):
    name: str
    count: int


class Filters(Shape):
    namespaces: list[Counted]
    qos_classes: list[Counted]
    nodes: list[Counted]
    labels: dict[str, list[str]]


class Container(Shape):
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
    labels: dict[str, str]
    restarts: int
    first_seen: float
    last_seen: float
    state: Literal["running", "exited", "oom_killed"]
    value: float | None
    last: float | None
    max: float | None
    spark: Numbers
    limit: float | None


class Containers(Shape):
    containers: list[Container]
    total: int
    truncated: bool
    metric: str
    unit: str
    ranked_from: float
    ranked_to: float


class Gap(Shape):
    from_: float = Field(alias="from")
    to: float
    reason: str


class Series(Shape):
    id: str
    name: str
    node: str
    labels: dict[str, str]
    mean: Numbers
    min: Numbers
    max: Numbers
    samples: int
    limit: float | None
    gaps: list[Gap]


class Missing(Shape):
    id: str
    reason: str


class Timeseries(Shape):
    metric: str
    unit: str
    kind: Literal["counter", "gauge"]
    scope: str | None
    rate: bool
    from_: float = Field(alias="from")
    to: float
    bucket_seconds: float
    time: list[float]
    series: list[Series]
    missing: list[Missing]


class StudyRow(Shape):
    id: str
    title: str
    help: str


class Studies(Shape):
    studies: list[StudyRow]


class StudyResult(Shape):
    """The findings object; each kind of finding has fields of its own."""

    study: str
    version: int
    series: dict[str, str | None]
    from_: float | None = Field(alias="from")
    to: float | None
    samples: int
    missing_share: float
    status: Literal["found", "none", "not_enough_data", "not_collected"]
    reason: str | None
    sentence: str
    findings: list[dict[str, Any]]


class Study(Shape):
    study: str
    results: list[StudyResult]


class Event(Shape):
    at: float
    kind: Literal["start", "exit", "oom", "restart"]
    container: str
    name: str
    node: str
    sentence: str


class Events(Shape):
    events: list[Event]
    truncated: bool
