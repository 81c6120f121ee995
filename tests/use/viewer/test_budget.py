"""What the first paint loads stays small; everything else is loaded when it is opened."""

import gzip
import re

from nodescope.use.viewer.page import STATIC

SCRIPT_BYTES, STYLE_BYTES = 68_000, 6_500


def size_in_gzip(names: list[str]) -> int:
    return sum(len(gzip.compress((STATIC / name).read_bytes(), 9)) for name in names)


def test_the_first_paint_has_a_budget() -> None:
    page = (STATIC / "index.html").read_text()
    linked = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', page)
    scripts = [name for name in linked if name.endswith(".js")]
    styles = [name for name in linked if name.endswith(".css")]
    assert scripts
    assert styles
    assert size_in_gzip(scripts) <= SCRIPT_BYTES
    assert size_in_gzip(styles) <= STYLE_BYTES


def test_what_is_imported_at_once_is_named_in_the_page() -> None:
    """Else the browser would find it only after it has read the first file."""
    page = (STATIC / "index.html").read_text()
    (entry,) = re.findall(r'src="\./(assets/[^"]+\.js)"', page)
    script = (STATIC / entry).read_text()
    imported = re.findall(r'(?:from|import)\s*"\./([^"]+\.js)"', script)
    assert imported
    assert all(f"assets/{name}" in page for name in imported)
    # Parts that few open are in files of their own.
    parts = {path.name.partition("-")[0] for path in (STATIC / "assets").glob("*.js")}
    assert {"heat", "why", "who", "drawer", "threshold"} <= parts
