"""nodescope sources: what this machine offers, what it costs, what is missing and why."""

import argparse
import sys

from nodescope.base.quantity import render_seconds
from nodescope.commands.sample import sample_for
from nodescope.commands.shared.options import add_json, add_settings
from nodescope.commands.text.terminal import paint, render_table
from nodescope.publish.annotation import Annotator
from nodescope.serve.json_text import render_json
from nodescope.wiring import Parts, read_permissions

EXAMPLE = """example:
  nodescope sources
  nodescope sources --json | python3 -m json.tool
"""
COLOURS = {"ok": "green", "absent": "dim", "failed": "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_settings(parser)
    add_json(parser)
    parser.add_argument(
        "--seconds", type=float, default=2.0, metavar="N", help="how long to look; 2 unless given"
    )


def run(options: argparse.Namespace) -> int:
    parts = sample_for(options, "error")
    status = parts.sampler.status()
    ticks = max(1, status.counters.ticks)
    costs = {name: status.counters.cost_seconds[name] / ticks for name in status.outcomes}
    rows = sorted(status.outcomes.items())
    annotations = describe_annotations(parts)
    if options.json:
        content = [
            {
                "source": name,
                "state": outcome.state,
                "reason": outcome.reason,
                "note": outcome.note,
                "cost_seconds_per_tick": costs[name],
            }
            for name, outcome in rows
        ]
        whole = {
            "sources": content,
            "annotations": annotations,
            "permissions": read_permissions(),
            "reader": parts.agent.reader,
        }
        sys.stdout.buffer.write(render_json(whole) + b"\n")
        return 0
    table = [
        (
            name,
            paint(outcome.state, COLOURS[outcome.state]),
            outcome.reason or join_words(f"{render_seconds(costs[name])} of CPU a tick", outcome.note),
        )
        for name, outcome in rows
    ]
    sys.stdout.write(render_table(("source", "state", "cost, or why not"), table))
    sys.stdout.write(f"\nannotations: {annotations}\nfiles are read by {parts.agent.reader}\n")
    return 0


def describe_annotations(parts: Parts) -> str:
    """Whether an agent could write this node's annotations, as the API server says."""
    if parts.annotator is None:
        return "none are written: no account at an API server, or --annotate names none"
    return "; ".join(describe_annotator(one) for one in parts.annotator.annotators)


def describe_annotator(annotator: Annotator) -> str:
    refusal = annotator.rehearse()
    keys = " ".join(content.key for content in annotator.contents)
    return f"refused: {refusal}" if refusal else f"{keys} may be written to {annotator.place.name}"


def join_words(*words: str) -> str:
    return "; ".join(word for word in words if word)
