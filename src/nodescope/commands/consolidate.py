"""
nodescope consolidate: merge small files, apply retention, copy finished files away.

Between two passes only a small sleeper is left of the process, with its id and its lock.
"""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from nodescope.base.clock import SystemClock, read_boot_id
from nodescope.base.errors import ArchiveBusy, RequestRejected, SettingsRejected
from nodescope.base.log import Log, set_up_logging
from nodescope.base.quantity import parse_seconds, render_bytes
from nodescope.base.settings import Settings
from nodescope.base.settings_load import choose_data, read_settings
from nodescope.commands.shared.asleep import __file__ as asleep_file
from nodescope.commands.shared.exec_anew import (
    exec_anew,
    find_own_words,
    hear_signals,
    hold_signals,
    take_kept,
)
from nodescope.commands.shared.options import read_quantity
from nodescope.keep.disk import Disk, make_folders, read_json
from nodescope.keep.folder import CLOSED, DataFolder
from nodescope.keep.lock import FolderLock
from nodescope.keep.retention import build_limits

if TYPE_CHECKING:
    # Arrow is loaded when the command runs, not when its options are parsed.
    from nodescope.keep.consolidator import Report
    from nodescope.keep.copy.copier import Copied, Copier
    from nodescope.keep.housekeeping import Housekeeping, PassReport

