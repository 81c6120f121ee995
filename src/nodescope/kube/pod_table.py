"""
Pods without their insides: name, labels, node, address, state.

A pod's node is in its spec, which a list of metadata does not have. But the API
server also renders pods as the table that kubectl prints, with the metadata
beside each row: node and address are columns of it, and neither the environment
of a container nor its command is ever sent.

    GET /api/v1/pods?includeObject=Metadata
    Accept: application/json;as=Table;g=meta.k8s.io;v=v1
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodescope.base.errors import KubernetesAway
from nodescope.kube.account import KubeAccount
from nodescope.kube.client import Client

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
# To be part of the query of every list and watch.
WITH_METADATA = {"includeObject": "Metadata"}
# How the table writes what is not there.
NONE = "<none>"

Item = dict[str, Any]


class TableRows:
    """Gives each row of a table the form of a pod; remembers the columns, which a watch names once."""

    def __init__(self) -> None:
        self._columns: dict[str, int] = {}

    def parse_page(self, page: Item) -> Item:
        return {"metadata": page.get("metadata") or {}, "items": list(self._parse(page))}

    def parse_event(self, event: Item) -> Item:
        """An event that is about no table, such as an error, stays as it is."""
        item = event.get("object") or {}
        if item.get("kind") == "Table":
            return {**event, "object": next(self._parse(item), {"metadata": item.get("metadata") or {}})}
        return event

    def _parse(self, table: Item) -> Iterator[Item]:
        if table.get("kind") != "Table":
            raise KubernetesAway(
                f"asked for a table of pods, the server sent {str(table.get('kind'))[:40]!r}"
            )
        if columns := table.get("columnDefinitions"):
            self._columns = {str(one.get("name")): number for number, one in enumerate(columns)}
        for row in table.get("rows") or ():
            yield self._build(row.get("cells") or [], (row.get("object") or {}).get("metadata") or {})

    def _build(self, cells: list[Any], about: Item) -> Item:
        about.pop("managedFields", None)
        return {
            "metadata": about,
            "spec": {"nodeName": self._cell(cells, "Node")},
            "status": {"phase": self._cell(cells, "Status"), "podIP": self._cell(cells, "IP")},
        }

    def _cell(self, cells: list[Any], column: str) -> str:
        place = self._columns.get(column, len(cells))
        text = str(cells[place]) if place < len(cells) else ""
        return "" if text == NONE else text


class PodTableClient(Client):
    """Lists and watches pods as tables, and gives each row the form of a pod."""

    def __init__(self, account: KubeAccount) -> None:
        super().__init__(account)
        self._rows = TableRows()

    def read(self, path: str, query: Mapping[str, str] | None = None) -> Item:
        return self._rows.parse_page(super().read(path, query))

    def stream(self, path: str, query: Mapping[str, str], silence_seconds: float) -> Iterator[Item]:
        return map(self._rows.parse_event, super().stream(path, query, silence_seconds))

    def _headers(self, query: Mapping[str, str]) -> dict[str, str]:
        return {**super()._headers(query), "Accept": TABLE}
