"""nodescope settings: every setting, its value, where it came from, and what it means."""

import argparse
import dataclasses
import os
import sys

from nodescope.base.quantity import render_bytes, render_seconds
from nodescope.base.settings_load import read_settings
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
        (key, show(key, value), loaded.origins[key], read_first_sentence(key))
        for key, value in values.items()
    ]
    sys.stdout.write(render_table(("setting", "value", "from", "meaning"), rows))
    return 0


def show(key: str, value: object) -> str:
    """As a person writes it; what is shown may be given back as it is."""
    if value is None or value in ("", ()):
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, (int, float)):
        return show_number(key, value)
    return str(value)


def show_number(key: str, value: float) -> str:
    if key.endswith("_bytes"):
        return render_bytes(value)
    if key.endswith("_seconds"):
        return render_seconds(value)
    if key.endswith("_ratio"):
        return f"{100 * value:g}%"
    return f"{value:g} days" if key.endswith("_days") else f"{value:g}"
