"""From a metric's name, plain or raw, to the raw metrics it is made of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nodescope.base.entity import SCOPES
from nodescope.base.errors import RequestRejected
from nodescope.base.metric import Metric
from nodescope.base.metric_names import PLAIN, SCOPED, Form, Join, Plain, find_plain
from nodescope.base.text import hint_nearest
from nodescope.base.unit_guess import NOT_KNOWN

Rate = Literal["auto", "on", "off"]
Inputs = tuple[Metric, ...]
# Both are cgroups: they have the same files and the same names.
CGROUPS = ("container", "service")


@dataclass(frozen=True, slots=True)
class ResolvedMetric:
    """A metric's name, resolved against what the archive has."""

    name: str
    unit: str
    form: Form
    variants: tuple[Inputs, ...]
    """cgroup v2's inputs, then v1's: an archive of two nodes may have both."""
    factor: float = 1.0
    scope: str = ""
    """What its series are of; empty for whatever has rows."""
    of: str = ""
    """The scope of its inputs, where they are joined to something larger."""
    join: Join = "sum"

    @property
    def metrics(self) -> Inputs:
        return self.variants[0]

    @property
    def is_share_of_time(self) -> bool:
        """The rate of a counter of time: pressure. It has a whole."""
        return self.form == "rate" and self.unit == "ratio"


def resolve_metric(
    name: str, known: Mapping[str, Metric], rate: Rate, scope: str | None = None
) -> ResolvedMetric:
    """A plain or raw name; a miss is answered with the nearest."""
    scope = check_scope(scope)
    if name in known:
        metric = known[name]
        is_rate = rate == "on" or (rate == "auto" and metric.kind == "counter")
        unit = metric.unit or "count"
        form: Form = "rate" if is_rate else "value"
        return ResolvedMetric(name, f"{unit}/s" if is_rate else unit, form, ((metric,),), scope=scope)
    plain = choose_plain(name, scope)
    if plain:
        return resolve_plain(plain, known, scope)
    tagged = [metric for metric in known.values() if metric.plain == name]
    if tagged:
        return ResolvedMetric(name, tagged[0].unit, "value", ((tagged[0],),), scope=scope)
    names = [*list_names(scope), *known]
    of_whom = f" of a {scope}" if scope else ""
    raise RequestRejected(
        f'no metric "{name}"{of_whom}{hint_nearest(find_plain(name), names)} (nodescope metrics lists all {len(names)})'
    )


def check_scope(scope: str | None) -> str:
    if scope and scope not in SCOPES:
        raise RequestRejected(
            f'no scope "{scope}"{hint_nearest(scope, SCOPES)}; accepted: {", ".join(SCOPES)}'
        )
    return scope or ""


def choose_plain(name: str, scope: str) -> Plain | None:
    row = PLAIN.get(name)
    if scope in ("", *CGROUPS) and row is not None and (not scope or not row.scope):
        return row
    return SCOPED.get((scope, name))


def list_names(scope: str) -> list[str]:
    return [name for name in {*PLAIN, *(one for _, one in SCOPED)} if choose_plain(name, scope)]


def resolve_plain(plain: Plain, known: Mapping[str, Metric], scope: str = "") -> ResolvedMetric:
    variants = list_variants(plain.inputs, known)
    if not variants:
        lacking = next(one for one in plain.inputs if not any(name in known for name in one))
        raise RequestRejected(f'"{plain.name}" was not collected here: it needs {" or ".join(lacking)}')
    variants = refuse_unknown(plain, variants)
    return ResolvedMetric(
        plain.name, plain.unit, plain.form, variants, plain.factor, plain.scope or scope, plain.of, plain.join
    )


def resolve_all(known: Mapping[str, Metric]) -> Iterator[tuple[Plain, ResolvedMetric]]:
    """The plain names that can be made of these metrics."""
    for plain in PLAIN.values():
        try:
            yield plain, resolve_plain(plain, known)
        except RequestRejected:
            continue


def refuse_unknown(plain: Plain, variants: tuple[Inputs, ...]) -> tuple[Inputs, ...]:
    """Values whose unit was in a lost sidecar cannot be converted to another."""
    known = tuple(one for one in variants if all(metric.unit != NOT_KNOWN for metric in one))
    if known:
        return known
    lost = next(metric.name for metric in variants[0] if metric.unit == NOT_KNOWN)
    raise RequestRejected(
        f'"{plain.name}" cannot be told in {plain.unit}: the sidecar that says which unit {lost} is in was lost; '
        f"ask for {lost} to see its numbers as they are"
    )


def list_variants(inputs: Sequence[Sequence[str]], known: Mapping[str, Metric]) -> tuple[Inputs, ...]:
    """All inputs of cgroup v2, all of v1; else what there is of either."""
    found: list[Inputs] = []
    for version in range(max(map(len, inputs))):
        names = [one[min(version, len(one) - 1)] for one in inputs]
        chosen = tuple(known[name] for name in names if name in known)
        if len(chosen) == len(inputs) and chosen not in found:
            found.append(chosen)
    if found:
        return tuple(found)
    firsts = [next((known[name] for name in one if name in known), None) for one in inputs]
    complete = tuple(metric for metric in firsts if metric is not None)
    return (complete,) if len(complete) == len(inputs) else ()
