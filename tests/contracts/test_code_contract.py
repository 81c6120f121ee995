"""Rules about all of our code, read from its syntax."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import NODES

PACKAGE = Path(__file__).parents[2] / "src" / "nodescope"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Imports follow the data: who may import whom, beside itself.
MAY_IMPORT = {
    "base": set[str](),
    "fpga": {"base"},
    "serve": {"base"},
    "kube": {"base", "serve"},
    "collect": {"base", "fpga", "kube", "serve"},
    "hold": {"base"},
    "keep": {"base", "hold"},
    "watch": {"base", "hold", "keep"},
    "publish": {"base", "fpga", "hold", "kube", "serve", "watch"},
    "read": {"base", "keep", "serve"},
    "use": {"base", "fpga", "read", "kube", "serve"},
}
# In use/: these render what answers gives.
RENDERERS = ("viewer", "mcp")
USES = ("answers", *RENDERERS)
# These connect the others and may import all.
CONNECTORS = {"wiring", "commands", "cli", "__main__", "__init__"}
# Imported only by the leaves that need them, never when the agent starts.
HEAVY = ("pyarrow", "duckdb", "fastapi", "mcp", "kubernetes", "dask", "pandas", "psutil")

COMMENT_COLUMNS = 110
BROAD = ("Exception", "BaseException")
NUMBERED = re.compile(r"(TODO|FIXME|XXX)(?!\(#?\d+\))")

every_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))


def folder_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports say whole names, so that they grep"
            module = node.module or ""
            yield module
            if module == "nodescope":
                yield from (f"nodescope.{alias.name}" for alias in node.names)


def comments(path: Path) -> Iterator[tuple[int, int, str]]:
    """(line, last column, text) of every comment."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.end[1], token.string


def test_every_folder_has_its_place_in_the_flow() -> None:
    """A new folder is entered above, with whom it may import."""
    folders = {folder_of(path) for path in MODULES}
    assert folders <= {*MAY_IMPORT, *CONNECTORS}


@every_module
def test_imports_follow_the_data(path: Path) -> None:
    """Base knows nobody, a stage knows what comes before it, wiring knows all."""
    folder = folder_of(path)
    if folder in CONNECTORS:
        return
    names = [name.split(".") for name in imported_modules(path) if name.startswith("nodescope.")]
    ours = {parts[1] for parts in names if parts[1] != "__version__"}
    assert ours <= {folder, *MAY_IMPORT[folder]}


@every_module
def test_those_who_render_answers_do_not_render_each_other(path: Path) -> None:
    """The viewer and MCP both ask use/answers; neither imports from the other, nor answers from them."""
    mine = next((name for name in USES if path.is_relative_to(PACKAGE / "use" / name)), None)
    if mine is None:
        return
    forbidden = [f"nodescope.use.{name}" for name in RENDERERS if name != mine]
    assert not [name for name in imported_modules(path) if name.startswith(tuple(forbidden))]


@every_module
def test_only_the_clock_module_asks_for_the_time(path: Path) -> None:
    """Whoever needs the time is handed a clock, so that every test can turn it."""
    if path == PACKAGE / "base" / "clock.py":
        return
    assert "time" not in set(imported_modules(path))
    called = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    # Making a date of a given instant is no asking; datetime.now() is.
    assert not {func.attr for func in called if isinstance(func, ast.Attribute)} & {"now", "utcnow", "today"}


@every_module
def test_comments_are_ascii_short_and_numbered(path: Path) -> None:
    """A comment fits the column, reads in any terminal, and promises nothing without a number."""
    for line, last_column, text in comments(path):
        assert text.isascii(), f"line {line}"
        # A word to a tool has to stand on the line it is about.
        assert last_column <= COMMENT_COLUMNS or text.startswith(("# noqa", "# type:")), f"line {line}"
        assert not NUMBERED.search(text), f"line {line}: a TODO has a number"


@every_module
def test_a_module_says_what_it_is_for(path: Path) -> None:
    """One sentence a newcomer understands, before any code."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert docstring.split("\n\n")[0].rstrip().endswith((".", ":", "?"))


def test_everything_is_caught_in_one_place_only() -> None:
    """A broad except hides bugs; the guard around sources logs them with their traceback."""
    broad = {
        str(path.relative_to(PACKAGE))
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in BROAD))
    }
    assert broad <= {"collect/run/guard.py"}


def test_the_agent_starts_without_heavy_libraries() -> None:
    """A whole agent is built, ticks once, and none of them is in the process."""
    code = (
        "import sys\n"
        "from nodescope.base.settings_load import load_settings\n"
        "from nodescope.wiring import build_agent_app, build_parts\n"
        "import nodescope.cli, nodescope.commands.agent, nodescope.serve.server\n"
        f"parts = build_parts(load_settings({{'root': {str(NODES / 'bare' / 't0')!r}}}, {{}}, {{}}, ''))\n"
        "build_agent_app(parts)\n"
        "parts.sampler.tick()\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(found.stdout.split())
