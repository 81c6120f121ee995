"""
`nodescope top` on a terminal: a thread looks, the screen answers to keys at once.

What is looked at (the list, or the curves of one container) is asked for by the screen; the thread looks
again every interval, and whenever something else was asked for.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nodescope.base.errors import NodescopeError
from nodescope.base.text import clean_text
from nodescope.commands.screen.curve_page import CURVES, draw_page, render_head
from nodescope.commands.screen.terminal_screen import TerminalScreen
from nodescope.commands.screen.top_page import add_past, choose_rows, draw_list, render_footer
from nodescope.commands.screen.top_place import TopLook
from nodescope.commands.screen.top_state import TopState, press
from nodescope.commands.text.terminal import wrap_words
from nodescope.commands.text.top_table import FIGURES, TopRow

if TYPE_CHECKING:
    from nodescope.use.answers.container_table import ContainerRow
    from nodescope.use.answers.timeseries import Timeseries

# Of a curve: every sample of a quarter of an hour.
POINTS = 1000

Asked = tuple[str, int]
"""A row's key and the seconds of its curves; an empty key: only the list."""
NOTHING: Asked = ("", 0)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the last look gave."""

    rows: tuple[TopRow, ...] = ()
    age: str = ""
    curves: "tuple[Timeseries, ...]" = ()
    asked: Asked = NOTHING
    """Whose curves these are."""
    problem: str = ""
    is_new: bool = False
    """Something was seen."""


@dataclass(slots=True)
class Looker:
    """Looks every interval, and at once where something else is asked for; what it saw last is in `seen`."""

    look: Callable[[], TopLook]
    render_age: Callable[[TopLook], str]
    interval_seconds: float
    tell: Callable[[], None]
    seen: Seen = field(default_factory=Seen)
    asked: Asked = NOTHING
    _changed: threading.Event = field(default_factory=threading.Event)

    def ask(self, asked: Asked) -> None:
        if asked != self.asked:
            self.asked = asked
            self._changed.set()

    def run(self) -> None:
        """In a thread that ends with the program."""
        while True:
            self._changed.clear()
            try:
                self.seen = self.look_once(self.asked)
            except NodescopeError as error:
                self.seen = replace(self.seen, problem=str(error))
            self.tell()
            self._changed.wait(self.interval_seconds)

    def look_once(self, asked: Asked) -> Seen:
        look = self.look()
        rows = tuple(gather_rows(look))
        key, seconds = asked
        row = next((row for row in rows if row.key == key), None)
        curves = tuple(read_curves(look, row, seconds)) if row else ()
        return Seen(rows, self.render_age(look), curves, asked, "", True)


def gather_rows(look: TopLook) -> list[TopRow]:
    """One row a container with its newest values, and its restarts over all that was recorded."""
    found: dict[str, TopRow] = {}
    for _, metric, _ in FIGURES:
        table = look.read(metric)
        for one in table.rows if table else ():
            row = TopRow(one, {})
            held = found.get(row.key)
            if held is None or held.life.first_ms < one.life.first_ms:
                found[row.key] = held = row
            if held.life.id == one.life.id:
                held.values[metric] = one.figure.last if one.figure else None
    containers = [make_past(one) for one in look.read_containers()]
    newest_ms = look.newest_ms or max((one.life.last_ms for one in containers), default=0)
    return add_past(found, containers, newest_ms)


def make_past(one: "ContainerRow") -> TopRow:
    """As Kubernetes counts restarts, and at least as many as were seen."""
    return TopRow(one, {}, max(one.restarts or 0, one.life.restarts), one.kills)


def read_curves(look: TopLook, row: TopRow, seconds: int) -> "list[Timeseries]":
    answers = (look.read_curve(metric, row.life.id, seconds, POINTS) for metric in CURVES)
    return [answer for answer in answers if answer is not None]


def draw(seen: Seen, state: TopState, columns: int, lines: int) -> list[str]:
    """The whole screen; the footer is at its end."""
    footer = render_footer(state, columns, lines)
    room = max(0, lines - len(footer))
    chosen = choose_rows(seen.rows, state)
    if not seen.is_new:
        body = wrap_words(clean_text(seen.problem, 500) or "looking ...", columns)
    elif state.opened:
        body = draw_opened(seen, state, columns, room)
    else:
        body = draw_list(chosen, state, seen.age, seen.problem, columns, room)
    shown = body[:room]
    return [*shown, *[""] * (room - len(shown)), *footer]


def draw_opened(seen: Seen, state: TopState, columns: int, room: int) -> list[str]:
    row = next((row for row in seen.rows if row.key == state.opened), None)
    if seen.asked != (state.opened, state.span) and row is not None:
        return [*render_head(row, state.span, columns), "", "reading ..."]
    return draw_page(row, seen.curves, state.span, columns, room)


def run_screen(
    look: Callable[[], TopLook], render_age: Callable[[TopLook], str], sort: str, interval_seconds: float
) -> int:
    """Until q or Ctrl-C."""
    state = TopState(sort)
    with TerminalScreen() as screen:
        looker = Looker(look, render_age, interval_seconds, screen.wake)
        threading.Thread(target=looker.run, daemon=True).start()
        while not state.is_ended:
            columns, lines = screen.size
            screen.draw(draw(looker.seen, state, columns, lines))
            state = press_all(state, list(screen.wait_keys()), looker.seen.rows)
            looker.ask((state.opened, state.span if state.opened else 0))
    return 0


def press_all(state: TopState, pressed: Sequence[str], rows: Sequence[TopRow]) -> TopState:
    for key in pressed:
        state = press(state, key, [row.key for row in choose_rows(rows, state)])
        if state.is_ended:
            break
    return state
