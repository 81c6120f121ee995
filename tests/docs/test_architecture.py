"""
docs/architecture.md is true: its paths exist, its walks follow the imports, its table is the contract's.

A walk is a numbered list. A step begins with its module and ends with how it is connected
with an earlier step:

    1. `src/nodescope/hold/ring.py`: keeps the last minutes.
    2. `src/nodescope/publish/scrape.py`: takes the newest blocks (imports 1).
    3. `src/nodescope/publish/agent_http.py`: answers (handed 2 by `src/nodescope/wiring.py`).

"handed 2 by MODULE" means that neither needs to import the other: MODULE imports both.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from tests.contracts.test_code_contract import CONNECTORS, MAY_IMPORT
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "architecture.md"
WALKS = 4
# Paths of the repository in backquotes; a pattern such as `<name>.py` is not one.
PATH = re.compile(r"`((?:src|tests|web|tools|deploy|docs|native|changes)/[\w./-]*)`")
STEP = re.compile(r"(\d+)\. `(src/nodescope/[\w/]+\.py)`: .+?(?: \(([^()]+)\))?\.", re.DOTALL)
LINK = re.compile(r"(?:(imports|imported by) (\d+)|handed (\d+) by `(src/nodescope/[\w/]+\.py)`)")


@dataclass(frozen=True)
class Step:
    """One line of a walk: its module, and the words about its connection with an earlier step."""

    number: int
    module: str
    link: str


def parse_walks(page: str) -> list[list[Step]]:
    """Every list of steps; one walk may have several, where a file or a network lies between."""
    blocks = (block for block in page.split("\n\n") if re.match(r"1\. `src/nodescope/", block))
    return [[parse_step(item) for item in re.split(r"\n(?=\d+\. )", block)] for block in blocks]


def parse_step(item: str) -> Step:
    found = STEP.fullmatch(item.strip())
    assert found, f"not a step: {item}"
    return Step(int(found[1]), found[2], " ".join((found[3] or "").split()))


def list_imports(path: Path, root: Path) -> Iterator[str]:
    """Paths of our modules that this one imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "nodescope":
            folder = "src/" + (node.module or "").replace(".", "/")
            for name in (folder, *(f"{folder}/{alias.name}" for alias in node.names)):
                yield from (file for file in (f"{name}.py", f"{name}/__init__.py") if (root / file).exists())


@cache
def imports_of(module: str, root: Path) -> frozenset[str]:
    return frozenset(list_imports(root / module, root))


def find_errors(walk: list[Step], root: Path) -> Iterator[str]:
    """What of a walk is not so in the code below root."""
    if [step.number for step in walk] != list(range(1, len(walk) + 1)):
        yield f"steps are not numbered from 1 on: {walk[0].module}"
    for step in walk:
        if not (root / step.module).exists():
            yield f"no such module: {step.module}"
    for step in walk[1:]:
        yield from find_link_errors(
            step, {before.number: before.module for before in walk[: step.number - 1]}, root
        )


def find_link_errors(step: Step, before: dict[int, str], root: Path) -> Iterator[str]:
    link = LINK.fullmatch(step.link)
    other = before.get(int(link[2] or link[3])) if link else None
    if not link or not other:
        yield f"step {step.number}, {step.module}: not connected with an earlier step: {step.link!r}"
        return
    wanted = {
        "imports": [(step.module, other)],
        "imported by": [(other, step.module)],
        None: [(link[4], other), (link[4], step.module)],
    }[link[1]]
    for importer, imported in wanted:
        if not (root / importer).exists() or imported not in imports_of(importer, root):
            yield f"step {step.number}: {importer} does not import {imported}"


def test_every_step_of_every_walk_is_so_in_the_code() -> None:
    walks = parse_walks(PAGE.read_text())
    assert len(walks) >= WALKS
    errors = [error for walk in walks for error in find_errors(walk, ROOT)]
    assert not errors, "\n".join(errors)


def test_every_numbered_line_of_the_walks_is_a_step() -> None:
    """A step that is written differently would not be checked."""
    page = PAGE.read_text().partition("\n## Four walks\n")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\d+\. ", page, re.MULTILINE)) == sum(map(len, parse_walks(page)))
    assert page.count("\n### ") == WALKS


def test_every_path_on_the_page_exists() -> None:
    for path in PATH.findall(PAGE.read_text()):
        assert (ROOT / path).exists(), path


def test_the_table_of_folders_is_the_contract_of_imports() -> None:
    rows = re.findall(r"^\| `src/nodescope/(\w+)/` \| ([^|]*) \|", PAGE.read_text(), re.MULTILINE)
    assert {
        folder: set(re.findall(r"`(\w+)`", may)) for folder, may in rows if folder not in CONNECTORS
    } == MAY_IMPORT


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package of three modules: `b` imports `a`, and `wiring` imports `b` and `c`."""
    package = tmp_path / "src" / "nodescope"
    package.mkdir(parents=True)
    (package / "a.py").write_text("")
    (package / "b.py").write_text("from nodescope.a import something\n")
    (package / "c.py").write_text("")
    (package / "wiring.py").write_text("from nodescope import c\nfrom nodescope.b import something\n")
    return tmp_path


A, B, C = (f"src/nodescope/{name}.py" for name in "abc")
WIRING = "src/nodescope/wiring.py"


def test_a_walk_that_is_so_has_no_errors(tree: Path) -> None:
    walk = [Step(1, A, ""), Step(2, B, "imports 1"), Step(3, C, f"handed 2 by `{WIRING}`")]
    assert not list(find_errors(walk, tree))
    assert not list(find_errors([Step(1, B, ""), Step(2, A, "imported by 1")], tree))


@pytest.mark.parametrize(
    ("walk", "error"),
    [
        ([Step(1, A, ""), Step(2, B, "imported by 1")], "a.py does not import"),
        ([Step(1, B, ""), Step(2, A, "imports 1")], "a.py does not import"),
        (
            [Step(1, A, ""), Step(2, C, f"handed 1 by `{WIRING}`")],
            "wiring.py does not import src/nodescope/a.py",
        ),
        ([Step(1, "src/nodescope/gone.py", "")], "no such module"),
        ([Step(1, A, ""), Step(2, B, "")], "not connected"),
        ([Step(1, A, ""), Step(2, B, "imports 2")], "not connected"),
        ([Step(1, A, ""), Step(3, B, "imports 1")], "not numbered"),
    ],
)
def test_a_walk_that_is_not_so_is_found(tree: Path, walk: list[Step], error: str) -> None:
    assert any(error in found for found in find_errors(walk, tree))
