"""Archives as commands read them: all of the paths, what could not be read, and the range that is meant."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.base.clock import SystemClock
from nodescope.base.errors import ArchiveRefused, RequestRejected
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.commands.shared.options import read_span
from nodescope.read.files.given_paths import ACCEPTED

if TYPE_CHECKING:
    # DuckDB is loaded when an archive is read, not for --help.
    from nodescope.use.answers.snapshots import View


def open_view(paths: Sequence[Path]) -> "View":
    """
    Every node of the paths, with what its log has beyond the files.

    What could not be read is told by name; nothing at all is a failure, not an
    empty answer.
    """
    from nodescope.use.answers.snapshots import NodeFolders

    view = NodeFolders(paths, SystemClock()).view()
    reasons = [refusal.reason for refusal in view.snapshot.refusals]
    if reasons and not view.nodes:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        raise ArchiveRefused(f"nothing could be read: {reasons[0]}{more}")
    if not view.nodes and not any((path / "session.json").exists() for path in paths):
        raise ArchiveRefused(f"{paths[0]}: no data of nodescope is here; {ACCEPTED}")
    for reason in reasons:
        sys.stderr.write(f"nodescope: not read: {reason}\n")
    return view


def tell_damage(view: "View") -> None:
    """
    Each file whose rows cannot be read, in a line, and the time that is lost with it.

    For answers that are taken from the files' descriptions: these tell who was there all the same.
    """
    from nodescope.read.files.listing import FileEntry
    from nodescope.read.query.row_reader import read_ahead

    entries = [entry for node in view.nodes for entry in node.catalog.entries]
    for entry, damage in zip(entries, read_ahead(FileEntry.find_damage, entries), strict=True):
        if damage:
            lost = f"{render_moment(entry.from_ms)} to {render_moment(entry.to_ms)}"
            sys.stderr.write(f"nodescope: {damage}; the samples from {lost} are missing\n")


def choose_span(view: "View", options: argparse.Namespace, paths: Sequence[Path]) -> TimeRange:
    """
    As given, else all there is, also where only rollups are left.

    Relative times count from the newest sample: an archive may be old.
    """
    from nodescope.read.query.engine import whole_range

    newest_ms = view.snapshot.to_ms
    if newest_ms is None:
        raise RequestRejected(f"{paths[0]}: there is no data here yet")
    from_ms, to_ms = read_span(options, newest_ms)
    starts, ends = zip(*(whole_range(node.catalog, node.tail) for node in view.nodes if node.to_ms))
    span = TimeRange(min(starts) if from_ms is None else from_ms, max(ends) if to_ms is None else to_ms)
    if span.from_ms > span.to_ms:
        raise RequestRejected(f"the range ends ({span.to_ms} ms) before it begins ({span.from_ms} ms)")
    return span


def check_metric(view: "View", metric: str) -> None:
    """Refused in the words of a command, before the answers do it in those of the API."""
    from nodescope.read.query.resolve import resolve_metric

    known = {key: row for node in view.nodes for key, row in node.metrics.items()}
    resolve_metric(metric, known, "auto")
