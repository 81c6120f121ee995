"""The table of `nodescope top`: as wide as the terminal, never wider."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nodescope.base.quantity import render_bytes
from nodescope.base.text import clean_text
from nodescope.commands.text.terminal import cut_columns, paint, width_of

if TYPE_CHECKING:
    from nodescope.use.answers.container_table import ContainerRow
    from nodescope.use.answers.containers import Life

# What the table shows: column, metric, how a number is written.
FIGURES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("cpu", "cpu", lambda value: f"{value:.2f}"),
    ("memory", "memory", render_bytes),
    ("cache", "memory_file", render_bytes),
    ("of limit", "memory_limit_share", lambda value: f"{value:.0%}"),
    ("throttled", "cpu_throttled", lambda value: f"{value:.0%}"),
    ("mem wait", "pressure_memory", lambda value: f"{value:.1%}"),
    ("cpu wait", "pressure_cpu", lambda value: f"{value:.1%}"),
)
# From where on a share harms: as the studies' summary has it, of limits and of stalls.
HARM = {"memory_limit_share": 0.9, "cpu_throttled": 0.1, "pressure_memory": 0.1, "pressure_cpu": 0.1}
# What goes first where the terminal is narrow; the name and the column that it
# is sorted by stay.
LEAVING = (
    "cpu wait",
    "mem wait",
    "cache",
    "namespace",
    "throttled",
    "restarts",
    "of limit",
    "node",
    "state",
    "memory",
    "cpu",
)
NAME_LEAST = 20
BETWEEN = "  "


@dataclass(frozen=True, slots=True)
class TopRow:
    """A container and its newest value of each metric; None: not measured."""

    container: "ContainerRow"
    values: dict[str, float | None]
    restarts: int | None = None
    """Over all that was recorded; None: not looked at."""
    kills: int = 0
    """Of its runs so many were killed for memory."""

    @property
    def life(self) -> "Life":
        return self.container.life

    @property
    def state(self) -> str:
        return self.container.state

    @property
    def key(self) -> str:
        """The same for all runs of a container."""
        life = self.life
        return "/".join(
            (life.node, life.namespace, life.pod, life.container_name) if life.pod else (life.node, life.id)
        )

    def sort_key(self, sort: str) -> tuple[float, str]:
        """The highest first, names from a to z."""
        value = self.restarts if sort == "restarts" else None if sort == "name" else self.values.get(sort)
        return -(value or 0.0), self.life.name


Rows = Sequence[TopRow]


@dataclass(frozen=True, slots=True)
class TopColumn:
    """A title and its cells; figures stand at the right."""

    title: str
    cells: tuple[str, ...]
    is_figure: bool = False

    @property
    def width(self) -> int:
        return max(map(width_of, (self.title, *self.cells)))

    def lines(self) -> list[str]:
        cells = [paint(self.title, "bold"), *self.cells]
        spaces = [" " * (self.width - width_of(cell)) for cell in cells]
        return [space + cell if self.is_figure else cell + space for cell, space in zip(cells, spaces)]


def render_rows(rows: Rows, sort: str, columns: int | None) -> str:
    """Lines of at most so many columns; None: as wide as it gets."""
    table = make_columns(rows)
    if columns is not None:
        table = fit(table, sort, columns)
    return "".join(
        BETWEEN.join(cells).rstrip() + "\n" for cells in zip(*(column.lines() for column in table))
    )


def make_columns(rows: Rows) -> list[TopColumn]:
    """A column that would say the same of everybody is left out: one node, everybody runs."""
    table = [
        TopColumn("container", tuple(cut(clean_text(row.life.name), 48) for row in rows)),
        TopColumn("namespace", tuple(cut(row.life.namespace or "-", 30) for row in rows)),
    ]
    if len({row.life.node for row in rows}) > 1:
        table.append(TopColumn("node", tuple(cut(row.life.node, 30) for row in rows)))
    for title, metric, write in FIGURES:
        values = [row.values.get(metric) for row in rows]
        table.append(TopColumn(title, tuple(render_value(metric, one, write) for one in values), True))
    if any(row.restarts is not None for row in rows):
        table.append(TopColumn("restarts", tuple(map(render_restarts, rows)), True))
    if any(row.state != "running" for row in rows):
        table.append(TopColumn("state", tuple(map(render_state, rows))))
    return table


def render_value(metric: str, value: float | None, write: Callable[[float], str]) -> str:
    if value is None:
        return "-"
    return paint(write(value), "red") if is_harm(metric, value) else write(value)


def is_harm(metric: str, value: float) -> bool:
    return metric in HARM and value >= HARM[metric]


def render_restarts(row: TopRow) -> str:
    """`3, 1 OOM`: a kill for memory is harm, also where it runs again."""
    if row.kills:
        return paint(f"{row.restarts or 0}, {row.kills} OOM", "red")
    return "-" if row.restarts is None else str(row.restarts)


def render_state(row: TopRow) -> str:
    state = row.state.replace("_", " ")
    return paint(state, "red") if row.state == "oom_killed" else state


def fit(table: Sequence[TopColumn], sort: str, columns: int) -> list[TopColumn]:
    """Names are shortened first, then columns leave, then names are shortened to what is left."""
    kept = list(table)
    stays = next((title for title, metric, _ in FIGURES if metric == sort), sort)
    for title in LEAVING:
        if beside_name(kept) + min(kept[0].width, NAME_LEAST) <= columns:
            break
        kept = [column for column in kept if column.title != title or title == stays]
    room = max(1, columns - beside_name(kept))
    name = kept[0]
    kept[0] = replace(name, title=name.title[:room], cells=tuple(cut(cell, room) for cell in name.cells))
    return kept


def beside_name(table: Sequence[TopColumn]) -> int:
    return sum(column.width + len(BETWEEN) for column in table[1:])


def cut(text: str, most: int) -> str:
    """Of somebody's archive: what would move the cursor is not printed."""
    return cut_columns(clean_text(text), most)
