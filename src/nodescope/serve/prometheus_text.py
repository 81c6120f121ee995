"""
Families of metrics as Prometheus text, and as OpenMetrics.

For the few series that a server has about itself; the thousands that the
agent samples are assembled by `publish.exposition` from the same pieces.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nodescope.base.self_counters import Histogram

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# Beyond 2^53 a float64 is no longer exact to the unit, and int() would pretend.
EXACT = 2.0**53
# What nodescope says about itself has at most so many.
OWN_LABELS = 2

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]
"""Suffix of the name, labels, value."""


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """All series of one name."""

    name: str
    help: str
    samples: tuple[Sample, ...]
    is_histogram: bool = False

    @property
    def metric_type(self) -> str:
        """Prometheus' own convention: a counter's name ends in _total, and no other's does."""
        return "histogram" if self.is_histogram else "counter" if self.name.endswith("_total") else "gauge"


def build_single(name: str, sentence: str, value: float) -> MetricFamily:
    """A family of one series without labels."""
    return MetricFamily(name, sentence, (("", (), float(value)),))


def build_labelled(
    name: str, sentence: str, label: str | tuple[str, ...], values: Mapping[Any, float]
) -> MetricFamily:
    """A series for every value of a label, or for every tuple of values of several."""
    labels = (label,) if isinstance(label, str) else label
    samples = tuple(
        ("", tuple(zip(labels, (key,) if isinstance(key, str) else key, strict=True)), float(value))
        for key, value in values.items()
    )
    return MetricFamily(name, sentence, samples)


def build_histogram(name: str, sentence: str, histograms: Mapping[Labels, Histogram]) -> MetricFamily:
    samples = [
        sample for labels, histogram in histograms.items() for sample in list_samples(histogram, labels)
    ]
    return MetricFamily(name, sentence, tuple(samples), is_histogram=True)


def list_samples(histogram: Histogram, labels: Labels) -> Iterable[Sample]:
    running = 0
    for bound, count in zip((*histogram.bounds, math.inf), histogram.counts):
        running += count
        yield "_bucket", (*labels, ("le", "+Inf" if bound == math.inf else repr(bound))), float(running)
    yield "_sum", labels, histogram.total
    yield "_count", labels, float(running)


def render_families(families: Iterable[MetricFamily], *, openmetrics: bool) -> str:
    lines = []
    for family in families:
        lines.append(render_header(family.name, family.metric_type, family.help, openmetrics=openmetrics))
        lines += [
            f"{family.name}{suffix}{choose_labels(labels)} {render_value(value)}\n"
            for suffix, labels, value in family.samples
        ]
    return "".join(lines)


def render_header(name: str, metric_type: str, sentence: str, *, openmetrics: bool) -> str:
    """HELP and TYPE; OpenMetrics names a counter's family without _total."""
    family = name.removesuffix("_total") if openmetrics and metric_type == "counter" else name
    shown_type = "unknown" if openmetrics and metric_type == "untyped" else metric_type
    escaped = sentence.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {family} {escaped}\n# TYPE {family} {shown_type}\n"


def render_labels(pairs: Iterable[tuple[str, str]]) -> str:
    inside = ",".join(f'{name}="{escape_label(value)}"' for name, value in pairs)
    return f"{{{inside}}}" if inside else ""


def choose_labels(labels: Labels) -> str:
    # More labels are those of a container that ended: its name is not kept.
    return recall_labels(labels) if len(labels) <= OWN_LABELS else render_labels(labels)


@lru_cache(maxsize=2048)
def recall_labels(labels: Labels) -> str:
    """The same for what is rendered at every scrape, such as the names of our sources."""
    return render_labels(labels)


def escape_label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def render_value(value: float) -> str:
    """One number as Prometheus writes it."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if value == int(value) and abs(value) < EXACT else repr(value)
