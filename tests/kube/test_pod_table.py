"""Pods as tables: where they are, without what is in them."""

from typing import Any

import pytest

from nodescope.base.errors import KubernetesAway
from nodescope.kube.pod_table import TableRows

COLUMNS = [{"name": name} for name in ("Name", "Ready", "Status", "IP", "Node")]


def make_table(name: str, node: str, columns: list[Any] | None = None) -> dict[str, Any]:
    about = {"name": name, "resourceVersion": "7", "managedFields": [{"fieldsV1": "long"}]}
    cells = [name, "1/1", "Running", "10.0.0.1", node]
    rows = [{"cells": cells, "object": {"metadata": about}}]
    return {"kind": "Table", "metadata": {"resourceVersion": "9"}, "columnDefinitions": columns, "rows": rows}


def test_a_row_has_the_form_of_a_pod() -> None:
    page = TableRows().parse_page(make_table("web", "n1", COLUMNS))
    assert page["metadata"] == {"resourceVersion": "9"}
    assert page["items"] == [
        {
            "metadata": {"name": "web", "resourceVersion": "7"},
            "spec": {"nodeName": "n1"},
            "status": {"phase": "Running", "podIP": "10.0.0.1"},
        }
    ]


def test_a_watch_names_its_columns_once() -> None:
    """And an event that is no table, such as an error, stays as it is."""
    rows = TableRows()
    first = rows.parse_event({"type": "ADDED", "object": make_table("web", "<none>", COLUMNS)})
    second = rows.parse_event({"type": "MODIFIED", "object": make_table("web", "n1")})
    assert (first["object"]["spec"], second["object"]["spec"]) == ({"nodeName": ""}, {"nodeName": "n1"})
    error = {"type": "ERROR", "object": {"kind": "Status", "code": 410}}
    assert rows.parse_event(error) == error


def test_columns_that_nobody_named_are_empty() -> None:
    (item,) = TableRows().parse_page(make_table("web", "n1"))["items"]
    assert item["spec"] == {"nodeName": ""}


def test_a_server_that_sends_no_table_is_told() -> None:
    with pytest.raises(KubernetesAway, match="PodList"):
        TableRows().parse_page({"kind": "PodList", "items": []})
