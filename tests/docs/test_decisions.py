"""The index of decisions is made from pages of one form; a page of another form is refused by name."""

import pytest
from tools.decision_index import FOLDER, GIST_LENGTH, THEMES, parse_decision, read_decisions, render_decisions

PAGE = "# 0004 A sink takes frames\n\n**Decision.** It is called\nafter each tick. It must return.\n\n**Why.** Order.\n"


def test_a_page_gives_number_claim_and_first_sentence() -> None:
    row = parse_decision("0004-a-sink.md", PAGE)
    assert (row.number, row.claim, row.gist) == (
        "0004",
        "A sink takes frames",
        "It is called after each tick.",
    )


@pytest.mark.parametrize(
    ("file", "page"),
    [
        ("0005-another.md", PAGE),
        ("9904-no-theme.md", PAGE.replace("0004", "9904")),
        ("0004-a-sink.md", PAGE.replace("# 0004 ", "# ")),
        ("0004-a-sink.md", PAGE.replace("**Decision.** ", "")),
        ("0004-a-sink.md", PAGE.replace("after", "after " + "word " * GIST_LENGTH)),
    ],
)
def test_a_page_of_another_form_is_refused_by_name(file: str, page: str) -> None:
    with pytest.raises(ValueError, match=file):
        parse_decision(file, page)


def test_every_page_is_on_the_index_and_numbers_are_unique() -> None:
    decisions = read_decisions(FOLDER)
    numbers = [row.number for row in decisions]
    assert len(numbers) == len(set(numbers)) == len(list(FOLDER.glob("*.md"))) - 1
    index = render_decisions()
    assert all(f"]({row.file})" in index for row in decisions)
    assert {number[:2] for number in numbers} == set(THEMES)
