"""A study's answer on a terminal: lines that end between words, figures with their units."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.commands.text.evidence import render_figures
from nodescope.commands.text.study_answer import render_study
from nodescope.commands.text.terminal import cut_columns, width_of, wrap_words
from nodescope.use.studies import run_study
from nodescope.use.studies.finding import Finding
from nodescope.use.studies.series import Series


def find(unit: str, **measures: float | str | None) -> Finding:
    return Finding("trend", 0.0, 1.0, 0.9, 1.0, unit, "It rises.", measures=measures)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("limit", 5.37e8, "limit 512 MiB"),
        ("noise_before", 2_107_482.0, "noise before 2.01 MiB"),
        ("slope_per_second", 24_411.0, "slope 83.8 MiB/h"),
        ("slope_low", 24_409.0, "slope low 83.8 MiB/h"),
        ("time_to_limit_seconds", 5400.0, "time to limit 90 min"),
        ("low", 0.0, "earliest 0 s"),
        ("told_at", 1_770_000_000.0, "told at 2026-02-02 02:40:00 UTC"),
        ("false_alarm", 1.89e-190, "false alarm below 0.0001"),
        ("verdict", "leak", "verdict leak"),
        ("samples", 15_120, "samples 15 120"),
    ],
)
def test_a_figure_has_the_unit_that_a_person_uses(name: str, value: float | str, said: str) -> None:
    assert render_figures(find("bytes", **{name: value})) == said


def test_what_is_not_known_is_not_said() -> None:
    assert render_figures(find("bytes", limit=None, verdict="leak")) == "verdict leak"


def study_leak(columns: int, *, is_wrapped: bool) -> list[str]:
    times_at = np.arange(1200.0)
    values = 1e8 + 2e5 * times_at + 1e5 * np.sin(times_at)
    series = Series(times_at, values, unit="bytes", limit=5.37e8, metric="memory")
    return render_study(
        run_study("trend", series, [series]), series, columns, colour=False, is_wrapped=is_wrapped
    ).splitlines()


@pytest.mark.parametrize("columns", [60, 80])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_broken(columns: int) -> None:
    lines = study_leak(columns, is_wrapped=True)
    assert max(map(width_of, lines)) <= columns
    text, whole = (
        " ".join(" ".join(many).split()) for many in (lines, study_leak(columns, is_wrapped=False))
    )
    assert text == whole
    assert "limit 512 MiB" in text


def test_piped_a_sentence_is_one_line() -> None:
    assert sum("rises" in line for line in study_leak(60, is_wrapped=False)) == 2


def test_a_number_stays_with_its_unit() -> None:
    assert wrap_words("it has 512 MiB of 21 600 MiB", 10) == ["it has", "512 MiB of", "21 600 MiB"]


@given(st.text(st.sampled_from("ab 1\u5f00"), max_size=80), st.integers(10, 60))
def test_wrapped_words_are_the_same_words(text: str, columns: int) -> None:
    """forall text, columns: the same words in the same order, indented lines included"""
    assert " ".join(wrap_words(text, columns, "  ")).split() == text.split()


@given(st.text(st.sampled_from("ab-\u5f00\u30d0e\u0301"), max_size=60), st.integers(0, 40))
def test_what_is_cut_fits(text: str, most: int) -> None:
    """forall text, columns: at most so many columns, and what fits is not touched"""
    cut = cut_columns(text, most)
    assert width_of(cut) <= most
    assert cut == text or width_of(text) > most
