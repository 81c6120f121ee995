"""`nodescope top` on screens of every width."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.use.answers.lives import make_named

from nodescope.commands.text.top_table import FIGURES, TopRow, render_rows
from nodescope.use.answers.container_table import ContainerRow

METRICS = [metric for _, metric, _ in FIGURES]


def row(name: str = "pod/app", node: str = "n1", state: str = "running", **values: float | None) -> TopRow:
    life = replace(make_named("ab" * 32, node, "shop", "pod", "app"), name=name)
    return TopRow(ContainerRow(life, state), values)


names = st.text(min_size=1, max_size=80)
rows = st.lists(
    st.builds(
        row,
        names,
        st.sampled_from(["n1", "n2"]),
        st.sampled_from(["running", "exited", "oom_killed"]),
        cpu=st.floats(0, 64),
        memory=st.floats(0, 1e12),
        pressure_cpu=st.floats(0, 1),
    ),
    min_size=1,
    max_size=5,
)


@given(rows, st.sampled_from(METRICS), st.integers(30, 200))
def test_no_line_is_wider_than_the_screen(many: list[TopRow], sort: str, columns: int) -> None:
    """forall rows, sort, columns >= 30: one line a row and one for the head, none wider than the screen"""
    lines = render_rows(many, sort, columns).split("\n")[:-1]
    assert len(lines) == len(many) + 1
    assert max(map(len, lines)) <= columns


def test_the_column_it_is_sorted_by_stays_longest() -> None:
    text = render_rows([row("a" * 40, cpu=1.0, memory=2.0**30, pressure_cpu=0.5)], "pressure_cpu", 30)
    assert text.splitlines()[0].split() == ["container", "cpu", "wait"]


def test_figures_stand_under_each_other() -> None:
    lines = render_rows([row(cpu=1.0), row("a", cpu=12.25)], "cpu", None).splitlines()
    assert {line.index(end) + len(end) for line, end in zip(lines, ("cpu", "1.00", "12.25"))} == {
        lines[0].index("cpu") + 3
    }


def test_what_is_the_same_for_everybody_is_not_a_column() -> None:
    assert "state" not in render_rows([row()], "cpu", None)
    assert "node" not in render_rows([row()], "cpu", None)
    mixed = render_rows([row(), row(node="n2", state="oom_killed")], "cpu", None)
    assert "node" in mixed
    assert "oom killed" in mixed
