"""From the name that was asked for to the metrics it is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from nodescope.base.errors import RequestRejected
from nodescope.base.metric import Metric
from nodescope.base.plain import PLAIN, Form, Plain
from nodescope.base.text import hint_nearest

Rate = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A metric's name, resolved against what the archive has."""

    name: str
    unit: str
    form: Form
    metrics: tuple[Metric, ...]
    factor: float = 1.0
    by_pod: bool = False


def resolve_metric(name: str, known: Mapping[str, Metric], rate: Rate) -> Asked:
    """A plain or raw name; a miss is answered with the nearest."""
    if name in known:
        metric = known[name]
        is_rate = rate == "on" or (rate == "auto" and metric.kind == "counter")
        unit = metric.unit or "count"
        return Asked(name, f"{unit}/s" if is_rate else unit, "rate" if is_rate else "value", (metric,))
    plain = PLAIN.get(name)
    if plain:
        return resolve_plain(plain, known)
    tagged = [metric for metric in known.values() if metric.plain == name]
    if tagged:
        return Asked(name, tagged[0].unit, "value", (tagged[0],))
    names = [*PLAIN, *known]
    raise RequestRejected(
        f'no metric "{name}"{hint_nearest(name, names)} (nodescope metrics lists all {len(names)})'
    )


def resolve_plain(plain: Plain, known: Mapping[str, Metric]) -> Asked:
    chosen = []
    for alternatives in plain.inputs:
        found = next((name for name in alternatives if name in known), None)
        if found is None:
            raise RequestRejected(
                f'"{plain.name}" was not collected here: it needs {" or ".join(alternatives)}'
            )
        chosen.append(known[found])
    return Asked(plain.name, plain.unit, plain.form, tuple(chosen), plain.factor, plain.by_pod)
