"""nodescope containers: who is in a data folder."""

import argparse
import sys

from nodescope.base.errors import ArchiveRefused
from nodescope.base.time_range import render_moment
from nodescope.commands.options import add_json, add_paths
from nodescope.commands.text.terminal import render_table
from nodescope.keep.label_columns import LABELS, Subject
from nodescope.read.files.catalog import Catalog, read_catalog
from nodescope.serve.json_text import render_json

EXAMPLE = """example:
  nodescope containers ~/.local/state/nodescope
  nodescope containers demo --json | python3 -m json.tool
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_paths(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    catalog = read_catalog(options.path)
    say_refusals(catalog)
    found = sorted(
        catalog.containers(),
        key=lambda one: (one.label("l_namespace") or "", one.label("l_pod_name") or "", one.first_ms),
    )
    if options.json:
        sys.stdout.buffer.write(render_json([to_json(one) for one in found]) + b"\n")
        return 0
    rows = [
        (
            (one.label("l_container_id") or "")[:12],
            one.label("l_namespace") or "-",
            one.label("l_pod_name") or "-",
            one.label("l_container_name") or "-",
            one.label("l_qos_class") or "-",
            render_moment(one.first_ms),
            render_moment(one.last_ms),
        )
        for one in found
    ]
    head = ("container", "namespace", "pod", "name", "qos", "first seen", "last seen")
    sys.stdout.write(render_table(head, rows))
    return 0


def say_refusals(catalog: Catalog) -> None:
    """What could not be read, by name; nothing at all is a failure, not an empty answer."""
    reasons = [refusal.reason for refusal in catalog.refusals]
    if reasons and not catalog.entries:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        raise ArchiveRefused(f"nothing could be read: {reasons[0]}{more}")
    for reason in reasons:
        sys.stderr.write(f"not read: {reason}\n")


def to_json(subject: Subject) -> dict[str, object]:
    labels = {name.removeprefix("l_"): value for name, value in zip(LABELS, subject.labels) if value}
    return {
        **labels,
        "details": subject.details,
        "first_seen": subject.first_ms / 1000,
        "last_seen": subject.last_ms / 1000,
    }
