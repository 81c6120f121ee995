"""Every link of every page leads somewhere."""

from pathlib import Path

import pytest
from tests.docs.pages import ROOT, list_anchors, list_blocks, list_links, list_pages


@pytest.mark.parametrize("page", list_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in list_links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} in {page.name}"
        if anchor and target.suffix == ".md":
            assert anchor in list_anchors(target), f"{link} in {page.name}"


def test_every_guide_is_linked_from_the_first_page_or_the_first_hour() -> None:
    guides = {path.resolve() for path in (ROOT / "docs" / "guides").glob("*.md")}
    linked = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in (ROOT / "README.md", ROOT / "docs/guides/first-hour.md")
        for link in list_links(page)
    }
    missing = guides - linked - {ROOT / "docs/guides/first-hour.md"}
    assert not missing, sorted(path.name for path in missing)


def test_a_block_that_is_not_run_says_why() -> None:
    for page in list_pages():
        for block in list_blocks(page):
            if block.language in {"sh", "bash"} and not (block.runs or block.place):
                assert len(block.about.partition("no-run:")[2].split()) >= 2, block
