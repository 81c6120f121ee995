"""Reading /metrics with Prometheus' own parsers: the oracle of the real tests."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics_text
from prometheus_client.parser import text_string_to_metric_families as parse_plain_text

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@dataclass(frozen=True)
class Series:
    """One line."""

    name: str
    labels: Mapping[str, str]
    value: float


def parse(text: str, *, openmetrics: bool = False) -> list[Metric]:
    return list((parse_openmetrics_text if openmetrics else parse_plain_text)(text))


def series(text: str, name: str = "") -> Iterator[Series]:
    """Every line, or those of one name: the parser takes a second for thousands."""
    wanted = text
    if name:
        wanted = "".join(
            f"{line}\n" for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} "))
        )
    for family in parse(wanted):
        for sample in family.samples:
            yield Series(sample.name, sample.labels, sample.value)


def find(text: str, name: str, **labels: str) -> list[Series]:
    return [
        item
        for item in series(text, name)
        if all(item.labels.get(key) == value for key, value in labels.items())
    ]


def value(text: str, name: str, **labels: str) -> float:
    """The value of the only series that matches."""
    found = find(text, name, **labels)
    assert len(found) == 1, f"{name}{labels}: {len(found)} series"
    return found[0].value


def sample_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def family_names(text: str) -> list[str]:
    """Names in the order of their TYPE lines."""
    return [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")]
