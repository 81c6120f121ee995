"""The screen of `nodescope top`, as a terminal shows it."""

from dataclasses import replace

import numpy as np
import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.use.answers.lives import make_named

from nodescope.commands.screen.top_page import add_past, choose_rows
from nodescope.commands.screen.top_screen import Seen, draw
from nodescope.commands.screen.top_state import TopState
from nodescope.commands.text.top_table import HARM, TopRow
from nodescope.use.answers.container_table import ContainerRow
from nodescope.use.answers.timeseries import AnswerSeries, Timeseries
from nodescope.use.studies.summary import NEAR_LIMIT_SHARE, STALLED_SHARE

NOW_MS = 1_770_000_000_000
WIDE = "\u5f00\u53d1-\u30d0\u30c3\u30af\u30a8\u30f3\u30c9"


def row(
    pod: str = "shop-1", restarts: int = 0, kills: int = 0, state: str = "running", **values: float
) -> TopRow:
    life = make_named(f"{abs(hash(pod)):064x}"[:64], "n1", "shop", pod, "app", NOW_MS - 60_000, NOW_MS)
    return TopRow(ContainerRow(life, state), dict(values), restarts, kills)


def see(*rows: TopRow, curves: tuple[Timeseries, ...] = (), state: TopState | None = None) -> Seen:
    asked = (state.opened, state.span) if state else ("", 0)
    return Seen(rows, ", 12:00:00", curves, asked, "", True)


def show(lines: list[str], columns: int) -> list[str]:
    """What is on the screen of a terminal of that size afterwards; a line that is too long would wrap."""
    screen = pyte.Screen(columns, len(lines))
    pyte.Stream(screen).feed("\x1b[H" + "\r\n".join(lines))
    return [line.rstrip() for line in screen.display]


def curve(metric: str, unit: str, values: list[float], limit: float | None = None) -> Timeseries:
    points = np.array(values, np.float64)
    times = NOW_MS - 1000 * np.arange(len(values) - 1, -1, -1)
    series = AnswerSeries("id", "app", "n1", {}, points, points, points, len(values), limit)
    return Timeseries(
        metric, unit, "gauge", "container", False, NOW_MS - 300_000, NOW_MS, 0, times, (series,)
    )


names = st.text(st.sampled_from("ab-\u5f00\u53d1\u30d0\u00e9e\u0301\U0001f600"), min_size=1, max_size=40)


@given(
    st.lists(st.builds(row, names, cpu=st.floats(0, 64)), max_size=9),
    st.integers(30, 160),
    st.integers(8, 30),
)
def test_every_line_fits_whatever_the_names(rows: list[TopRow], columns: int, lines: int) -> None:
    """forall rows, sizes: as many lines as the screen has, and nothing wraps on a real terminal"""
    drawn = draw(see(*rows), TopState("cpu"), columns, lines)
    assert len(drawn) == lines
    assert show(drawn, columns)[-1].endswith(drawn[-1].split()[-1])


def test_columns_stand_under_each_other_beside_wide_letters() -> None:
    screen = pyte.Screen(80, 10)
    drawn = draw(see(row(WIDE, cpu=1.0), row("plain", cpu=1.0)), TopState("cpu"), 80, 10)
    pyte.Stream(screen).feed("\r\n".join(drawn))
    # A cell behind a wide letter is empty: places are columns then.
    lines = ["".join(screen.buffer[line][column].data or "~" for column in range(80)) for line in range(10)]
    plain, wide = (next(line for line in lines if word in line) for word in ("plain", "\u5f00"))
    assert wide.index("1.00") == plain.index("1.00")


def test_the_chosen_row_is_marked_and_stays_on_the_screen() -> None:
    rows = [row(f"pod-{number:02}", cpu=40.0 - number) for number in range(30)]
    state = TopState("cpu", chosen=rows[25].key)
    shown = draw(see(*rows), state, 80, 12)
    assert [line for line in shown if line.startswith("> ")] == [line for line in shown if "pod-25" in line]


def test_a_narrow_screen_has_restarts_and_the_keys() -> None:
    text = "\n".join(
        show(draw(see(row(restarts=3, kills=1, cpu=0.5, memory=2.0**30)), TopState("cpu"), 60, 24), 60)
    )
    assert "3, 1 OOM" in text
    for words in ("q quit", "/ filter", "Enter curves", "c cpu", "m memory", "r restarts"):
        assert words in text


@pytest.mark.parametrize(
    ("sort", "first"), [("cpu", "busy"), ("memory", "large"), ("restarts", "crashing"), ("name", "busy")]
)
def test_it_is_sorted_as_was_asked(sort: str, first: str) -> None:
    rows = [row("large", memory=9.0), row("crashing", restarts=7), row("busy", cpu=9.0)]
    assert choose_rows(rows, TopState(sort))[0].life.pod == first


