"""The pages people read, and what in them can be checked: links and shell blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


# Words after `sh` for blocks that a test of their own runs.
PLACES = frozenset({"cluster", "serves", "agent"})


@dataclass(frozen=True)
class Block:
    """
    A fenced block; `sh no-run: reason` is one that cannot be run here, and why.

    `sh cluster` is run with kubectl and helm on a real API server; `sh serves` has commands that serve until
    Ctrl-C, `sh agent` those that ask an agent on its own port (tests/docs/serving.py).
    """

    page: Path
    line: int
    language: str
    about: str
    text: str

    @property
    def runs(self) -> bool:
        return self.about.strip() not in PLACES and not self.about.strip().startswith("no-run")

    @property
    def place(self) -> str:
        """Where it runs: PLACES, or empty."""
        return self.about.strip() if self.about.strip() in PLACES else ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def list_pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def list_blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2], found[3])
        for found in FENCE.finditer(text)
    ]


def list_links(page: Path) -> Iterator[str]:
    for found in LINK.finditer(FENCE.sub("", page.read_text())):
        if not found[1].startswith(("http://", "https://", "mailto:")):
            yield found[1]


def list_anchors(page: Path) -> set[str]:
    """Headings as a link names them."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(page.read_text()))
    return {heading.strip().replace(" ", "-") for heading in plain}
