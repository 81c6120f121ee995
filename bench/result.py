"""What a bench returns, and how all of it becomes one table."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

SCALES = {
    "s": ("ms", 1e3),
    "bytes": ("KiB", 1 / 1024),
    "resident": ("MiB", 1 / 2**20),
    "core": ("% of a core", 100.0),
}


@dataclass(frozen=True)
class Options:
    """What the command line may change."""

    containers: tuple[int, ...] = (100, 200)
    seconds: float = 180.0
    """How long the agent and each peer run in the bench `agent`."""
    rounds: int = 60
    """How often ours and the anchor take turns in the short benches."""
    against: str = "HEAD"
    """The commit whose agent runs beside this tree's in the bench `beside`; `pod` measures one only where it is named."""


@dataclass(frozen=True)
class Goal:
    limit: float
    of: Literal["ours", "ratio"]

    def render(self, unit: str) -> str:
        limit = render_ratio(self.limit) if self.of == "ratio" else render_figure(self.limit, unit)
        return f"<= {limit}" if self.limit >= 1 or self.of == "ours" else f"at least {limit}"


@dataclass(frozen=True)
class Row:
    what: str
    ours: float
    unit: str
    anchor: float | None = None
    against: str = ""
    goal: Goal | None = None
    remark: str = ""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.anchor if self.anchor else None

    @property
    def met(self) -> bool | None:
        value = self.ours if self.goal and self.goal.of == "ours" else self.ratio
        return None if self.goal is None or value is None else value <= self.goal.limit

    def plain(self) -> dict[str, object]:
        """For --json: base units, nothing rounded."""
        return asdict(self) | {"ratio": self.ratio, "met": self.met}


Bench = Callable[[Options], list[Row]]


def render_figure(value: float, unit: str) -> str:
    name, scale = SCALES.get(unit, (unit, 1.0))
    return f"{value * scale:.4g} {name}"


def render_ratio(ratio: float) -> str:
    if ratio == 0:
        return "nothing"
    return f"{ratio:.2f} x" if ratio >= 1 else f"{1 / ratio:.1f} x less"


def render_table(rows: Sequence[Row]) -> str:
    head = ("what", "ours", "anchor", "ratio", "goal", "met", "remark")
    cells = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def render_markdown(rows: Sequence[Row]) -> str:
    """As the README has it."""
    lines: list[tuple[str, ...]] = [("what", "nodescope", "anchor", "ratio"), ("---",) * 4]
    for row in rows:
        what, ours, _, ratio = _cells(row)[:4]
        anchor = "" if row.anchor is None else f"{render_figure(row.anchor, row.unit)}, {row.against}"
        lines.append((what, f"{ours}, {row.remark}" if row.remark else ours, anchor, ratio))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    anchor = "" if row.anchor is None else f"{render_figure(row.anchor, row.unit)} {row.against}"
    return (
        row.what,
        render_figure(row.ours, row.unit),
        anchor,
        "" if row.ratio is None else render_ratio(row.ratio),
        "" if row.goal is None else row.goal.render(row.unit),
        {True: "yes", False: "NO", None: ""}[row.met],
        row.remark,
    )


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


median = statistics.median
