"""nodescope export: part of an archive as one file."""

import argparse
import sys
from pathlib import Path

from nodescope.base.clock import SystemClock
from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_bytes
from nodescope.commands.containers import find_ids, say_refusals
from nodescope.commands.shared.options import add_containers, add_paths, add_span, read_span

EXAMPLE = """example:
  nodescope export demo --out cpu.csv --metric cpu --container api --from -1h
  nodescope export demo --out all.parquet
  nodescope export demo --out incident.html --from -2h
"""
FORMATS = (".parquet", ".csv", ".html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_paths(parser)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="ends in .parquet, .csv or .html"
    )
    parser.add_argument(
        "--metric",
        action="append",
        metavar="M",
        help="plain or raw name; may be repeated; all raw ones unless given",
    )
    add_containers(parser)
    add_span(parser)


def run(options: argparse.Namespace) -> int:
    from nodescope.read.files.catalog import read_catalog
    from nodescope.read.query.export import write_derived, write_raw

    if options.out.suffix not in FORMATS:
        raise RequestRejected(
            f"--out {options.out} is not accepted; accepted: a name that ends in {' or '.join(FORMATS)}"
        )
    if options.out.suffix == ".html":
        return write_page(options)
    catalog = read_catalog(options.path)
    say_refusals(catalog.refusals, is_empty=not catalog.entries)
    # Relative times count from the newest sample: an archive may be old.
    now_ms = catalog.to_ms or SystemClock().wall_ns() // 1_000_000
    from_ms, to_ms = read_span(options, now_ms)
    ids = find_ids(catalog, options.container)
    if options.metric:
        rows = write_derived(catalog, options.out, options.metric, ids, from_ms, to_ms)
    else:
        rows = write_raw(catalog, options.out, ids, from_ms, to_ms)
    sys.stdout.write(f"{rows:,} rows in {options.out}\n")
    return 0


def write_page(options: argparse.Namespace) -> int:
    """One file that opens from disk, with the page, the data and the findings in it."""
    from nodescope.use.answers.refusal import Refused
    from nodescope.use.answers.snapshots import NodeFolders
    from nodescope.use.viewer.offline_page import make_page
    from nodescope.use.viewer.question import choose_lives, parse_span
    from nodescope.use.viewer.request import Viewer
    from nodescope.use.viewer.routes_facts import answer_instance

    viewer = Viewer(NodeFolders(options.path, SystemClock()))
    view = viewer.view()
    try:
        span = parse_span(view.snapshot, options.start or "", options.end or "", "")
        lives = tuple(choose_lives(view.lives(), options.container)) if options.container else None
        page = make_page(view, answer_instance(viewer), options.metric or [], lives, span)
    except Refused as error:
        raise RequestRejected(f"{error}; {error.hint}" if error.hint else str(error)) from error
    temporary = options.out.with_name(options.out.name + ".tmp")
    temporary.write_bytes(page.content)
    temporary.replace(options.out)
    sys.stdout.write(
        f"{options.out}: {render_bytes(len(page.content))}, {', '.join(page.metrics)} in {page.series} series "
        f"of up to {page.points} points, {page.findings} findings\n"
    )
    return 0
