"""The tree can be read from its names: every class name once, no crowded folder."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "nodescope"
# A listing of twenty names still fits one look; `collect` once had 43 modules side by side.
MODULES_IN_A_FOLDER = 20


def find_repeated_classes(modules: Iterable[Path]) -> dict[str, list[str]]:
    """Class name to the modules that define it, for the names that are defined more than once."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path))
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def find_crowded_folders(package: Path) -> Mapping[str, int]:
    """Folder to its number of modules (`__init__` not counted), where there are too many."""
    counts: dict[str, int] = defaultdict(int)
    for path in package.rglob("*.py"):
        if path.name != "__init__.py":
            counts[str(path.parent)] += 1
    return {folder: count for folder, count in counts.items() if count > MODULES_IN_A_FOLDER}


def test_every_class_name_occurs_once() -> None:
    """Whoever reads `Node` in a message or greps for it finds one class."""
    assert not find_repeated_classes(PACKAGE.rglob("*.py"))


def test_no_folder_holds_more_than_twenty_modules() -> None:
    assert not find_crowded_folders(PACKAGE)


def test_a_class_name_that_occurs_twice_is_found(tmp_path: Path) -> None:
    """Also when one of the two is nested or private to its module."""
    (tmp_path / "one.py").write_text("class Node:\n    pass\n\n\nclass _Gate:\n    pass\n")
    (tmp_path / "two.py").write_text(
        "def make():\n    class Node:\n        pass\n\n\nclass _Gate:\n    pass\n"
    )
    assert set(find_repeated_classes(sorted(tmp_path.glob("*.py")))) == {"Node", "_Gate"}


def test_a_crowded_folder_is_found(tmp_path: Path) -> None:
    for folder, count in (("full", MODULES_IN_A_FOLDER), ("crowded", MODULES_IN_A_FOLDER + 1)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
        for number in range(count):
            (tmp_path / folder / f"module_{number}.py").touch()
    assert find_crowded_folders(tmp_path) == {str(tmp_path / "crowded"): MODULES_IN_A_FOLDER + 1}
