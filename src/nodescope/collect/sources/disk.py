"""
Disk traffic per block device, since boot.

Reads   /proc/diskstats
Needs   Linux; discards need 4.18, flushes 5.5
Docs    https://docs.kernel.org/admin-guide/iostats.html

   259       0 nvme0n1 33104 1212 2621440 9021 8810 1337 512344 30011 0 8120 39032 0 0 0 0 911 2

A sector is 512 bytes here whatever the device says; times are milliseconds.
Partitions and loop devices are left out, as node_exporter leaves them out.
"""

import re
from collections.abc import Iterator

from nodescope.base.entity import Entity
from nodescope.base.metric import Kind, Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.layout import DeviceRows
from nodescope.collect.run.source import Context, DeviceFile, FileSource

LEFT_OUT = re.compile(r"(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+")
# What the published name says -> what one of the kernel's units is of it: a sector, a millisecond.
SCALES = {"bytes": 512.0, "seconds": 1e-3}

# Fields behind the name: archive word, published word, help. All but one count since boot.
FIELDS = (
    ("reads", "reads_completed_total", "Reads completed."),
    ("reads_merged", "reads_merged_total", "Reads merged with a neighbour."),
    ("sectors_read", "read_bytes_total", "Bytes read."),
    ("read_ms", "read_time_seconds_total", "Time all reads took."),
    ("writes", "writes_completed_total", "Writes completed."),
    ("writes_merged", "writes_merged_total", "Writes merged with a neighbour."),
    ("sectors_written", "written_bytes_total", "Bytes written."),
    ("write_ms", "write_time_seconds_total", "Time all writes took."),
    ("io_now", "io_now", "Requests in flight."),
    ("io_ms", "io_time_seconds_total", "Time with a request in flight."),
    (
        "io_weighted_ms",
        "io_time_weighted_seconds_total",
        "Time with a request in flight, weighted by their number.",
    ),
    ("discards", "discards_completed_total", "Discards completed."),
    ("discards_merged", "discards_merged_total", "Discards merged with a neighbour."),
    ("sectors_discarded", "discarded_sectors_total", "Sectors discarded."),
    ("discard_ms", "discard_time_seconds_total", "Time all discards took."),
    ("flushes", "flush_requests_total", "Flushes completed."),
    ("flush_ms", "flush_requests_time_seconds_total", "Time all flushes took."),
)


def row(word: str, published: str, sentence: str) -> Metric:
    kind: Kind = "counter" if published.endswith("_total") else "gauge"
    unit = next((unit for unit in SCALES if f"_{unit}_" in published), "")
    return Metric(
        f"disk.{word}", kind, sentence, f"node_disk_{published}", unit=unit, scale=SCALES.get(unit, 1.0)
    )


def name_disk(name: str) -> Entity:
    device = clean_text(name)
    return Entity("disk", (device,), (("device", device),))


def declare(context: Context) -> Iterator[DeviceFile]:
    del context
    layout = DeviceRows(
        {place: row(*field) for place, field in enumerate(FIELDS)},
        name_at=2,
        keep=lambda name: not LEFT_OUT.fullmatch(name),
        # Linux 2.6 writes eleven numbers behind the name, and never fewer for a whole disk.
        least_fields=11,
    )
    yield DeviceFile("proc/diskstats", layout, "disk", name_disk)


make = FileSource(
    "disk", declare, absent="no /proc/diskstats: this is not Linux, or the kernel has no block layer"
)
