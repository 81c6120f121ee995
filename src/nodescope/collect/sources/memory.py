"""
Memory of the node: every line of meminfo.

Reads   /proc/meminfo
Needs   Linux; MemAvailable needs 3.14
Docs    https://docs.kernel.org/filesystems/proc.html#meminfo

    MemTotal:       24689688 kB
    MemFree:        23254084 kB
    HugePages_Total:       0

The kernel's kB are KiB. Lines without a unit are counts. Names on /metrics
are node_exporter's: the key, brackets turned into underscores, _bytes where
the line has a unit.
"""

from collections.abc import Iterator

from nodescope.base.metric import Metric
from nodescope.collect.files.layout import KeyValues
from nodescope.collect.run.source import Context, FileSource, NodeFile, read_offered

PATH = "proc/meminfo"
# The names that the requirement documents fix, beside node_exporter's own.
SEED_NAMES = {"MemTotal": "node_memory_total_bytes", "MemAvailable": "node_memory_available_bytes"}
PLAIN = {"MemAvailable": "node_memory_available", "MemTotal": "node_memory_total"}


def name_key(key: str) -> str:
    return key.replace("(", "_").replace(")", "")


def row(key: str, *, has_unit: bool) -> Metric:
    suffix = "_bytes" if has_unit else ""
    return Metric(
        f"memory.{key}",
        kind="gauge",
        published=f"node_memory_{name_key(key)}{suffix}",
        also=(SEED_NAMES[key],) if key in SEED_NAMES else (),
        unit="bytes" if has_unit else "",
        scale=1024.0 if has_unit else 1.0,
        help=f"{key} as meminfo has it.",
        plain=PLAIN.get(key),
    )


def declare(context: Context) -> Iterator[NodeFile]:
    """Which lines there are depends on the kernel: asked once, at the start."""
    text = read_offered(context, PATH)
    wanted = {}
    for line in text.splitlines():
        key, colon, rest = line.partition(":")
        if colon and key.replace("_", "").replace("(", "").replace(")", "").isalnum():
            wanted[key] = row(key, has_unit=rest.endswith("kB"))
    if wanted:
        yield NodeFile(PATH, KeyValues(wanted, read_bytes=4096))


make = FileSource("memory", declare, absent="no /proc/meminfo: this is not Linux")
