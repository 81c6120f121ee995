"""Nodes whose data folders are on this machine, or in object stores, as the cluster's page asks them."""

from collections.abc import Mapping

from nodescope.use.answers.snapshots import NodeFolders
from nodescope.use.cluster.asked_node import AskedNode, FolderNode, StoreNode
from nodescope.use.nodes.directory import NodeDirectory, NodeEntry


class FolderDirectory(NodeDirectory[AskedNode]):
    """Found anew as folders fill; what is behind a folder is shared with the viewer."""

    def __init__(self, folders: NodeFolders) -> None:
        self._folders = folders

    def entries(self) -> Mapping[str, NodeEntry[AskedNode]]:
        return {node: self._enter(node, remote) for node, remote in self._list()}

    def _list(self) -> list[tuple[str, str]]:
        """Names, each with the address of the store that it lies in; empty for a folder here."""
        nodes = self._folders.snapshot().nodes
        newest = ((node.name, node.catalog.entries[-1:]) for node in nodes)
        return [(name, one[0].remote.url if one and one[0].remote else "") for name, one in newest]

    def _enter(self, node: str, url: str) -> NodeEntry[AskedNode]:
        store = next((one for one in self._folders.stores if one.url.rstrip("/") == url), None)
        if store is None:
            return NodeEntry(node, FolderNode(self._folders, node), "this machine")
        return NodeEntry(node, StoreNode(self._folders, node, store), store.url, store.reason)

    def trouble(self) -> str:
        """Of stores of which no node is known yet; of the others each node says it."""
        unknown = [one for one in self._folders.stores if not one.is_listed]
        return "; ".join(one.reason or f"{one.url} is being listed" for one in unknown)
