"""nodescope export: part of an archive as one file."""

import argparse
import sys
from pathlib import Path

from nodescope.base.clock import SystemClock
from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_bytes
from nodescope.base.time_range import parse_moment
from nodescope.commands.containers import say_refusals

EXAMPLE = """example:
  nodescope export demo --out cpu.csv --metric cpu --container api --from -1h
  nodescope export demo --out all.parquet
  nodescope export demo --out incident.html --from -2h
"""
FORMATS = (".parquet", ".csv", ".html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("path", type=Path, nargs="+", metavar="PATH", help="a data folder, or Parquet files")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="ends in .parquet, .csv or .html"
    )
    parser.add_argument(
        "--metric",
        action="append",
        metavar="M",
        help="plain or raw name; may be repeated; all raw ones unless given",
    )
    parser.add_argument(
        "--container", action="append", metavar="C", help="id, its beginning, or a name; may be repeated"
    )
    parser.add_argument("--from", dest="start", metavar="T", help="ISO 8601, epoch seconds, or -15m")
    parser.add_argument("--to", dest="end", metavar="T", help="ISO 8601, epoch seconds, or -15m")


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
    say_refusals(catalog)
    # Relative times count from the newest sample: an archive may be old.
    now_ms = catalog.to_ms or SystemClock().wall_ns() // 1_000_000
    from_ms = parse_moment(options.start, now_ms) if options.start else None
    to_ms = parse_moment(options.end, now_ms) if options.end else None
    ids = (
        [one for text in options.container for one in catalog.resolve_lives(text)]
        if options.container
        else None
    )
    if options.metric:
        rows = write_derived(catalog, options.out, options.metric, ids, from_ms, to_ms)
    else:
        rows = write_raw(catalog, options.out, ids, from_ms, to_ms)
    sys.stdout.write(f"{rows:,} rows in {options.out}\n")
    return 0


def write_page(options: argparse.Namespace) -> int:
    """One file that opens from disk, with the page, the data and the findings in it."""
    from nodescope.read.query.engine import Engine
    from nodescope.use.viewer.offline_page import make_booklet
    from nodescope.use.viewer.question import choose_members, members_of, parse_span
    from nodescope.use.viewer.refusal import Refused
    from nodescope.use.viewer.request import Viewer
    from nodescope.use.viewer.routes_facts import answer_instance
    from nodescope.use.viewer.snapshots import Shelf

    viewer = Viewer(Shelf(options.path, SystemClock()), Engine())
    snapshot = viewer.shelf.snapshot()
    try:
        span = parse_span(snapshot, options.start or "", options.end or "", "")
        members = (
            choose_members(members_of(snapshot, snapshot.nodes), options.container)
            if options.container
            else None
        )
        booklet = make_booklet(
            viewer.engine,
            snapshot,
            snapshot.nodes,
            answer_instance(viewer),
            options.metric or [],
            members,
            span,
        )
    except Refused as error:
        raise RequestRejected(f"{error}; {error.hint}" if error.hint else str(error)) from error
    temporary = options.out.with_name(options.out.name + ".tmp")
    temporary.write_bytes(booklet.content)
    temporary.replace(options.out)
    sys.stdout.write(
        f"{options.out}: {render_bytes(len(booklet.content))}, {', '.join(booklet.metrics)} in {booklet.series} series "
        f"of up to {booklet.points} points, {booklet.findings} findings\n"
    )
    return 0
