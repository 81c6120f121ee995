"""
Fixture nodes that were captured on a machine, as they are committed.

    node.toml    kernel, page size, the measured time between both instants
    t0/          every file at the first instant
    t1/          the files of the second instant that are new or have changed
    gone.txt     the files of t0 that t1 no longer has, one path a line

Most files of a node do not change within a second, so t1 holds only the difference.
"""

from pathlib import Path

from tests.nodes.files import Tree, prefix_paths, read_tree

HERE = Path(__file__).parent


def list_captured() -> list[Path]:
    return sorted(path.parent for path in HERE.glob("*/node.toml"))


def read_captured(folder: Path) -> Tree:
    """The node with both instants whole."""
    first, later = read_tree(folder / "t0"), read_tree(folder / "t1")
    gone = read_gone(folder)
    second = {name: content for name, content in first.items() if name not in gone} | later
    described = {path.name: path.read_bytes() for path in sorted(folder.glob("*.toml"))}
    return described | prefix_paths("t0", first) | prefix_paths("t1", second)


def read_gone(folder: Path) -> set[str]:
    path = folder / "gone.txt"
    return set(path.read_text().splitlines()) if path.exists() else set()


def write_difference(folder: Path) -> None:
    """Of a node whose t1 is whole, keep in t1 what differs from t0, and list what is gone."""
    first, second = read_tree(folder / "t0"), read_tree(folder / "t1")
    for name, content in second.items():
        if first.get(name) == content:
            (folder / "t1" / name).unlink()
    remove_empty_folders(folder / "t1")
    write_gone(folder / "gone.txt", sorted(first.keys() - second.keys()))


def write_gone(path: Path, names: list[str]) -> None:
    path.unlink(missing_ok=True)
    if names:
        path.write_text("".join(f"{name}\n" for name in names))


def remove_empty_folders(top: Path) -> None:
    for path in sorted(top.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            path.rmdir()
