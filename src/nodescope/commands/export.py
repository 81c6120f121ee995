"""nodescope export: part of an archive as one file."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.base.clock import SystemClock
from nodescope.base.errors import ArchiveDamaged, RequestRejected
from nodescope.base.quantity import render_bytes
from nodescope.base.time_range import TimeRange
from nodescope.commands.containers import find_lives
from nodescope.commands.shared.archive import check_metric, choose_span, open_view
from nodescope.commands.shared.options import add_containers, add_paths, add_span
from nodescope.keep.label_columns import ID_COLUMNS
from nodescope.use.answers.containers import Life

if TYPE_CHECKING:
    # Arrow and DuckDB are loaded when a file is written, not for --help.
    from nodescope.use.answers.snapshots import View

EXAMPLE = """example:
  nodescope export demo --out cpu.csv --metric cpu --container api --from -1h
  nodescope export demo --out all.parquet
  nodescope export demo --out incident.html --from -2h
  nodescope export demo --out trace.pftrace --from -10m
"""
FORMATS = (".parquet", ".csv", ".html", ".pftrace")
NO_DATA = "there is no data in this range"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_paths(parser)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="ends in .parquet, .csv, .html or .pftrace"
    )
    parser.add_argument(
        "--metric",
        action="append",
        metavar="M",
        help="plain or raw name; may be repeated; all raw ones unless given",
    )
    parser.add_argument(
        "--time-zero",
        metavar="NS",
        help="of a .pftrace: Unix time in ns that its times count from, as another trace has it; 0 unless given",
    )
    add_containers(parser)
    add_span(parser)


def run(options: argparse.Namespace) -> int:
    if options.out.suffix not in FORMATS:
        raise RequestRejected(
            f"--out {options.out} is not accepted; accepted: a name that ends in {' or '.join(FORMATS)}"
        )
    if options.time_zero is not None and options.out.suffix != ".pftrace":
        raise RequestRejected("--time-zero is of a .pftrace only")
    if options.out.suffix == ".html":
        return write_page(options)
    if options.out.suffix == ".pftrace":
        return write_trace(options)
    view = open_view(options.path)
    span = choose_span(view, options, options.path)
    lives = find_lives(view.lives(), options.container)
    write = write_metrics if options.metric else write_rows
    rows = write(view, options, lives, span)
    sys.stdout.write(f"{rows:,} rows in {options.out}\n")
    return 0


def write_rows(
    view: "View", options: argparse.Namespace, lives: tuple[Life, ...] | None, span: TimeRange
) -> int:
    """The files' own rows; what only the log has so far is not among them."""
    from nodescope.read.query.export import write_raw

    entries = [entry for node in view.nodes for entry in node.catalog.select(span.from_ms, span.to_ms)]
    if not entries:
        raise RequestRejected(NO_DATA)
    for damage in filter(None, (entry.find_damage() for entry in entries)):
        raise ArchiveDamaged(f"{damage}; export a range without it, or repair it with nodescope consolidate")
    files = [entry.path for entry in sorted(entries, key=lambda entry: (entry.from_ms, entry.path.name))]
    return write_raw(files, options.out, None if lives is None else list_ids(lives), span)


def list_ids(lives: Sequence[Life]) -> dict[str, list[str]]:
    """By label column: that of containers, or of the services of a node without any."""
    found: dict[str, list[str]] = {}
    for life in lives:
        (column,) = ID_COLUMNS[life.scope]
        found.setdefault(column, []).append(life.subject.label(column) or "")
    return found


def write_metrics(
    view: "View", options: argparse.Namespace, lives: tuple[Life, ...] | None, span: TimeRange
) -> int:
    """Samples under the metrics' names, in their units."""
    from nodescope.use.answers.refusal import Refused
    from nodescope.use.viewer.export_data import Extract, write_extract

    for metric in options.metric:
        check_metric(view, metric)
    temporary = options.out.with_name(options.out.name + ".tmp" + options.out.suffix)
    try:
        rows = write_extract(view, Extract(options.metric, lives, span, is_bounded=False), temporary)
        temporary.replace(options.out)
    except Refused:
        raise RequestRejected(NO_DATA) from None
    finally:
        temporary.unlink(missing_ok=True)
    return rows


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


def write_trace(options: argparse.Namespace) -> int:
    """What Perfetto's viewer opens: counters, lives and events on one time axis."""
    from nodescope.use.answers.refusal import Refused
    from nodescope.use.trace.span_trace import SpanTrace, TraceRequest
    from nodescope.use.trace.trace_file import TraceFile

    zero_ns = parse_zero(options.time_zero)
    view = open_view(options.path)
    span = choose_span(view, options, options.path)
    lives = find_lives(view.lives(), options.container)
    temporary = options.out.with_name(options.out.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            asked = TraceRequest(span, options.metric or (), lives)
            counts = SpanTrace(view, asked, TraceFile(file, zero_ns)).write()
        if not counts.samples:
            raise RequestRejected(NO_DATA)
        temporary.replace(options.out)
    except Refused as error:
        raise RequestRejected(f"{error}; {error.hint}" if error.hint else str(error)) from error
    finally:
        temporary.unlink(missing_ok=True)
    size = render_bytes(options.out.stat().st_size)
    sys.stdout.write(
        f"{options.out}: {size}, {counts.samples:,} samples and {counts.events:,} events on {counts.tracks:,} tracks; "
        "open it at https://ui.perfetto.dev\n"
    )
    return 0


def parse_zero(text: str | None) -> int:
    if text is None:
        return 0
    if not text.isdigit() or len(text) > 19:
        raise RequestRejected(f"--time-zero {text} is not accepted; accepted: Unix time in nanoseconds")
    return int(text)
