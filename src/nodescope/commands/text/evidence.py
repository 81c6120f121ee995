"""Figures of a finding for people: with the unit of the series, as durations, slopes and moments; --json has them as they are."""

from nodescope.base.quantity import render_number, render_quantity, render_seconds, render_slope
from nodescope.base.time_range import render_time
from nodescope.use.studies.finding import Finding, Measure

# What has the unit of the series, whole or as the beginning of a name.
AMOUNTS = ("limit", "noise", "fitted", "average", "min", "max", "p95", "stddev")
SLOPES = ("slope_low", "slope_high")
SECONDS, PER_SECOND = "_seconds", "_per_second"
# Names that say little beside others: the ends of the interval of a time to the limit.
SPOKEN = {"low": "earliest", "high": "latest"}
# Below this a probability is as good as none.
NO_CHANCE = 1e-4


def render_figures(finding: Finding) -> str:
    """`limit 512 MiB, time to limit 40 min`: those that are known."""
    figures = (*finding.measures.items(), *finding.evidence.items())
    return ", ".join(
        f"{name_figure(name)} {render_figure(name, value, finding.unit)}"
        for name, value in figures
        if value is not None
    )


def name_figure(name: str) -> str:
    plain = SPOKEN.get(name, name).removesuffix(SECONDS).removesuffix(PER_SECOND)
    return plain.replace("_", " ")


def render_figure(name: str, value: Measure, unit: str) -> str:
    if isinstance(value, str) or value is None:
        return str(value)
    number = float(value)
    if name.endswith(PER_SECOND) or name in SLOPES:
        return render_slope(number, unit)
    if name.endswith(SECONDS) or name in SPOKEN:
        return render_seconds(number)
    if name.endswith("_at"):
        return render_time(number)
    if name.startswith(AMOUNTS):
        return render_quantity(number, unit)
    return f"below {NO_CHANCE:g}" if 0 < number < NO_CHANCE else render_number(number)
