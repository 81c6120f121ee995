"""nodescope rightsize: requests and limits that fit, what they save, and the risk."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nodescope.base.quantity import render_quantity
from nodescope.commands.incidents import choose_ids
from nodescope.commands.shared.archive import choose_span, open_view
from nodescope.commands.shared.options import add_json, add_paths, add_span
from nodescope.commands.text.terminal import render_table

if TYPE_CHECKING:
    from nodescope.use.answers.rightsizing.advice import SizeAdvice

EXAMPLE = """example:
  nodescope rightsize ~/.local/state/nodescope
  nodescope rightsize DIR --container catalog --yaml > patch.yaml
  kubectl apply --server-side --force-conflicts -f patch.yaml

For each container of each workload: what it should request and be limited to, from the last seven days.
A container that was seen for less than a day is answered with "not yet".
"""
HEAD = ("workload", "container", "replicas", "cpu request", "cpu limit", "memory request", "memory limit")
SIZES = (
    ("cpu_request", "cores"),
    ("cpu_limit", "cores"),
    ("memory_request", "bytes"),
    ("memory_limit", "bytes"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_paths(parser)
    parser.add_argument("--container", metavar="C", help="only this workload, pod or container")
    add_span(parser, "-7d")
    add_json(parser)
    parser.add_argument("--yaml", action="store_true", help="a patch for the workloads")


def run(options: argparse.Namespace) -> int:
    from nodescope.serve.json_text import render_json
    from nodescope.use.answers.rightsizing.json_form import advise_all, render_sizes
    from nodescope.use.answers.rightsizing.measure import read_needs
    from nodescope.use.answers.rightsizing.patch import render_patch

    view = open_view(options.path)
    span = choose_span(view, options, options.path)
    found = read_needs(view, span, choose_ids(view, options.container))
    if options.json:
        sys.stdout.buffer.write(render_json(render_sizes(found)) + b"\n")
    elif options.yaml:
        sys.stdout.write(render_patch(advise_all(found)))
    else:
        sys.stdout.write(render_text(advise_all(found)))
        sys.stdout.writelines(f"Not seen: {line}.\n" for one in found for line in one.unseen)
    return 0


def render_text(advices: Sequence["SizeAdvice"]) -> str:
    """The sentence, the table of what changes (`4 -> 0.45 cores`), then the risks."""
    from nodescope.use.answers.rightsizing.advice import SIZED
    from nodescope.use.answers.rightsizing.sentence import name_need, render_risk, render_total

    sized = [one for one in advices if one.state == SIZED]
    table = f"\n{render_table(HEAD, [make_row(one) for one in sized])}\n" if sized else ""
    risks = [f"{name_need(one.need)}: {render_risk(one)}\n" for one in sized]
    return f"{render_total(advices)}\n{table}{''.join(risks)}"


def make_row(advice: "SizeAdvice") -> tuple[str, ...]:
    need = advice.need
    full = f"{need.namespace}/{need.workload}" if need.namespace else need.workload
    cells = (render_cell(getattr(need, name), getattr(advice, name), unit) for name, unit in SIZES)
    return (full, need.container or "-", str(need.replicas), *cells)


def render_cell(now: float | None, then: float | None, unit: str) -> str:
    before, after = ("-" if value is None else render_quantity(value, unit) for value in (now, then))
    return before if then is None else f"{before} -> {after}"
