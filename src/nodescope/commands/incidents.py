"""nodescope incidents: what went wrong in a span, who did it, and whom it hit."""

import argparse
import sys
from typing import TYPE_CHECKING

from nodescope.base.errors import RequestRejected
from nodescope.base.time_range import TimeRange
from nodescope.commands.shared.options import add_json, add_paths, add_span, read_span

if TYPE_CHECKING:
    from nodescope.use.answers.incidents.incident import IncidentList
    from nodescope.use.answers.snapshots import View

EXAMPLE = """example:
  nodescope incidents ~/.local/state/nodescope
  nodescope incidents demo --from -2h --to -1h
  nodescope incidents demo --container catalog

At most three incidents for each node: the cause, whom it hit, since when, and how sure that is.
"""
USUAL_MS = 3_600_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_paths(parser)
    parser.add_argument("--container", metavar="C", help="only what concerns this workload, pod or container")
    add_span(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from nodescope.commands.shared.archive import open_view
    from nodescope.serve.json_text import render_json
    from nodescope.use.answers.incidents.answer import list_incidents
    from nodescope.use.answers.incidents.json_form import render_incidents

    view = open_view(options.path)
    found = list_incidents(view, choose_span(view, options), choose_ids(view, options.container))
    if options.json:
        sys.stdout.buffer.write(render_json(render_incidents(found)) + b"\n")
        return 0
    for one in found:
        sys.stdout.write(render_text(one, is_alone=len(found) == 1))
    return 0


def choose_span(view: "View", options: argparse.Namespace) -> TimeRange:
    """The last hour there is unless given."""
    newest_ms, oldest_ms = view.snapshot.to_ms, view.snapshot.from_ms
    if newest_ms is None or oldest_ms is None:
        raise RequestRejected(f"{options.path[0]}: there is no data here yet")
    start_ms, end_ms = read_span(options, newest_ms)
    to_ms = newest_ms if end_ms is None else end_ms
    from_ms = max(oldest_ms, to_ms - USUAL_MS) if start_ms is None else start_ms
    if from_ms >= to_ms:
        raise RequestRejected("the span ends before it begins; swap --from and --to")
    return TimeRange(from_ms, to_ms)


def choose_ids(view: "View", text: str | None) -> set[str] | None:
    from nodescope.commands.containers import render_ambiguous
    from nodescope.use.answers.containers import ContainerAmbiguous, ContainerUnknown
    from nodescope.use.answers.workloads import find_target

    if not text:
        return None
    try:
        return {life.id for life in find_target(view.lives(), text).lives}
    except ContainerAmbiguous as error:
        raise RequestRejected(render_ambiguous(error)) from None
    except ContainerUnknown as error:
        near = error.nearest()
        hint = f'; did you mean "{near}"?' if near else ""
        raise RequestRejected(f'no container "{text}"{hint} (nodescope containers lists all)') from None


def render_text(found: "IncidentList", *, is_alone: bool) -> str:
    from nodescope.use.answers.incidents.sentence import render_incident, render_list

    head = "" if is_alone else f"{found.node}: "
    lines = [render_list(found)] if not found.incidents else []
    for one in found.incidents:
        sure = "" if one.confidence is None else f" (confidence {one.confidence:.2f})"
        lines.append(f"{render_incident(one)}{sure}")
    lines += [f"No news: {line}." for line in found.background]
    lines += [f"Not seen: {line}." for line in found.unseen]
    return "".join(f"{head}{line}\n" for line in lines)
