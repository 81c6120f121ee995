"""The list of mended faults: its texts and tests are there, and its page says the same."""

import re
from pathlib import Path

import pytest
from tools.mendings.__main__ import ROOT, take_out
from tools.mendings.table import MENDINGS, Mending

PAGE = ROOT / "docs/decisions/0526-a-mended-fault-has-a-test-that-fails-without-the-mending.md"


@pytest.mark.parametrize("mending", MENDINGS, ids=lambda one: f"{one.row}-{one.what[:40]}")
def test_a_mending_stands_in_its_file_and_has_its_tests(mending: Mending) -> None:
    whole = (ROOT / mending.file).read_text()
    assert take_out(whole, mending) != whole
    for test in mending.tests:
        file, _, name = test.partition("::")
        assert re.search(rf"^def {name}\(", Path(ROOT, file).read_text(), re.MULTILINE), test


def test_a_text_that_is_not_there_once_is_an_error() -> None:
    (first, *_) = MENDINGS
    with pytest.raises(ValueError, match="0 times, not once"):
        take_out("nothing of it", first)
    with pytest.raises(ValueError, match="2 times, not once"):
        take_out(first.text * 2, first)


def test_the_page_lists_every_mending_by_row() -> None:
    rows = re.findall(r"^\| (\d+) \| .+ \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    told = [(int(row), what) for row, cell in rows for what in cell.split("; ")]
    assert told == [(one.row, one.what) for one in MENDINGS]
    assert [int(row) for row, _ in rows] == list(range(17))
