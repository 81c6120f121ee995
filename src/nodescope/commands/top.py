"""nodescope top: a live table of containers in the terminal."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_count, render_seconds
from nodescope.base.text import clean_text
from nodescope.base.time_range import render_moment
from nodescope.commands.screen.top_place import TopLook, choose_place
from nodescope.commands.shared.options import add_interval, read_interval
from nodescope.commands.text.top_table import FIGURES, TopRow, render_rows

EXAMPLE = """example:
  nodescope top
  nodescope top http://127.0.0.1:9100 --sort memory
  nodescope top demo --once --json
  nodescope top demo --by-workload --sort memory --range 1h

keys on a terminal:
  q quit, / filter, Enter curves of the chosen container, up and down choose another,
  sort by c cpu, m memory, l share of the limit, t throttled, r restarts, w memory wait, p cpu wait, f cache, n name
"""
SORTS = tuple(metric for _, metric, _ in FIGURES)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "place",
        nargs="?",
        metavar="PATH|URL",
        help="a data folder, an agent, or a viewer; this machine's agent unless given, else its data folder",
    )
    parser.add_argument("--sort", choices=SORTS, default="cpu", help="cpu unless given")
    add_interval(parser, "2s")
    parser.add_argument("--once", action="store_true", help="one table, then exit; also when piped")
    parser.add_argument(
        "--by-workload", action="store_true", help="one line a workload: what all its pods used over --range"
    )
    parser.add_argument("--range", default="1h", metavar="R", help="of --by-workload; 15m, 1h, 1d, ...")
    parser.add_argument("--json", action="store_true", help="one table as JSON, for scripts")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="the token of the agent or viewer")


def run(options: argparse.Namespace) -> int:
    interval_seconds = read_interval(options)
    try:
        token = options.token_file.read_text().strip() if options.token_file else ""
    except OSError as error:
        raise RequestRejected(f"--token-file {options.token_file}: {error.strerror}") from error
    look = choose_place(options.place, token)
    if options.by_workload:
        sys.stdout.write(render_workloads(look().read_workloads(options.sort, options.range), options))
        return 0
    if options.json:
        sys.stdout.write(json.dumps(to_json(look(), options.sort), ensure_ascii=False, indent=1) + "\n")
        return 0
    # A terminal that cannot move its cursor has no screen.
    if options.once or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        sys.stdout.write(render(look(), options.sort))
        return 0
    # Needs a terminal's modes, which not every system has.
    from nodescope.commands.screen.top_screen import run_screen

    return run_screen(look, render_age, options.sort, interval_seconds)


# -- the table ----------------------------------------------------------------------


def gather(look: TopLook, sort: str) -> list[TopRow]:
    """One row a container with its newest values, the highest first; what was not measured is None."""
    rows: dict[str, TopRow] = {}
    for _, metric, _ in FIGURES:
        table = look.read(metric)
        for one in table.rows if table else ():
            row = rows.setdefault(one.life.id, TopRow(one, {}))
            row.values[metric] = one.figure.last if one.figure else None
    return sorted(rows.values(), key=lambda row: (-(row.values.get(sort) or 0.0), row.life.name))


def render(look: TopLook, sort: str) -> str:
    """All containers of the last seconds, ended ones as well."""
    rows = gather(look, sort)
    nodes = sorted({clean_text(row.life.node) for row in rows})
    title = (
        f"{', '.join(nodes) or 'nobody'}: {render_count(len(rows), 'container')} by {sort}{render_age(look)}"
    )
    return f"{title}\n{render_rows(rows, sort, None)}"


def render_workloads(rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """As sentences: the same ones that the viewer and the MCP server have."""
    if options.json:
        return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"
    lines = [f"{place}. {clean_text(str(row['sentence']), 500)}\n" for place, row in enumerate(rows, 1)]
    return "".join(lines) or f"no workload had a sample of {options.sort} in the last {options.range}\n"


def render_age(look: TopLook) -> str:
    if look.newest_ms is None:
        return ""
    age = (look.now_ms - look.newest_ms) / 1000
    return f", {render_seconds(age)} ago" if age > 3 else f", {render_moment(look.newest_ms)}"


def to_json(look: TopLook, sort: str) -> list[dict[str, Any]]:
    from nodescope.use.answers.wire import render_container

    kept = ("id", "name", "namespace", "pod", "container", "node", "qos_class", "state")
    rows = [(render_container(row.container), row.values) for row in gather(look, sort)]
    return [{**{key: content[key] for key in kept}, **values} for content, values in rows]
