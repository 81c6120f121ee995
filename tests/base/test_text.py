"""Tenant text is always printable and encodable; a wrong name finds its neighbour."""

import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import HOSTILE, examples

from nodescope.base.text import (
    PATH_CHARACTERS,
    clean_text,
    hint_nearest,
    nearest_name,
    render_metric,
    shorten_path,
)

ANY_TEXT = HOSTILE | st.text(st.characters(), max_size=400) | st.binary(max_size=40).map(os.fsdecode)


@given(ANY_TEXT, st.integers(0, 300))
@examples(600)
@example("\ud800", 256)
@example("\udcff", 256)
@example("a\x00b\nc", 256)
def test_clean_text_is_printable_encodable_and_short(text: str, limit: int) -> None:
    """forall text, limit: printable, encodable as UTF-8, at most limit characters."""
    shown = clean_text(text, limit)
    assert shown.isprintable()
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert len(shown) <= limit


@given(st.text(st.characters(categories=("L", "N", "P")), max_size=50))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert clean_text(text) == text


def test_control_characters_become_spaces_and_bytes_something_readable() -> None:
    assert clean_text("a\tb\x1b[31m") == "a b [31m"
    shown = clean_text(os.fsdecode(b"caf\xe9"))
    assert shown.startswith("caf")
    assert len(shown) > len("caf")


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    """clean(clean(t)) == clean(t)"""
    assert clean_text(clean_text(text)) == clean_text(text)


def test_the_nearest_name_is_offered_and_a_far_one_is_not() -> None:
    known = ("memory", "cpu", "container")
    assert nearest_name("memroy", known) == "memory"
    assert hint_nearest("contaner", known) == '; did you mean "container"?'
    assert hint_nearest("zzz", known) == ""


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("cpu", "CPU"),
        ("memory_working_set", "memory working set"),
        ("pressure_cpu", "CPU pressure"),
        ("gpu_utilization", "GPU utilization"),
        ("oom_kills", "OOM kills"),
        ("cgroup.v2.memory.current", "cgroup.v2.memory.current"),
        ("memory.MemAvailable", "memory.MemAvailable"),
    ],
)
def test_a_plain_name_is_said_as_words_and_a_raw_one_as_it_is(metric: str, said: str) -> None:
    assert render_metric(metric) == said


def test_two_long_paths_stay_two() -> None:
    """Equal labels would be one series twice: OpenMetrics refuses the whole scrape then."""
    long = "/system.slice/" + "a" * 2000
    first, second = shorten_path(long + "1"), shorten_path(long + "2")
    assert first != second
    assert len(first) == len(second) == PATH_CHARACTERS
    assert shorten_path(long + "1") == first
    assert shorten_path("/system.slice/ssh.service") == "/system.slice/ssh.service"


@pytest.mark.parametrize(
    ("wrong", "right"), [("--prot", "--port"), ("--rooot", "--root"), ("mermoy", "memory"), ("qqqq", None)]
)
def test_the_nearest_name_is_the_one_that_was_meant(wrong: str, right: str | None) -> None:
    """Two letters exchanged count as one slip: --prot is as far from --root by its letters alone."""
    assert nearest_name(wrong, ["--root", "--port", "--report", "memory", "memory.max"]) == right
