"""
What the tools ask of one node, whoever answers: a data folder here, or a viewer over HTTP.

Both give the dataclasses of use/answers. Text that came from tenants (pod
names, images, labels) is cleaned where it enters.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from nodescope.base.text import clean_name, clean_text
from nodescope.base.time_range import TimeRange
from nodescope.read.series_name import LABELS, Subject
from nodescope.use.answers.containers import Life
from nodescope.use.answers.events import ContainerEvent
from nodescope.use.answers.findings import STUDIES_MOST
from nodescope.use.answers.incidents.incident import IncidentList
from nodescope.use.answers.levels import Device, Levels, derive_level
from nodescope.use.answers.metrics import MetricRow
from nodescope.use.answers.node_summary.summary import NodeSummary
from nodescope.use.answers.node_summary.wrongs import NodeWrongs
from nodescope.use.answers.overview import About
from nodescope.use.answers.rightsizing.need import NodeNeeds
from nodescope.use.answers.scanning.scan import NodeScan
from nodescope.use.answers.timeseries import Timeseries
from nodescope.use.studies import StudyAnswer, correlation, summary

# What of a device's labels an answer shows: what it is, and what tells it apart.
DEVICE_LABELS = ("uuid", "gpu_index", "name", "modelName", "vendor", "device", "pci_bus_id")
# Details that may stand in a sentence.
DETAILS = ("owner", "workload", "workload_kind")
NAME_LABELS = ("l_namespace", "l_pod_name", "l_container_name", "l_qos_class")


class Backend(Protocol):
    """
    One node. Calls block, and are made on threads.

    What cannot be answered raises RequestRejected with the remedy; a node that
    cannot be reached raises NodeAway.
    """

    @property
    def series_most(self) -> int:
        """So many series `read_timeseries` answers at once."""
        ...

    def read_about(self) -> About: ...

    def read_metrics(self) -> list[MetricRow]: ...

    def read_lives(self, span: TimeRange | None) -> list[Life]:
        """Containers that were there in the span, or ever; by namespace, name and start."""
        ...

    def read_timeseries(self, metric: str, span: TimeRange, ids: Sequence[str] | None) -> Timeseries:
        """One figure for the whole span, exact, without limits; of at most `series_most` ids, or all of a scope."""
        ...

    def run_studies(self, study: str, metric: str, ids: Sequence[str], span: TimeRange) -> list[StudyAnswer]:
        """Of at most STUDIES_MOST ids."""
        ...

    def list_busiest(self, metric: str, span: TimeRange) -> list[str]:
        """The ids of those that used the most, the first first; at least STUDIES_MOST where there are so many."""
        ...

    def read_events(self, span: TimeRange) -> list[ContainerEvent]: ...

    def read_incidents(self, span: TimeRange, ids: Sequence[str] | None) -> IncidentList | None:
        """Of the whole node, or of the workload that these lives are of; None where it was not there."""
        ...

    def read_wrongs(self) -> NodeWrongs:
        """What is wrong now: the watcher's findings, or the incidents of the last hour."""
        ...

    def summarize(self, span: TimeRange) -> NodeSummary: ...

    def scan(self, study: str, metric: str, span: TimeRange) -> NodeScan:
        """One study over all workloads."""
        ...

    def read_needs(self, span: TimeRange, ids: Sequence[str] | None) -> NodeNeeds:
        """What containers needed, of all workloads or of those that these lives are of."""
        ...


def read_levels(backend: Backend, metric: str, span: TimeRange, ids: Sequence[str] | None = None) -> Levels:
    """Exact figures over the span, of these containers or of all that were there."""
    if ids is None:
        ids = [life.id for life in backend.read_lives(span)]
    unit, rows = "", []
    stretches: tuple[TimeRange, ...] = ()
    for some in parts_of(ids, backend.series_most):
        found = backend.read_timeseries(metric, span, some)
        unit, stretches = clean_text(found.unit), found.recorded
        rows += [level for one in found.series if (level := derive_level(one))]
    return Levels(unit, tuple(rows), stretches)


def read_devices(backend: Backend, metric: str, span: TimeRange, node: str) -> tuple[str, list[Device]]:
    """Of a metric that is not of containers: its unit, and everything that has it."""
    found = backend.read_timeseries(metric, span, None)
    devices = []
    for series in found.series:
        if level := derive_level(series):
            kept = {key: clean_text(value, 120) for key in DEVICE_LABELS if (value := series.labels.get(key))}
            devices.append(Device(clean_name(series.name).removesuffix(f" on {node}"), level, kept))
    return clean_text(found.unit), devices


def run_study(
    backend: Backend, name: str, metric: str, ids: Sequence[str], span: TimeRange
) -> list[StudyAnswer]:
    """One answer for each container that has samples; correlation answers for the first only."""
    if name == correlation.NAME:
        others = [one for one in backend.list_busiest(metric, span)[:STUDIES_MOST] if one != ids[0]]
        ids = [ids[0], *others[: STUDIES_MOST - 1]]
    answers: list[StudyAnswer] = []
    for some in parts_of(ids, STUDIES_MOST):
        answers += backend.run_studies(name, metric, some, span)
    return [one for one in answers if name != correlation.NAME or one.series["id"] == ids[0]]


def summarize_lives(backend: Backend, metric: str, ids: Sequence[str], span: TimeRange) -> list[StudyAnswer]:
    """The newest, which is the last, as a picture with its figures; of those before it figures alone."""
    newest = run_study(backend, summary.NAME, metric, ids[-1:], span)
    return [*newest, *(run_study(backend, summary.FIGURES, metric, ids[:-1], span) if ids[:-1] else [])]


Item = TypeVar("Item")


def parts_of(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """In pieces that one request takes."""
    return (items[start : start + size] for start in range(0, len(items), size))


# -- text from tenants ---------------------------------------------------------------


def clean_life(life: Life, node: str) -> Life:
    """With names that may stand in a sentence, under the name that the node has here."""
    labels = tuple(
        clean_name(value) if value and name in NAME_LABELS else value
        for name, value in zip(LABELS, life.subject.labels)
    )
    known = life.subject.details
    cleaned_too = {key: clean_name(known[key]) for key in DETAILS if known.get(key)}
    details = {**known, "image": clean_name(life.image), **cleaned_too}
    cleaned = Life(life.id, "", node, Subject(labels, details, life.first_ms, life.last_ms))
    if life.scope != "container":
        return replace(cleaned, name=clean_name(life.name))
    named = "/".join(part for part in (cleaned.pod, cleaned.container_name) if part)
    return replace(cleaned, name=named or life.id[:12])


def clean_lives(lives: Sequence[Life], node: str) -> list[Life]:
    cleaned = (clean_life(life, node) for life in lives)
    return sorted(cleaned, key=lambda life: (life.namespace, life.name, life.first_ms))


def clean_metric(row: MetricRow) -> MetricRow:
    return replace(
        row,
        name=clean_text(row.name),
        unit=clean_text(row.unit),
        help=clean_text(row.help),
        scope=clean_text(row.scope),
    )


def clean_about(about: About) -> About:
    problems = tuple(clean_text(reason) for reason in about.problems)
    return replace(about, version=clean_text(about.version), problems=problems)
