"""nodescope metrics: what was measured, under its plain and its raw names."""

import argparse
import sys
from typing import TYPE_CHECKING

from nodescope.commands.shared.archive import open_view
from nodescope.commands.shared.options import add_json, add_paths
from nodescope.commands.text.terminal import render_table
from nodescope.serve.json_text import render_json

if TYPE_CHECKING:
    from nodescope.use.answers.metrics import MetricRow

EXAMPLE = """example:
  nodescope metrics demo
  nodescope metrics demo --json | python3 -m json.tool
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_paths(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from nodescope.use.answers.metrics import list_metrics

    found = list_metrics(open_view(options.path).nodes)
    if options.json:
        sys.stdout.buffer.write(render_json([to_json(row) for row in found]) + b"\n")
        return 0
    rows = [(row.name, kind_of(row), row.unit, row.help) for row in found]
    sys.stdout.write(render_table(("metric", "kind", "unit", "what it is"), rows))
    return 0


def kind_of(row: "MetricRow") -> str:
    return "plain" if row.is_plain else row.kind


def to_json(row: "MetricRow") -> dict[str, object]:
    scale = {} if row.scale is None else {"scale": row.scale}
    return {"name": row.name, "kind": kind_of(row), "unit": row.unit, **scale, "help": row.help}
