"""Nodes whose data folders are on this machine, as the cluster's page asks them."""

from collections.abc import Mapping

from nodescope.use.answers.snapshots import NodeFolders
from nodescope.use.cluster.asked_node import AskedNode, FolderNode
from nodescope.use.nodes.directory import NodeDirectory, NodeEntry


class FolderDirectory(NodeDirectory[AskedNode]):
    """Found anew as folders fill; what is behind a folder is shared with the viewer."""

    def __init__(self, folders: NodeFolders) -> None:
        self._folders = folders

    def entries(self) -> Mapping[str, NodeEntry[AskedNode]]:
        names = [node.name for node in self._folders.snapshot().nodes]
        return {name: NodeEntry(name, FolderNode(self._folders, name), "this machine") for name in names}
