"""nodescope settings: every setting, its value, and where it came from."""

import argparse
import dataclasses
import os
import sys

from nodescope.commands.shared.options import add_json, add_settings, gather_flags
from nodescope.commands.text.terminal import render_table
from nodescope.serve.json_text import render_json
from nodescope.wiring import read_settings

EXAMPLE = """example:
  NODESCOPE_RING_SECONDS=5m nodescope settings
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_settings(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    loaded = read_settings(gather_flags(options), options.config, os.environ)
    values = dataclasses.asdict(loaded.settings)
    if options.json:
        content = {key: {"value": value, "origin": loaded.origins[key]} for key, value in values.items()}
        sys.stdout.buffer.write(render_json(content) + b"\n")
        return 0
    rows = [(key, show(value), loaded.origins[key]) for key, value in values.items()]
    sys.stdout.write(render_table(("setting", "value", "from"), rows))
    return 0


def show(value: object) -> str:
    if value is None or value in ("", ()):
        return "-"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
