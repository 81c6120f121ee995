"""CHANGELOG.md has every note of changes/: a release must not find out that it lacks some."""

from tools.changelog import HEAD, KINDS, PAGE, ROOT, list_notes, render_section, renew

from nodescope import __version__


def test_the_page_has_every_note() -> None:
    """As `make changelog` would write it, to the letter."""
    page = PAGE.read_text()
    section = render_section(__version__, list(list_notes(ROOT / "changes")))
    assert renew(page, __version__, section) == page, "run: make changelog"


def test_a_new_note_reaches_the_page_and_earlier_versions_stay() -> None:
    earlier = "## 0.0.1\n\n### Added\n\n- The first. (#1)\n"
    page = f"{HEAD}\n## 0.1.0\n\n### Added\n\n- Old. (#2)\n\n{earlier}"
    renewed = renew(page, "0.1.0", render_section("0.1.0", [(3, KINDS[0], "New.")]))
    assert "- New. (#3)" in renewed
    assert "- Old. (#2)" not in renewed
    assert renewed.endswith(earlier)