def test_a_filter_leaves_those_with_its_words_and_says_so() -> None:
    rows = [row("cache-1"), row("api-1")]
    state = TopState("cpu", wanted="cache")
    assert [one.life.pod for one in choose_rows(rows, state)] == ["cache-1"]
    assert 'filter "cache"' in draw(see(*rows), state, 80, 10)[0]
    none = draw(see(*rows), replace(state, wanted="nobody"), 80, 10)
    assert 'no container has "nobody" in its names' in none[1]


def test_harm_begins_where_the_studies_say_so() -> None:
    assert HARM["memory_limit_share"] == NEAR_LIMIT_SHARE
    assert {HARM[metric] for metric in HARM if metric != "memory_limit_share"} == {STALLED_SHARE}


def test_who_ended_a_moment_ago_is_listed_without_figures() -> None:
    running, crashed = row("running", cpu=1.0), row("crashed", restarts=45, state="exited")
    old = TopRow(
        ContainerRow(make_named("ab" * 32, "n1", "shop", "old", "app", 0, NOW_MS - 3_600_000), "exited"),
        {},
        0,
    )
    rows = add_past({running.key: running}, [replace(running, restarts=2), crashed, old], NOW_MS)
    assert [(one.life.pod, one.restarts) for one in rows] == [("running", 2), ("crashed", 45)]


def test_an_error_is_said_and_the_last_rows_stay() -> None:
    shown = draw(replace(see(row("kept")), problem="127.0.0.1:9100 does not answer"), TopState("cpu"), 80, 10)
    assert shown[0] == "127.0.0.1:9100 does not answer"
    assert any("kept" in line for line in shown)
    first = draw(Seen(problem="no agent " * 20), TopState("cpu"), 60, 10)
    assert all(len(line) <= 60 for line in first)


# -- curves -------------------------------------------------------------------------


def opened(*curves: Timeseries, columns: int = 80, lines: int = 24, one: TopRow | None = None) -> list[str]:
    shown = one or row("shop-1", restarts=2, kills=1)
    state = TopState("cpu", opened=shown.key, span=300)
    return show(draw(see(shown, curves=curves, state=state), state, columns, lines), columns)


def test_figures_say_what_they_are() -> None:
    text = "\n".join(opened(curve("memory", "bytes", [2.0**20] * 50 + [2.0**21, 2.0**20], limit=2.0**22)))
    assert "memory: newest 1 MiB, peak 2 MiB at 02:39:59, limit 4 MiB" in text
    assert "the last 5 min; shop, running, 2 restarts, 1 killed for memory" in text
    assert "q quit  Esc back" in text


def test_a_figure_that_does_not_fit_is_left_out_whole() -> None:
    text = "\n".join(opened(curve("memory", "bytes", [2.0**20, 2.0**21], limit=2.0**22), columns=40))
    assert "memory: newest 2 MiB" in text
    assert "..." not in text.replace("killed...", "").split("\n", 2)[2]


def test_what_was_zero_all_the_time_is_one_line() -> None:
    text = opened(curve("cpu", "cores", [1.0, 2.0]), curve("pressure_memory", "ratio", [0.0, 0.0]))
    assert "memory wait: 0 % of the time in all samples" in text
    assert not any("memory wait: newest" in line for line in text)


def test_a_point_of_a_long_range_says_so() -> None:
    long = replace(curve("cpu", "cores", [1.0, 2.0, 1.0]), width_ms=21_600)
    text = "\n".join(opened(long))
    assert "a point: mean of 21.6 s" in text
    assert "peak 2 cores about 02:39" in text


def test_nothing_measured_is_said() -> None:
    assert "Nothing was measured in the last 5 min." in opened()


@given(
    st.lists(st.floats(0, 1e12) | st.just(float("nan")), min_size=1, max_size=30),
    st.integers(30, 160),
    st.integers(6, 40),
)
def test_curves_fit_every_screen(values: list[float], columns: int, lines: int) -> None:
    """forall values, sizes: as many lines as the screen has, and the footer is still there"""
    panels = (curve("cpu", "cores", values), curve("memory", "bytes", values, 2.0**30))
    shown = opened(*panels, columns=columns, lines=lines)
    assert len(shown) == lines
    assert shown[-1].startswith("q quit") or shown[-2].startswith("q quit")


def test_a_range_without_seconds_is_asked_for_again_first() -> None:
    one = row("shop-1")
    state = TopState("cpu", opened=one.key, span=900)
    assert "reading ..." in draw(see(one, state=replace(state, span=300)), state, 80, 24)
