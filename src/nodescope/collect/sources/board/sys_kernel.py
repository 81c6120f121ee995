"""
Limits of the kernel and how near the node is to them: processes, threads, randomness, hung tasks.

Reads   /proc/sys/kernel/{pid_max,threads-max,hung_task_detect_count,random/{entropy_avail,poolsize}},
        /proc/loadavg, and how many numbers /proc lists
Needs   Linux; hung_task_detect_count needs 6.13
Docs    https://docs.kernel.org/admin-guide/sysctl/kernel.html

    0.20 0.18 0.12 1/980 14232

The fourth word is threads that run and threads that exist.
"""

from collections.abc import Mapping

from nodescope.base.block import Table
from nodescope.base.entity import NODE
from nodescope.base.metric import Kind, Metric
from nodescope.collect.run.slow_source import Rows, SlowSource, read_folder, to_number
from nodescope.collect.run.source import Context

FOLDER = "proc/sys/kernel"
# Key, kind, published name, sentence.
COLUMNS: tuple[tuple[str, Kind, str, str], ...] = (
    ("pid_max", "gauge", "node_processes_max_processes", "The most process ids."),
    ("threads-max", "gauge", "node_processes_max_threads", "The most threads."),
    ("pids", "gauge", "node_processes_pids", "Processes that exist."),
    ("threads", "gauge", "node_processes_threads", "Threads that exist."),
    ("random/entropy_avail", "gauge", "node_entropy_available_bits", "Bits of entropy at hand."),
    ("random/poolsize", "gauge", "node_entropy_pool_size_bits", "Bits that the entropy pool holds."),
    (
        "hung_task_detect_count",
        "counter",
        "node_kernel_hung_tasks_total",
        "Tasks that the kernel found hung, since boot.",
    ),
)
FILES = tuple(key for key, *_ in COLUMNS if key not in ("pids", "threads"))
TABLE = Table(
    "sys_kernel",
    "sys_kernel",
    ("node",),
    tuple(
        Metric(f"sys_kernel.{key.rpartition('/')[2].replace('-', '_')}", kind, sentence, name)
        for key, kind, name, sentence in COLUMNS
    ),
)


def read(context: Context) -> dict[str, str] | None:
    found = read_folder(context, FOLDER, FILES)
    if not found:
        return None
    load = (context.root.read_text("proc/loadavg") or "").split()
    threads = load[3].partition("/")[2] if len(load) > 3 else ""
    pids = sum(name.isdigit() for name in context.root.names("proc"))
    return {**found, "threads": threads, "pids": str(pids)}


def parse(texts: Mapping[str, str]) -> tuple[Rows, ...]:
    return ({NODE: [to_number(texts.get(key)) for key, *_ in COLUMNS]},)


make = SlowSource(
    "sys_kernel",
    (TABLE,),
    read,
    parse,
    "no pid_max in /proc/sys/kernel: this is not Linux",
    pace_seconds=60.0,
)
