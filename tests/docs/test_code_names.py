"""Code that a page names is there: `fpga/tracker.py`, `collect.files.batch.read_segments`."""

import re
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, list_pages

PACKAGE = ROOT / "src" / "nodescope"
FOLDERS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
# A pattern such as `<name>.py` or `x*.py` names no file.
FILE = re.compile(r"`((?:\w+/)+\w+\.(?:py|c|ts|tsx))`")
DOTTED = re.compile(rf"`((?:{'|'.join(FOLDERS)})(?:\.\w+)+)`")


def is_file(name: str) -> bool:
    """A path of the repository, or of the package without `src/nodescope/`."""
    return (ROOT / name).is_file() or (PACKAGE / name).is_file()


def is_code(name: str) -> bool:
    """A module or package, or a name that one defines."""
    path = PACKAGE.joinpath(*name.split("."))
    if path.is_dir() or path.with_suffix(".py").is_file():
        return True
    module = path.parent.with_suffix(".py")
    return (
        module.is_file()
        and re.search(rf"^(?:def |class )?{path.name}\b", module.read_text(), re.MULTILINE) is not None
    )


# Names of metrics begin with a source's name, which may be that of a folder: `fpga.usage_ms`.
PAGES = [page for page in list_pages() if page != ROOT / "docs" / "metrics.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text()
    missing = [name for name in FILE.findall(text) if not is_file(name)]
    missing += [name for name in DOTTED.findall(text) if not is_code(name)]
    assert not missing, missing


def test_code_that_is_not_there_is_found() -> None:
    assert is_file("fpga/tracker.py")
    assert not is_file("base/fpga.py")
    assert is_code("collect.files.batch.read_segments")
    assert not is_code("collect.files.batch.read_nothing")
    assert not is_code("collect.batch")
