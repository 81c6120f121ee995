"""The generated pages say what the code says; every setting and metric is on them."""

import re
from pathlib import Path

import pytest
from tools.generate_docs import PAGES, gather_rows

from nodescope.base.entity import SCOPES
from nodescope.base.settings import FIELDS
from nodescope.commands.shared.meanings import read_meanings

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", sorted(PAGES))
def test_the_page_is_what_would_be_generated(page: str) -> None:
    """A page that lags behind the code is worse than none: `make docs`, then read the diff."""
    assert (DOCS / page).read_text() == PAGES[page](), f"docs/{page} lags behind the code: make docs"


def test_every_setting_says_what_changes_if_you_change_it() -> None:
    docstrings = read_meanings()
    assert set(docstrings) == set(FIELDS)
    for name, text in docstrings.items():
        assert text.split("\n\n")[0].endswith("."), f"{name}: a sentence, please"


def test_every_setting_has_an_environment_name_and_a_flag() -> None:
    page = (DOCS / "settings.md").read_text()
    for name in FIELDS:
        section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        assert f"`NODESCOPE_{name.upper()}`" in section
        assert re.search(r"- flag: `--[a-z]", section)


def test_every_metric_has_a_help_sentence() -> None:
    for source, rows in gather_rows().items():
        assert rows, f"{source} has no metric on the page"
        for row in rows.values():
            assert row.help.endswith("."), f"{source} {row.archive}: a sentence, please"


USERS_MEET = "viewer study finding consolidator rollup sidecar workload extender bitstream source series scope window tick"
OURS_ALONE = "frame block table sink entity ring outcome"


@pytest.mark.parametrize(("page", "asked"), [("glossary.md", USERS_MEET), ("code-words.md", OURS_ALONE)])
def test_a_list_of_words_has_each_once_in_order(page: str, asked: str) -> None:
    assert read_words(page) == sorted(set(read_words(page)))
    assert set(asked.split()) <= set(read_words(page))


def test_words_of_the_code_are_not_in_the_glossary() -> None:
    assert not set(read_words("glossary.md")) & set(read_words("code-words.md"))


def read_words(page: str) -> list[str]:
    rows = (DOCS / page).read_text().splitlines()
    return [line.split("|")[1].strip() for line in rows if line.startswith("| ")][1:]


def test_the_glossary_names_every_scope() -> None:
    line = next(row for row in (DOCS / "glossary.md").read_text().splitlines() if row.startswith("| scope |"))
    assert all(re.search(rf"\b{scope}\b", line) for scope in SCOPES)
