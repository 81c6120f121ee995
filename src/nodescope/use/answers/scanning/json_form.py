"""A scan as the viewer's API writes it, and read back from a viewer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nodescope.base.text import clean_name, clean_text
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
    """What a viewer says about tenants is cleaned, whatever the viewer did."""
    return [clean_scan(FORM.parse(one)) for one in content.get("nodes") or ()]


def clean_scan(found: NodeScan) -> NodeScan:
    return replace(
        found,
        node=clean_text(found.node),
        study=clean_text(found.study),
        metric=clean_text(found.metric),
        rows=tuple(clean_row(row) for row in found.rows),
        unseen=tuple(clean_text(line) for line in found.unseen),
    )


def clean_row(row: ScanRow) -> ScanRow:
    return replace(
        row,
        node=clean_text(row.node),
        workload=clean_name(row.workload),
        container=clean_name(row.container),
        kind=clean_text(row.kind),
        sentence=clean_text(row.sentence, 300),
        unit=clean_text(row.unit),
    )


def rename_scan(found: NodeScan, node: str) -> NodeScan:
    """Under the name that the node has for who asks."""
    return replace(found, node=node, rows=tuple(replace(row, node=node) for row in found.rows))
