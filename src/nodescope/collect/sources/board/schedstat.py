"""
Time that tasks ran and waited on each core, by the scheduler's own account.

Reads   /proc/schedstat
Needs   Linux with CONFIG_SCHEDSTATS
Docs    https://docs.kernel.org/scheduler/sched-stats.html

    cpu0 0 0 0 0 0 0 8920734987 1287345098 1923874

Nanoseconds run, nanoseconds waited, time slices.
"""

from collections.abc import Iterator

from nodescope.base.metric import Metric
from nodescope.collect.files.cores import name_core
from nodescope.collect.files.layout import DeviceRows
from nodescope.collect.run.source import Context, DeviceFile, FileSource

PATH = "proc/schedstat"
NANOSECOND = 1e-9
COLUMNS = {
    6: Metric(
        "schedstat.running",
        "counter",
        "Time that tasks ran on the core.",
        "node_schedstat_running_seconds_total",
        unit="seconds",
        scale=NANOSECOND,
    ),
    7: Metric(
        "schedstat.waiting",
        "counter",
        "Time that tasks waited for the core.",
        "node_schedstat_waiting_seconds_total",
        unit="seconds",
        scale=NANOSECOND,
    ),
    8: Metric(
        "schedstat.timeslices",
        "counter",
        "Time slices given on the core.",
        "node_schedstat_timeslices_total",
    ),
}


def is_core(name: str) -> bool:
    return name.startswith("cpu") and name[3:].isdigit()


def declare(context: Context) -> Iterator[DeviceFile]:
    if context.root.exists(PATH):
        layout = DeviceRows(COLUMNS, keep=is_core, least_fields=9)
        yield DeviceFile(PATH, layout, "cpu", lambda name: name_core(name[3:]))


make = FileSource(
    "schedstat", declare, absent="no /proc/schedstat: the kernel has no CONFIG_SCHEDSTATS", tier=5
)
