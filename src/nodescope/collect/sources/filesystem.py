"""
Space and files per mounted file system, asked in the slow tier.

Reads   /proc/1/mounts (or /proc/mounts), statvfs of every mount point
Needs   Linux; mount points of the host need --root to hold the host's tree
Docs    https://man7.org/linux/man-pages/man3/statvfs.3.html

    /dev/nvme0n1p1 / ext4 rw,relatime 0 0

A hung network mount blocks statvfs for ever: every mount is asked on a thread
of its own with a deadline, and one that hangs is not asked again until it
answers. It is shown with node_filesystem_device_error 1 meanwhile.
"""

import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from nodescope.base.block import Block, Table, make_block
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.source import CallDefaults, Context

MOUNTS = ("proc/1/mounts", "proc/mounts")
# What node_exporter leaves out: file systems without storage of their own.
LEFT_OUT_TYPES = re.compile(
    "autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs"
    "|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|erofs|sysfs|tracefs"
)
LEFT_OUT_POINTS = re.compile(
    r"/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)"
)
# A local statvfs takes microseconds; a second is a mount in trouble.
ANSWER_SECONDS = 1.0

COLUMNS = (
    ("size", "size_bytes", "bytes", "Size of the file system."),
    ("free", "free_bytes", "bytes", "Free space, what only root may use included."),
    ("available", "avail_bytes", "bytes", "Free space for everybody."),
    ("files", "files", "", "How many files it can hold."),
    ("files_free", "files_free", "", "How many more files it can hold."),
    ("readonly", "readonly", "", "1 when mounted read-only."),
    ("error", "device_error", "", "1 when the mount did not answer."),
)
TABLE = Table(
    "filesystem",
    "filesystem",
    ("filesystem",),
    tuple(
        Metric(f"filesystem.{word}", "gauge", sentence, f"node_filesystem_{name}", unit=unit)
        for word, name, unit, sentence in COLUMNS
    ),
)
_ESCAPE = re.compile(r"\\([0-7]{3})")


def parse_mounts(text: str) -> list[tuple[str, str, str]]:
    """(device, mount point, type) of what has storage; the last mount on a point wins."""
    points: dict[str, tuple[str, str, str]] = {}
    # Not splitlines: a mount point may hold any other line break of Unicode.
    for line in text.split("\n"):
        fields = line.split(" ")
        if len(fields) < 4:
            continue
        # The kernel writes blanks in paths as octal escapes.
        device, point = (_ESCAPE.sub(lambda match: chr(int(match[1], 8)), field) for field in fields[:2])
        # What was mounted there before is hidden by this one, shown or not.
        points.pop(point, None)
        if not LEFT_OUT_TYPES.fullmatch(fields[2]) and not LEFT_OUT_POINTS.match(point):
            points[point] = (device, point, fields[2])
    return list(points.values())


class FilesystemSource(CallDefaults):
    """Asks every mount, none of them for longer than a moment."""

    name = "filesystem"
    pace_seconds = 30.0
    deadline_seconds = 20.0

    def __init__(
        self,
        context: Context,
        ask: Callable[[str], list[float]] | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        if not any(context.root.exists(path) for path in MOUNTS):
            raise SourceAbsent("no /proc/mounts: this is not Linux")
        self._context = context
        self._ask_mount = ask or read_space
        self._answer_seconds = answer_seconds
        self._hung: dict[str, Future[list[float]]] = {}

    def read(self) -> Any:
        return self._context.root.call("filesystem", self._ask_all)

    def _ask_all(self) -> list[dict[str, Any]]:
        context = self._context
        text = next((text for path in MOUNTS if (text := context.root.read_text(path)) is not None), "")
        answers = []
        for device, point, kind in parse_mounts(text)[: context.limit("filesystem")]:
            values = self._ask(context.root.full(point.lstrip("/")))
            answers.append({"device": device, "mountpoint": point, "fstype": kind, "values": values})
        return answers

    def _ask(self, path: str) -> list[float] | None:
        future = self._hung.pop(path, None)
        # One that hung before is not waited for: a hundred of them would take minutes.
        patience_seconds = 0.0 if future else self._answer_seconds
        if future is None:
            future = Future()
            asking = (future, self._ask_mount, path)
            threading.Thread(target=ask_into, args=asking, daemon=True, name="statvfs").start()
        try:
            return future.result(timeout=patience_seconds)
        except OSError:
            # A timeout of ours, or the mount's own answer: only the first is a hang.
            if not future.done():
                self._hung[path] = future
            return None

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        rows = {}
        for mount in answer:
            labels = tuple((key, clean_text(mount[key])) for key in ("device", "fstype", "mountpoint"))
            entity = Entity("filesystem", (mount["mountpoint"],), labels)
            values = mount["values"]
            rows[entity] = [*values, 0.0] if values else [NAN] * 6 + [1.0]
        return (make_block(TABLE, rows, mono_ns),)

    def close(self) -> None:
        self._hung.clear()


def ask_into(future: "Future[list[float]]", ask: Callable[[str], list[float]], path: str) -> None:
    try:
        future.set_result(ask(path))
    except OSError as error:
        future.set_exception(error)


def read_space(path: str) -> list[float]:
    """Bytes, files and whether it is read-only, in the order of the columns."""
    answer = os.statvfs(path)
    unit = answer.f_frsize
    sizes = [answer.f_blocks * unit, answer.f_bfree * unit, answer.f_bavail * unit]
    counts = [answer.f_files, answer.f_ffree, bool(answer.f_flag & os.ST_RDONLY)]
    return [float(value) for value in (*sizes, *counts)]
