"""nodescope metrics: what was measured, under its plain and its raw names."""

import argparse
import sys

from nodescope.base.errors import RequestRejected
from nodescope.base.metric import Metric
from nodescope.base.metric_names import ROWS
from nodescope.commands.containers import say_refusals
from nodescope.commands.options import add_json, add_paths
from nodescope.commands.text.terminal import render_table
from nodescope.read.files.catalog import read_catalog
from nodescope.read.query.resolve import resolve_plain
from nodescope.serve.json_text import render_json

EXAMPLE = """example:
  nodescope metrics demo
  nodescope metrics demo --json | python3 -m json.tool
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_paths(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    catalog = read_catalog(options.path)
    say_refusals(catalog)
    known = catalog.metrics
    plain = list_plain(known)
    if options.json:
        content = [
            *({"name": name, "kind": "plain", "unit": unit, "help": words} for name, unit, words in plain),
            *(
                {"name": row.name, "kind": row.kind, "unit": row.unit, "scale": row.scale, "help": row.help}
                for row in known.values()
            ),
        ]
        sys.stdout.buffer.write(render_json(content) + b"\n")
        return 0
    rows = [(name, "plain", unit, words) for name, unit, words in plain]
    rows += [(row.name, row.kind, row.unit or "count", row.help) for row in known.values()]
    sys.stdout.write(render_table(("metric", "kind", "unit", "what it is"), rows))
    return 0


def list_plain(known: dict[str, Metric]) -> list[tuple[str, str, str]]:
    """The plain names that this archive can answer."""
    found = []
    for row in ROWS:
        try:
            resolve_plain(row, known)
        except RequestRejected:
            continue
        found.append((row.name, row.unit, row.help))
    return found
