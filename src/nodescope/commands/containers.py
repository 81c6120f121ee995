"""nodescope containers: who is in a data folder."""

import argparse
import sys
from collections.abc import Sequence

from nodescope.base.errors import RequestRejected
from nodescope.base.text import clean_text, hint_nearest
from nodescope.base.time_range import render_moment
from nodescope.commands.shared.archive import open_view
from nodescope.commands.shared.options import add_json, add_paths
from nodescope.commands.text.terminal import render_table
from nodescope.keep.label_columns import LABELS
from nodescope.serve.json_text import render_json
from nodescope.use.answers.containers import (
    ContainerAmbiguous,
    ContainerUnknown,
    Life,
    group_lives,
    render_present,
)
from nodescope.use.answers.events import list_unmeasured
from nodescope.use.answers.workloads import find_target

# Instead of when it was last seen.
UNMEASURED = "too short to measure"
EXAMPLE = """example:
  nodescope containers ~/.local/state/nodescope
  nodescope containers demo --json | python3 -m json.tool
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_paths(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    view = open_view(options.path)
    found = sorted(view.lives(), key=lambda one: (one.namespace, one.pod, one.first_ms))
    short = list_unmeasured(view)
    if options.json:
        unmeasured = [{**to_json(life), "facts": dict(end.facts)} for life, end in short]
        sys.stdout.buffer.write(render_json([*map(to_json, found), *unmeasured]) + b"\n")
        return 0
    rows = [(*name_columns(one), render_moment(one.first_ms), render_moment(one.last_ms)) for one in found]
    rows += [(*name_columns(one), render_moment(end.at_ms), UNMEASURED) for one, end in short]
    head = ("container", "namespace", "pod", "name", "workload", "qos", "first seen", "last seen")
    newest_ms = {node.name: node.to_ms or 0 for node in view.nodes}
    sys.stdout.write(f"{render_table(head, rows)}\n{render_present(group_lives(found), newest_ms)}\n")
    return 0


def name_columns(life: Life) -> tuple[str, ...]:
    return (
        life.id[:12] if life.scope == "container" else "-",
        life.namespace or "-",
        life.pod or "-",
        life.container_name or "-",
        render_workload(life),
        life.qos_class or "-",
    )


def render_workload(life: Life) -> str:
    """`Deployment catalog`; an id alone is no workload's name."""
    workload = life.workload
    return "-" if workload.known_by == "id" else clean_text(f"{workload.kind} {workload.name}")


def find_lives(lives: Sequence[Life], texts: Sequence[str] | None) -> tuple[Life, ...] | None:
    """All lives of the workloads or containers that were named, on whichever node; None where none was."""
    if not texts:
        return None
    try:
        ids = {life.id for text in texts for life in find_target(lives, text).choose_main().lives}
        return tuple(life for life in lives if life.id in ids)
    except ContainerAmbiguous as error:
        raise RequestRejected(render_ambiguous(error)) from None
    except ContainerUnknown as error:
        known = {name for one in lives for name in (one.container_name, one.pod) if name}
        raise RequestRejected(
            f'no container "{error.text}"{hint_nearest(error.text, known)} '
            f"(nodescope containers lists all {len(lives)})"
        ) from None


def render_ambiguous(error: ContainerAmbiguous) -> str:
    names = [
        one.id[:12] + (f" ({one.name})" if one.pod or one.container_name else "") for one in error.candidates
    ]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f'container "{error.text}" is ambiguous: {", ".join(names[:5])}{more}'


def to_json(life: Life) -> dict[str, object]:
    workload = life.workload
    labels = {name.removeprefix("l_"): value for name, value in zip(LABELS, life.subject.labels) if value}
    return {
        **labels,
        "details": life.subject.details,
        "workload": workload.name,
        "workload_kind": workload.kind,
        "workload_known_by": workload.known_by,
        "first_seen": life.first_ms / 1000,
        "last_seen": life.last_ms / 1000,
    }
