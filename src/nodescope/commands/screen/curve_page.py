"""One container's curves over the last minutes, each with figures that say what they are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodescope.base.quantity import render_quantity, render_seconds
from nodescope.base.text import clean_text
from nodescope.base.time_range import render_moment
from nodescope.commands.screen.curve import CurvePoints, draw_curve, make_curve
from nodescope.commands.text.terminal import cut_columns, paint, width_of
from nodescope.commands.text.top_table import TopRow, is_harm

if TYPE_CHECKING:
    from nodescope.use.answers.timeseries import Timeseries

# In this order, as many as there is room for: by metric its heading, and what a share is of.
CURVES = {
    "cpu": ("cpu", ""),
    "memory": ("memory", ""),
    "cpu_throttled": ("throttled", " of its periods"),
    "pressure_memory": ("memory wait", " of the time"),
    "pressure_cpu": ("cpu wait", " of the time"),
}
# Of a plot; below it another curve is left out.
ROWS_LEAST, ROWS_MOST = 3, 12
# The name and its words above, the axis below.
AROUND = 3
# Of a point; beyond it a peak is told to the minute.
EXACT_MS = 10_000
# A letter without dots, and spaces.
BLANK = "\u2800 "
# A limit is on the picture where the curve comes at least so near to it.
NEAR_LIMIT = 0.4


def draw_page(
    row: TopRow | None, curves: "Sequence[Timeseries]", span: int, columns: int, room: int
) -> list[str]:
    """All but the footer; `row` is None where the container is not listed any more."""
    head = render_head(row, span, columns)
    told = [panel for one in curves if one.series and (panel := Panel(one, read_points(one))).curve.times]
    if not told:
        return [*head, "", cut_columns(f"Nothing was measured in the last {render_seconds(span)}.", columns)]
    # What was zero all the time needs no picture.
    flat = [cut_columns(panel.render_zero(), columns) for panel in told if not panel.peak]
    left = room - AROUND - len(flat)
    shown = [panel for panel in told if panel.peak][: max(1, left // (ROWS_LEAST + 1))]
    if not shown:
        return [*head, *flat]
    height = max(1, min(ROWS_MOST, left // len(shown) - 1))
    margin = max(width_of(panel.top_label) for panel in shown)
    # From the first sample: what began a minute ago has the whole width.
    between = (min(panel.curve.times[0] for panel in shown), float(shown[0].answer.to_ms))
    body = [line for panel in shown for line in panel.draw(between, margin, columns, height)]
    axis = render_axis(between, shown[0].answer.width_ms, margin, columns)
    return [*head, *body, axis, *flat]


def read_points(one: "Timeseries") -> CurvePoints:
    series = one.series[0]
    return make_curve(*(list(map(float, values)) for values in (one.time_ms, series.low, series.high)))


@dataclass(frozen=True, slots=True)
class Panel:
    """One metric: its figures in a line, its curve below."""

    answer: "Timeseries"
    curve: CurvePoints

    @property
    def title(self) -> str:
        return CURVES[self.answer.metric][0]

    @property
    def limit(self) -> float | None:
        return self.answer.series[0].limit

    @property
    def peak(self) -> float:
        return max(self.curve.high)

    @property
    def top(self) -> float:
        """The upper edge: the largest sample, or the limit where the curve comes near to it."""
        near = self.limit is not None and self.peak >= NEAR_LIMIT * self.limit
        return max(self.peak, self.limit or 0.0) if near else self.peak

    @property
    def top_label(self) -> str:
        return self.write(self.top)

    def write(self, value: float) -> str:
        return render_quantity(value, self.answer.unit)

    def draw(self, between: tuple[float, float], margin: int, columns: int, height: int) -> list[str]:
        lines = draw_curve(self.curve, between, max(10, columns - margin - 2), height, self.top)
        labels = [self.top_label, *[""] * (height - 2), "0"][:height]
        plot = [f"{label:>{margin}} |{line}".rstrip(BLANK) for label, line in zip(labels, lines)]
        return [self.render_figures(columns), *plot]

    def render_figures(self, columns: int) -> str:
        """`cpu: newest 0.43 cores, peak 1.2 cores at 22:23:10, limit 2 cores`; the end is left out first."""
        newest = f"newest {self.write(self.newest)}{CURVES[self.answer.metric][1]}"
        parts = [newest, f"peak {self.write(self.peak)} {self.peak_words()}"]
        parts += [f"limit {self.write(self.limit)}"] if self.limit is not None else []
        while len(parts) > 1 and width_of(f"{self.title}: {', '.join(parts)}") > columns:
            parts.pop()
        line = cut_columns(f"{self.title}: {', '.join(parts)}", columns)
        return paint(line, "red") if self.is_harm() else line

    @property
    def newest(self) -> float:
        means = [float(value) for value in self.answer.series[0].mean if math.isfinite(value)]
        return means[-1]

    def peak_words(self) -> str:
        """A point of a long range begins before its largest sample."""
        clock = render_moment(self.curve.times[self.curve.high.index(self.peak)]).split()[1]
        if self.answer.width_ms <= 1000:
            return f"at {clock}"
        return f"about {clock[:5] if self.answer.width_ms > EXACT_MS else clock}"

    def render_zero(self) -> str:
        return f"{self.title}: {self.write(0.0)}{CURVES[self.answer.metric][1]} in all samples"

    def is_harm(self) -> bool:
        if self.answer.metric == "memory":
            return bool(self.limit) and is_harm("memory_limit_share", self.newest / (self.limit or 1.0))
        return is_harm(self.answer.metric, self.newest)


def render_head(row: TopRow | None, span: int, columns: int) -> list[str]:
    if row is None:
        return ["This container is not listed any more."]
    name = clean_text(row.life.name)
    words = [clean_text(row.life.namespace), row.state.replace("_", " "), render_restarts(row)]
    first = paint(cut_columns(name, columns), "bold")
    told = f"the last {render_seconds(span)}; {', '.join(word for word in words if word)}"
    return [first, cut_columns(told, columns)]


def render_restarts(row: TopRow) -> str:
    if not row.restarts:
        return "no restart"
    killed = f", {row.kills} killed for memory" if row.kills else ""
    return f"{row.restarts} {'restart' if row.restarts == 1 else 'restarts'}{killed}"


def render_axis(between: tuple[float, float], width_ms: int, margin: int, columns: int) -> str:
    """From when to when, under the plots; of a long range also what a point stands for."""
    first, last = (render_moment(moment).split()[1] for moment in between)
    room = max(1, columns - margin - 2 - len(first) - len(last) - len(" UTC"))
    said = f"a point: mean of {render_seconds(width_ms / 1000)}" if width_ms > 1000 else ""
    middle = said.center(room) if len(said) + 2 <= room else " " * room
    return cut_columns(f"{'':>{margin}}  {first}{middle}{last} UTC", columns)
