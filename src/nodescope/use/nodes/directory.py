"""
Who there is to ask: nodes by name, each with what answers for it and its address.

Whoever asks says what answers for a node (its `backend`): the MCP server
puts its questions to one kind, the cluster's page to another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Asked_co = TypeVar("Asked_co", covariant=True)


# No slots: a generic class that is frozen and slotted cannot be made through its alias before Python 3.12.
@dataclass(frozen=True)
class NodeEntry(Generic[Asked_co]):
    """A node as the directory knows it."""

    node: str
    backend: Asked_co
    address: str
    reason: str = ""
    """Why it is not asked; empty when it is."""


class NodeDirectory(Protocol[Asked_co]):
    """Who there is; it may change at any time."""

    def entries(self) -> Mapping[str, NodeEntry[Asked_co]]: ...

    def resolve(self, node: str) -> NodeEntry[Asked_co] | None:
        """Looked up anew, after a failure; None when the node is gone."""
        return self.entries().get(node)

    def trouble(self) -> str:
        """Why the list itself cannot be trusted; empty when it can."""
        return ""

    def server_ahead(self) -> float | None:
        """How many seconds the API server's clock is ahead of this machine's; None where there is none."""
        return None


class StaticDirectory(NodeDirectory[Asked_co]):
    """Viewers whose addresses were given."""

    def __init__(self, entries: Mapping[str, NodeEntry[Asked_co]]) -> None:
        self._entries = dict(entries)

    def entries(self) -> Mapping[str, NodeEntry[Asked_co]]:
        return self._entries


class JoinedDirectory(NodeDirectory[Asked_co]):
    """Several directories as one; of one name the first counts."""

    def __init__(self, directories: Sequence[NodeDirectory[Asked_co]]) -> None:
        self._directories = tuple(directories)

    def entries(self) -> Mapping[str, NodeEntry[Asked_co]]:
        parts = (directory.entries() for directory in reversed(self._directories))
        return {node: entry for part in parts for node, entry in part.items()}

    def resolve(self, node: str) -> NodeEntry[Asked_co] | None:
        return next((entry for directory in self._directories if (entry := directory.resolve(node))), None)

    def trouble(self) -> str:
        return "; ".join(trouble for directory in self._directories if (trouble := directory.trouble()))

    def server_ahead(self) -> float | None:
        found = (directory.server_ahead() for directory in self._directories)
        return next((seconds for seconds in found if seconds is not None), None)
