"""nodescope sample: one tick to stdout, then exit."""

import argparse
import math
import os
import sys

from nodescope.base.log import set_up_logging
from nodescope.base.settings_load import read_settings
from nodescope.collect.run.call_runner import NOT_ASKED
from nodescope.commands.shared.options import add_settings, gather_flags
from nodescope.serve.json_text import render_json
from nodescope.wiring import Parts, build_parts

# pcm programs every core before its first row: some seconds on a large machine.
PATIENCE_SECONDS = 6.0
EXAMPLE = """example:
  nodescope sample | grep node_load1
  nodescope sample --format json --seconds 2 | python3 -m json.tool
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_settings(parser)
    parser.add_argument(
        "--format", choices=("prometheus", "json"), default="prometheus", help="prometheus unless given"
    )
    parser.add_argument(
        "--seconds", type=float, default=2.0, metavar="N", help="how long to look, for rates; 2 unless given"
    )


def run(options: argparse.Namespace) -> int:
    parts = sample_for(options, "warning")
    if options.format == "json":
        sys.stdout.buffer.write(render_json(to_json(parts)) + b"\n")
    else:
        sys.stdout.buffer.write(parts.scrape.render((), openmetrics=False).encode("utf-8", "replace"))
    return 0


def sample_for(options: argparse.Namespace, log_level: str) -> Parts:
    """The agent's parts by the command's settings, after --seconds of ticks."""
    loaded = read_settings(gather_flags(options), options.config, os.environ, {"log_level": log_level})
    set_up_logging(loaded.settings.log_level)
    parts = build_parts(loaded, environment=os.environ)
    run_ticks(parts, options.seconds)
    return parts


def run_ticks(parts: Parts, seconds: float) -> None:
    """Tick for so long, and at least twice: a rate needs two samples."""
    parts.sampler.start()
    started_ns = parts.clock.mono_ns()

    def is_done() -> bool:
        elapsed_seconds = (parts.clock.mono_ns() - started_ns) / 1e9
        if parts.sampler.counters.ticks < 2 or elapsed_seconds < seconds:
            return False
        is_answered = all(outcome.reason != NOT_ASKED for outcome in parts.sampler.outcomes.values())
        return is_answered or elapsed_seconds > seconds + PATIENCE_SECONDS

    while not is_done():
        parts.clock.wait_until(parts.clock.mono_ns() + 20_000_000, parts.sampler.stopping)
    parts.sampler.stop()


def to_json(parts: Parts) -> dict[str, object]:
    """Raw values by table and entity; what was not measured is left out, unlimited is a word."""
    newest = parts.ring.newest()
    outcomes = newest.outcomes.items() if newest else ()
    tables: dict[str, list[dict[str, object]]] = {}
    for name, moment in parts.ring.latest().items():
        block = moment.block
        tables[name] = [
            {
                "scope": entity.scope,
                "labels": {**dict(entity.labels), **dict(entity.details)},
                "values": {
                    metric.name: "unlimited" if math.isinf(value) else value
                    for metric, value in zip(block.table.metrics, row)
                    if not math.isnan(value)
                },
            }
            for entity, row in zip(block.entities, block.values.tolist())
        ]
    states = {name: {"state": outcome.state, "reason": outcome.reason} for name, outcome in outcomes}
    return {"node": parts.node, "outcomes": states, "tables": tables}
