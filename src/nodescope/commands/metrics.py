"""nodescope metrics: what was measured, under its plain and its raw names."""

import argparse
import sys

from nodescope.commands.containers import say_refusals
from nodescope.commands.shared.options import add_json, add_paths
from nodescope.commands.text.terminal import render_table
from nodescope.read.files.catalog import read_catalog
from nodescope.read.query.resolve import resolve_all
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
    say_refusals(catalog.refusals, is_empty=not catalog.entries)
    known = catalog.metrics
    plain = [(row.name, row.unit, row.help) for row, _ in resolve_all(known)]
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
