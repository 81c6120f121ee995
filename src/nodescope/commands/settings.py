"""nodescope settings: every setting, its value, where it came from, and what it means."""

import argparse
import dataclasses
import os
import sys

from nodescope.base.settings_load import read_settings, show_value
from nodescope.commands.shared.meanings import read_first_sentence
from nodescope.commands.shared.options import add_json, add_settings, gather_flags
from nodescope.commands.text.terminal import render_table
from nodescope.serve.json_text import render_json

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
        content = {
            key: {"value": value, "origin": loaded.origins[key], "meaning": read_first_sentence(key)}
            for key, value in values.items()
        }
        sys.stdout.buffer.write(render_json(content) + b"\n")
        return 0
    rows = [
        (key, show_value(key, value), loaded.origins[key], read_first_sentence(key))
        for key, value in values.items()
    ]
    sys.stdout.write(render_table(("setting", "value", "from", "meaning"), rows))
    return 0
