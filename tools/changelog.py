"""
CHANGELOG.md from the notes in changes/: `make changelog` before a release.

    python -m tools.changelog            writes the section of the version in src/nodescope/__init__.py
    python -m tools.changelog --check    exit code 1 where the page lacks a note

A note is changes/<issue>[.<word>].{added,changed,fixed}.md, one sentence or paragraph a line.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from nodescope import __version__

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "CHANGELOG.md"
NAME = re.compile(r"(\d+)(?:\.[\w-]+)?\.(added|changed|fixed)\.md")
KINDS = ("added", "changed", "fixed")
HEAD = """# Changes

Made from `changes/` by `make changelog`. The newest version comes first; numbers are those of the issues.
"""


def list_notes(folder: Path) -> Iterator[tuple[int, str, str]]:
    """(issue, kind, note); a file of another name is refused by name."""
    for file in sorted(folder.iterdir()):
        found = NAME.fullmatch(file.name)
        if not found:
            raise ValueError(f"changes/{file.name}: a note is <issue>[.<word>].{{added,changed,fixed}}.md")
        for line in file.read_text().splitlines():
            if line.strip():
                yield int(found[1]), found[2], line.strip()


def render_section(version: str, notes: list[tuple[int, str, str]]) -> str:
    lines = [f"## {version}", ""]
    for kind in KINDS:
        chosen = sorted((issue, note) for issue, of_kind, note in notes if of_kind == kind)
        if chosen:
            lines += [f"### {kind.capitalize()}", "", *(f"- {note} (#{issue})" for issue, note in chosen), ""]
    return "\n".join(lines)


def renew(page: str, version: str, section: str) -> str:
    """The page with this version's section in its place; earlier versions stay as they are."""
    parts = re.split(r"^(?=## )", page.partition("\n## ")[1] + page.partition("\n## ")[2], flags=re.MULTILINE)
    earlier = [part.rstrip() + "\n" for part in parts if part.startswith("## ")]
    kept = [part for part in earlier if not part.startswith(f"## {version}\n")]
    return "\n".join([HEAD, section, *kept]).rstrip() + "\n"


def main(words: list[str]) -> int:
    old = PAGE.read_text() if PAGE.exists() else ""
    new = renew(old, __version__, render_section(__version__, list(list_notes(ROOT / "changes"))))
    if words == ["--check"]:
        if new != old:
            sys.stderr.write("CHANGELOG.md lacks notes of changes/; run: make changelog\n")
        return int(new != old)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
