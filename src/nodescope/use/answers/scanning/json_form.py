"""A scan as the viewer's API writes it, and read back from a viewer."""

from collections.abc import Mapping, Sequence
from typing import Any

from nodescope.use.answers.foreign_record import parse_nodes
from nodescope.use.answers.scanning.scan import NodeScan, ScanRow, render_row, render_scan
from nodescope.use.answers.wire import Json, make_form

FORM = make_form(NodeScan)
ROW = make_form(ScanRow)


def render_scans(found: Sequence[NodeScan]) -> Json:
    return {"sentence": render_scan(found), "nodes": [render_node(one) for one in found]}


def render_node(found: NodeScan) -> Json:
    rows = [{**ROW.render(row), "told": render_row(row)} for row in found.rows]
    return {**FORM.render(found), "rows": rows}


def parse_scans(content: Mapping[str, Any]) -> list[NodeScan]:
    return parse_nodes(FORM, content)
