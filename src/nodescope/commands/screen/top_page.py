"""The list of `nodescope top` on a screen: title, table, and what the keys do."""

from collections.abc import Sequence
from dataclasses import replace

from nodescope.base.quantity import render_count
from nodescope.base.text import clean_text
from nodescope.commands.screen.top_state import SORT_KEYS, TopState
from nodescope.commands.text.terminal import cut_columns, paint, width_of
from nodescope.commands.text.top_table import TopRow, render_rows

# Before every row; the chosen one is marked without colour as well.
MARK, NO_MARK = "> ", "  "
# Title, and head of the table.
ABOVE = 2
# A footer may have a second line from this height on.
TALL_LINES = 12
LIST_KEYS = ("q quit", "/ filter", "Enter curves")
CURVE_KEYS = ("q quit", "Esc back", "+ - span", "up down next")
# Of one who stopped long ago nobody asks here.
RECENT_MS = 900_000


def choose_rows(rows: Sequence[TopRow], state: TopState) -> list[TopRow]:
    """Those whose names have the words of the filter, in the order that was chosen."""
    from nodescope.use.answers.container_table import matches

    found = [row for row in rows if not state.wanted or matches(row.life, state.wanted)]
    return sorted(found, key=lambda row: row.sort_key(state.sort))


def draw_list(
    rows: Sequence[TopRow], state: TopState, age: str, problem: str, columns: int, room: int
) -> list[str]:
    """All but the footer; `rows` as they were chosen."""
    title = cut_columns(render_title(rows, state, age), columns)
    if problem:
        title = paint(cut_columns(clean_text(problem, 500), columns), "red")
    if not rows:
        said = f'no container has "{state.wanted}" in its names' if state.wanted else "no container is here"
        return [title, cut_columns(said, columns)]
    most, place = max(1, room - ABOVE), state.place([row.key for row in rows])
    first = max(0, min(place - most // 2, len(rows) - most))
    head, *body = render_rows(rows[first : first + most], state.sort, columns - len(MARK)).splitlines()
    marked = [(MARK if first + at == place else NO_MARK) + line for at, line in enumerate(body)]
    return [title, NO_MARK + head, *marked]


def render_title(rows: Sequence[TopRow], state: TopState, age: str) -> str:
    nodes = sorted({clean_text(row.life.node) for row in rows})
    where = f"{nodes[0]}: " if len(nodes) == 1 else f"{len(nodes)} nodes: " if nodes else ""
    filtered = f', filter "{state.wanted}"' if state.wanted else ""
    word = next((word for metric, word in SORT_KEYS.values() if metric == state.sort), state.sort)
    return f"{where}{render_count(len(rows), 'container')} by {word}{filtered}{age}"


def render_footer(state: TopState, columns: int, lines: int) -> list[str]:
    """The keys, as many as there is room for in a line, or in two."""
    if state.is_typing:
        return [cut_columns(f"/{state.wanted}_   Enter keeps it, Esc clears it", columns)]
    sorts = (f"{key} {word}" for key, (_, word) in SORT_KEYS.items())
    footer = [""]
    for words in CURVE_KEYS if state.opened else (*LIST_KEYS, *sorts):
        if footer[-1] and width_of(f"{footer[-1]}  {words}") > columns:
            footer.append("")
        footer[-1] += f"  {words}" if footer[-1] else words
    most = 2 if lines >= TALL_LINES else 1
    return [paint(cut_columns(line, columns), "dim") for line in footer[:most]]


def add_past(rows: dict[str, TopRow], containers: Sequence[TopRow], newest_ms: int) -> list[TopRow]:
    """Restarts and kills of the rows; and who ended in the last minutes, without figures."""
    found = dict(rows)
    for one in containers:
        if one.key in found:
            found[one.key] = replace(found[one.key], restarts=one.restarts, kills=one.kills)
        elif one.life.last_ms >= newest_ms - RECENT_MS:
            found[one.key] = one
    return list(found.values())
