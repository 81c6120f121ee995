"""
A folder of files as a dict of path to content, and how it is read and written.

A symbolic link is a content too: "-> " and the target.
"""

import hashlib
import os
from pathlib import Path

Tree = dict[str, bytes]

LINK = b"-> "


def read_tree(folder: Path) -> Tree:
    """Every file and link below the folder; an empty folder is not part of it."""
    paths = [path for path in folder.rglob("*") if path.is_symlink() or path.is_file()]
    return {str(path.relative_to(folder)): read_content(path) for path in sorted(paths)}


def read_content(path: Path) -> bytes:
    return LINK + os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()


def write_tree(folder: Path, tree: Tree) -> None:
    for name, content in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith(LINK):
            path.symlink_to(os.fsdecode(content.removeprefix(LINK)))
        else:
            path.write_bytes(content)


def prefix_paths(prefix: str, tree: Tree) -> Tree:
    return {f"{prefix}/{name}": content for name, content in tree.items()}


def digest_tree(tree: Tree) -> str:
    """Equal for equal trees, whatever the order of their files."""
    found = hashlib.sha256()
    for name, content in sorted(tree.items()):
        found.update(f"{len(name)} {len(content)} {name}".encode())
        found.update(content)
    return found.hexdigest()
