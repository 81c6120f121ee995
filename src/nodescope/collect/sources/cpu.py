"""
CPU time per core, load, and what the scheduler counts since boot.

Reads   /proc/stat, /proc/loadavg
Needs   Linux
Docs    https://man7.org/linux/man-pages/man5/proc_stat.5.html

    cpu  10132153 290696 3084719 46828483 16683 0 25195 0 175628 0
    cpu0 1393280 32966 572056 13343292 6130 0 17875 0 23933 0
    ctxt 1990473
    btime 1062191376
    processes 2915

Times are in USER_HZ (1/100 s). guest is counted inside user as well, and
guest_nice inside nice: node_exporter subtracts neither, and so do we.
"""

from collections.abc import Iterator

from nodescope.base.metric import Kind, Metric
from nodescope.collect.files.cores import name_core
from nodescope.collect.files.layout import DeviceRows, Fields, KeyValues
from nodescope.collect.run.source import Context, Declared, DeviceFile, FileSource, NodeFile

MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
# The kernel's name of the time in guests, and the mode that counts it, too.
GUEST_MODES = {"guest": "user", "guest_nice": "nice"}


def time_in(name: str, ticks_per_second: int) -> Metric:
    mode = GUEST_MODES.get(name, name)
    return Metric(
        f"cpu.{name}",
        kind="counter",
        published="node_cpu_seconds_total" if mode == name else "node_cpu_guest_seconds_total",
        labels=(("mode", mode),),
        unit="seconds",
        scale=1 / ticks_per_second,
        help=f"Seconds the CPUs spent in {'each mode' if mode == name else 'guests, for each mode'}.",
        # A core that sleeps for long may report less idle and iowait time
        # than before (Linux, NO_HZ); see proc_stat(5).
        may_dip=mode in ("idle", "iowait"),
    )


LOADS = {
    0: Metric(
        "cpu.load_1m",
        kind="gauge",
        published="node_load1",
        also=("cpu_load_1m",),
        help="Load average over 1 minute.",
    ),
    1: Metric("cpu.load_5m", kind="gauge", published="node_load5", help="Load average over 5 minutes."),
    2: Metric("cpu.load_15m", kind="gauge", published="node_load15", help="Load average over 15 minutes."),
}
# Key in /proc/stat, kind, published name, unit, help.
COUNT_ROWS: tuple[tuple[str, Kind, str, str, str], ...] = (
    ("intr", "counter", "node_intr_total", "", "Interrupts served, since boot."),
    ("ctxt", "counter", "node_context_switches_total", "", "Context switches, since boot."),
    ("btime", "gauge", "node_boot_time_seconds", "seconds", "When the node booted, as epoch seconds."),
    ("processes", "counter", "node_forks_total", "", "Forks, since boot."),
    ("procs_running", "gauge", "node_procs_running", "", "Tasks that could run now."),
    ("procs_blocked", "gauge", "node_procs_blocked", "", "Tasks that wait for I/O."),
)
COUNTS = {
    key: Metric(f"cpu.{key}", kind, sentence, published, unit=unit)
    for key, kind, published, unit, sentence in COUNT_ROWS
}


def declare(context: Context) -> Iterator[Declared]:
    hz = context.ticks_per_second
    cores = DeviceRows(
        {place: time_in(name, hz) for place, name in enumerate((*MODES, *GUEST_MODES))},
        keep=lambda name: name.startswith("cpu") and name[3:].isdigit(),
        # user, nice, system, idle: what every kernel since 2.4 writes.
        least_fields=4,
    )
    yield NodeFile("proc/stat", KeyValues(COUNTS, read_bytes=16384))
    yield NodeFile("proc/loadavg", Fields(LOADS, read_bytes=128))
    yield DeviceFile("proc/stat", cores, "cpu", lambda name: name_core(name[3:]))


make = FileSource("cpu", declare, absent="no /proc/stat: this is not Linux")