EXAMPLE = """example:
  nodescope consolidate --data ~/.local/state/nodescope --once
  nodescope consolidate --once --dry-run
  nodescope consolidate --copy-to s3://bucket/archive
  nodescope consolidate --set-up-store --copy-to file:///mnt/archive --once
"""
# fgm's own pace.
EVERY = "5m"
# Without a closed segment of the log: retention by age, a day that is over, checksums.
LONGEST_SECONDS = 3600.0
# The viewer shows twelve minutes of what is still in the log.
EVERY_SECONDS_LEAST, EVERY_SECONDS_MOST = 1.0, 600.0
EVERY_ACCEPTED = "1s to 10m, such as 90s or 5m"
# Someone else's conversion of a segment is over within this.
WAIT_SECONDS = 60.0
log = Log("consolidate")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML file with settings")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the data folder")
    parser.add_argument("--once", action="store_true", help="one pass, then exit")
    parser.add_argument(
        "--every", default=EVERY, metavar="T", help=f"the time between two passes; {EVERY} unless given"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be merged, change nothing")
    parser.add_argument(
        "--copy-to", metavar="URL", help="copy finished files there (s3://, gs://, abfs://, file://)"
    )
    parser.add_argument(
        "--set-up-store",
        action="store_true",
        help="mark the folder of --copy-to as a store first: once, while it is mounted",
    )
    parser.add_argument(
        "--copy-rate",
        metavar="BYTES",
        help="bytes a second for the copy, such as 5MiB; 1GiB unless set, more than a node has",
    )
    parser.add_argument("--no-retention", action="store_true", help="remove nothing for age or size")


def run(options: argparse.Namespace) -> int:
    given = {"data": options.data, "copy_to": options.copy_to, "copy_rate_bytes": options.copy_rate}
    flags = {name: value for name, value in given.items() if value}
    loaded = read_settings(flags, options.config, os.environ)
    set_up_logging(loaded.settings.log_level)
    folder = DataFolder(choose_data(loaded.settings, os.environ))
    if not folder.path.is_dir():
        raise RequestRejected(f"no data folder {folder.path}; give --data")
    if loaded.settings.copy_to:
        # Refused before anything is merged.
        from nodescope.keep.copy.object_store import check_url

        check_url(loaded.settings.copy_to)
    elif options.set_up_store:
        raise RequestRejected("--set-up-store needs --copy-to URL")
    if options.dry_run:
        return show_plan(folder)
    # Without a handler of its own the first process of a container would not hear a stop.
    signal.signal(signal.SIGTERM, leave)
    hear_signals()
    make_folders(folder.wal)
    every_seconds = read_every(options)
    kept = take_kept()
    with FolderLock(folder.converter_lock) as lock:
        if not lock.adopt(kept.get("lock")):
            take(lock)
        keeper = build_keeper(options, folder, loaded.settings, kept)
        report = keeper.run_pass(
            everything=options.once, copy_seconds=None if options.once else every_seconds
        )
        sys.stdout.write(f"{describe(report.merged, report.copied)}\n")
        sys.stdout.flush()
        if options.once:
            refuse_failures(folder, report)
            return 0
        return rest(lock, folder, keeper, report, every_seconds)


def leave(*_: object) -> NoReturn:
    """Whatever a pass has begun is finished by the next one, as after a kill."""
    raise SystemExit(0)


def read_every(options: argparse.Namespace) -> float:
    seconds = read_quantity(options, "every", parse_seconds, EVERY_ACCEPTED)
    if not EVERY_SECONDS_LEAST <= seconds <= EVERY_SECONDS_MOST:
        raise SettingsRejected(f"--every {options.every} is not accepted; accepted: {EVERY_ACCEPTED}")
    return seconds


def take(lock: FolderLock) -> None:
    """An agent's converter is gone in seconds; another consolidator is not."""
    clock = SystemClock()
    deadline_ns = clock.mono_ns() + round(WAIT_SECONDS * 1e9)
    stop = threading.Event()
    while not lock.take({"pid": os.getpid(), "command": "consolidate"}):
        if read_json(lock.path).get("command") == "consolidate" or clock.mono_ns() > deadline_ns:
            raise ArchiveBusy(
                f"{lock.path.parent.parent} is being consolidated by process {read_json(lock.path).get('pid')}"
            )
        clock.wait_until(clock.mono_ns() + 200_000_000, stop)


def show_plan(folder: DataFolder) -> int:
    from nodescope.keep.consolidator import Consolidator

    consolidator = Consolidator(Disk(), folder, 2)
    now_ms = SystemClock().wall_ns() // 1_000_000
    for partition in folder.partitions():
        for level in ("hour", "day"):
            for batch in consolidator.plan(partition, level, now_ms):
                size = sum(path.stat().st_size for path in batch)
                sys.stdout.write(
                    f"{partition.relative_to(folder.path)}: {len(batch)} files of {render_bytes(size)} "
                    f"into one {level}: {batch[0].name} ... {batch[-1].name}\n"
                )
    return 0


def build_keeper(
    options: argparse.Namespace, folder: DataFolder, settings: Settings, kept: Mapping[str, Any]
) -> "Housekeeping":
    """kept: how far the pass before this one came, and when the store is to be looked at again."""
    from nodescope.keep.consolidator import FILES_LEAST, Consolidator
    from nodescope.keep.housekeeping import Housekeeping

    clock = SystemClock()
    consolidator = Consolidator(Disk(), folder, 2 if options.once else FILES_LEAST)
    consolidator.healer.scrubbed = str(kept.get("scrubbed", ""))
    # Marked once, by somebody who saw it mounted: not again at every pass.
    set_up = options.set_up_store and not kept
    copier = open_copier(folder, settings, clock, once=options.once, set_up=set_up)
    if copier:
        copier.verify_ns = kept.get("verify_ns")
    limits = None if options.no_retention else build_limits(settings)
    return Housekeeping(consolidator, clock, read_boot_id(), copier, limits)


def rest(
    lock: FolderLock, folder: DataFolder, keeper: "Housekeeping", report: "PassReport", every_seconds: float
) -> NoReturn:
    """Until the next pass this process is asleep.py, with the lock and without Arrow."""
    copier = keeper.copier
    is_behind = bool(report.failures or (report.copied and report.copied.waiting))
    longest = every_seconds if is_behind else max(every_seconds, LONGEST_SECONDS)
    kept = {
        "lock": lock.descriptor,
        "scrubbed": keeper.consolidator.healer.scrubbed,
        "verify_ns": copier.verify_ns if copier else None,
    }
    asleep = [sys.executable, "-I", "-S", asleep_file, f"{every_seconds:g}", f"{longest:g}"]
    words = [*asleep, str(folder.wal), CLOSED, *find_own_words()]
    hold_signals()
    exec_anew(words, kept, [lock.descriptor] if lock.descriptor is not None else [])


def refuse_failures(folder: DataFolder, report: "PassReport") -> None:
    """A single pass, that a person waits for, ends with the first failure; all its parts were tried."""
    from nodescope.keep.copy.copier import first_failure

    for failure in report.failures:
        raise RequestRejected(f"{folder.path}: {failure}")
    if report.copied:
        first_failure(report.copied)


def open_copier(
    folder: DataFolder, settings: Settings, clock: SystemClock, *, once: bool, set_up: bool
) -> "Copier | None":
    """None where nothing is to be copied; a resident consolidator then ends an earlier copy."""
    from nodescope.keep.copy.copied_files import end_copying
    from nodescope.keep.copy.copier import Copier
    from nodescope.keep.copy.object_store import UploadPace, open_store

    if settings.copy_to:
        store = open_store(settings.copy_to, UploadPace(settings.copy_rate_bytes, clock))
        if set_up:
            store.set_up()
        return Copier(Disk(), folder, store, clock)
    if not once and end_copying(Disk(), folder):
        log.warning("copying was turned off; retention no longer waits for it")
    return None


def describe(report: "Report", copied: "Copied | None") -> str:
    freed = report.freed
    words = [
        f"{report.merged_files} files merged into {report.outputs}, {report.rows:,} rows",
        f"{report.rollups} rollups",
        f"{freed.files if freed else 0} files removed",
    ]
    if freed and freed.uncopied_files:
        words.append(f"{freed.uncopied_files} of them not copied yet: the disk is almost full")
    if copied is not None:
        words.append(f"{copied.files} copied ({render_bytes(copied.bytes)}), {copied.waiting} waiting")
    words.append(f"{len(report.refused)} left alone")
    return "; ".join(words)
