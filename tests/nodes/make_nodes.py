"""
Writes all fixture nodes into one folder and prints its path: `python -m tests.nodes.make_nodes`.

Most nodes are described in the modules beside this one. The others were captured
on a machine (`make capture`) and are committed here as folders. Both are written
below artifacts/, which git ignores, into a folder named after a hash of its content:
it is written once per change, and a run that still reads an older one is not disturbed.
"""

import shutil
import tempfile
from functools import cache
from pathlib import Path

from tests.nodes.board_node import make_board
from tests.nodes.captured import list_captured, read_captured
from tests.nodes.files import Tree, digest_tree, prefix_paths, write_tree
from tests.nodes.gpu_node import make_gpus
from tests.nodes.hardware_node import make_hardware
from tests.nodes.hostile_node import make_hostile
from tests.nodes.kubernetes_nodes import (
    make_cgroup1,
    make_cgroup2_cgroupfs,
    make_cgroup2_systemd,
    make_hybrid,
    make_kind,
    make_kind_host,
)
from tests.nodes.node import render_node
from tests.nodes.plain_nodes import make_arm64_64k, make_bare, make_hotplug, make_reboot, make_services

MADE = Path(__file__).parents[2] / "artifacts" / "nodes"
MAKERS = (
    make_cgroup2_systemd,
    make_cgroup2_cgroupfs,
    make_kind,
    make_kind_host,
    make_cgroup1,
    make_hybrid,
    make_bare,
    make_reboot,
    make_hotplug,
    make_services,
    make_arm64_64k,
    make_hostile,
    make_hardware,
    make_board,
    make_gpus,
)


def render_nodes() -> Tree:
    """All files of all nodes, described and captured."""
    tree: Tree = {}
    for make in MAKERS:
        node = make()
        tree |= prefix_paths(node.name, render_node(node))
    for folder in list_captured():
        tree |= prefix_paths(folder.name, read_captured(folder))
    return tree


@cache
def make_nodes(made: Path = MADE) -> Path:
    """The folder with one folder per fixture node, written if it is not there yet."""
    tree = render_nodes()
    folder = made / digest_tree(tree)[:16]
    if not folder.exists():
        write_whole(folder, tree)
    return folder


def write_whole(folder: Path, tree: Tree) -> None:
    """Written under another name and renamed: no other process sees half of it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=folder.parent))
    try:
        write_tree(unfinished, tree)
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    except OSError:
        # Another process was faster: its folder has the same content.
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


if __name__ == "__main__":
    print(make_nodes())
