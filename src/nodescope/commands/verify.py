"""nodescope verify: read a whole archive or copy, and say what is lost."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.base.errors import ArchiveRefused, RequestRejected
from nodescope.base.time_range import render_moment
from nodescope.commands.shared.options import add_json
from nodescope.commands.text.progress import clear_progress, show_progress
from nodescope.commands.text.terminal import render_table
from nodescope.keep.folder import DataFolder
from nodescope.read.files.given_paths import is_data_folder
from nodescope.serve.json_text import render_json

if TYPE_CHECKING:
    # Arrow is loaded when the command runs, not when its options are parsed.
    from nodescope.keep.check.verify import Verdict, Work

EXAMPLE = """example:
  nodescope verify ~/.local/state/nodescope
  nodescope verify s3://bucket/archive --json

Exit code: 0 all is whole, 1 something is damaged or lost.
"""
STATES = {
    "whole": "whole",
    "unchecked": "not checked (no checksum)",
    "repairable": "damaged by one bit; nodescope consolidate repairs it",
    "lost": "lost",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "archive", metavar="FOLDER|URL", help="a data folder, or a copy (s3://, gs://, abfs://, file://)"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    work, before = list_work(options.archive)
    verdicts = [*judge_all(work), *before]
    bad = [one for one in verdicts if one.state in ("lost", "repairable")]
    if options.json:
        sys.stdout.buffer.write(render_json(to_json(verdicts)) + b"\n")
    else:
        sys.stdout.write(describe(verdicts, bad))
    return 1 if bad else 0


def list_work(place: str) -> "tuple[list[Work], list[Verdict]]":
    """What is to be read, and what is known to be lost already."""
    from nodescope.keep.check.verify import is_copy, list_folder_work, list_set_aside, list_store_work
    from nodescope.keep.copy.object_store import is_url, open_store

    if is_url(place):
        return list_store_work(open_store(place)), []
    path = Path(place)
    if not path.is_dir():
        raise RequestRejected(f"no folder {path}; accepted: a data folder, or the address of a copy")
    if is_copy(path):
        return list_store_work(open_store(path.absolute().as_uri())), []
    folder = DataFolder(path)
    work, before = list_folder_work(folder), list_set_aside(folder)
    if not work and not before and not is_data_folder(path):
        # Nothing damaged among no files would read as good news about the wrong folder.
        raise ArchiveRefused(
            f"{path}: no data of nodescope is here; accepted: a data folder, or the address of a copy"
        )
    return work, before


def judge_all(work: "Sequence[Work]") -> "list[Verdict]":
    total = sum(one.size for one in work) or 1
    done = 0
    found = []
    for one in work:
        show_progress(done / total)
        found.append(one.judge())
        done += one.size
    clear_progress()
    return found


def to_json(verdicts: "Sequence[Verdict]") -> dict[str, object]:
    """Every file that is not whole, and how many there are of each state."""
    return {
        "files": {state: count_state(verdicts, state) for state in STATES},
        "rows_lost": sum(one.rows_lost for one in verdicts),
        "damaged": [asdict(one) for one in verdicts if one.state in ("lost", "repairable")],
        "unchecked": [one.file for one in verdicts if one.state == "unchecked"],
    }


def count_state(verdicts: "Sequence[Verdict]", state: str) -> int:
    return sum(one.state == state for one in verdicts)


def describe(verdicts: "Sequence[Verdict]", bad: "Sequence[Verdict]") -> str:
    head = ("file", "state", "rows lost", "from", "to", "why")
    rows = [
        (
            one.file,
            one.state,
            str(one.rows_lost),
            render_moment(one.from_ms) if one.to_ms else "-",
            render_moment(one.to_ms) if one.to_ms else "-",
            one.reason,
        )
        for one in bad
    ]
    table = render_table(head, rows) if rows else ""
    counts = [f"{count_state(verdicts, state)} {words}" for state, words in STATES.items()]
    return f"{table}{len(verdicts)} files: {'; '.join(counts)}\n"
