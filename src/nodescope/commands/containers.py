"""nodescope containers: who is in a data folder."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nodescope.base.errors import RequestRejected
from nodescope.base.text import clean_text, hint_nearest
from nodescope.base.time_range import render_moment
from nodescope.commands.shared.archive import open_view, tell_damage
from nodescope.commands.shared.options import add_paths
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
  nodescope containers demo --lives
  nodescope containers demo --json | python3 -m json.tool
"""
NAMES = ("namespace", "pod", "name", "workload", "qos")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_paths(parser)
    parser.add_argument(
        "--lives",
        action="store_true",
        help="one line for every run of a container, not one with its restarts",
    )
    parser.add_argument("--json", action="store_true", help="for scripts: one object for every run")


def run(options: argparse.Namespace) -> int:
    view = open_view(options.path)
    tell_damage(view)
    found = sorted(view.lives(), key=lambda one: (one.namespace, one.pod, one.first_ms))
    short = list_unmeasured(view)
    if options.json:
        unmeasured = [{**to_json(life), "facts": dict(end.facts)} for life, end in short]
        sys.stdout.buffer.write(render_json([*map(to_json, found), *unmeasured]) + b"\n")
        return 0
    ends_ms = {life.id: end.at_ms for life, end in short}
    brief = [place_life(life, ends_ms[life.id]) for life, _ in short]
    newest_ms = {node.name: node.to_ms or 0 for node in view.nodes}
    table = render_lives([*found, *brief], ends_ms) if options.lives else render_groups(found, brief, ends_ms)
    sys.stdout.write(f"{table}\n{render_present(group_lives(found), newest_ms)}\n")
    return 0


def place_life(life: Life, at_ms: int) -> Life:
    """No sample tells of it: it was there when it ended."""
    return replace(life, subject=replace(life.subject, first_ms=at_ms, last_ms=at_ms))


def render_lives(lives: Sequence[Life], short: Mapping[str, int]) -> str:
    head = ("container", *NAMES, "first seen", "last seen")
    return render_table(head, [(*name_columns(one), *render_seen(one, one, short)) for one in lives])


def render_groups(found: Sequence[Life], brief: Sequence[Life], short: Mapping[str, int]) -> str:
    """One line a container: the id of its newest run, its restarts, and from when to when it was seen."""
    groups = sorted(group_lives([*found, *brief]), key=lambda one: (one.newest.namespace, one.newest.pod))
    rows = [
        (*name_columns(one.newest), str(one.restarts), *render_seen(one.lives[0], one.newest, short))
        for one in groups
    ]
    return render_table(("container", *NAMES, "restarts", "first seen", "last seen"), rows)


def render_seen(first: Life, last: Life, short: Mapping[str, int]) -> tuple[str, str]:
    is_short = first is last and last.id in short
    return render_moment(first.first_ms), UNMEASURED if is_short else render_moment(last.last_ms)


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
