"""
Pressure stall information: how long tasks waited for CPU, memory and I/O.

Reads   /proc/pressure/{cpu,io,irq,memory}
Needs   Linux 4.20 with CONFIG_PSI; irq needs 6.1
Docs    https://docs.kernel.org/accounting/psi.html

Two lines, as the kernel writes them (total is microseconds since boot):

    some avg10=1.84 avg60=0.90 avg300=0.31 total=48210377
    full avg10=0.00 avg60=0.00 avg300=0.00 total=0

total is kept, from which a reader derives any window; avg10, which
dashboards ask for by name, beside it for cpu and memory.
"""

from collections.abc import Iterator

from nodescope.base.metric import Metric
from nodescope.collect.files.layout import PressureLines
from nodescope.collect.run.source import Context, FileSource, NodeFile

RESOURCES = ("cpu", "io", "irq", "memory")
# Names that the requirement documents fix.
AVERAGES = {"cpu": "node_cpu_pressure_avg10", "memory": "node_memory_pressure_avg10"}


def stalled(resource: str, share: str, word: str) -> Metric:
    """The row of one line's total: the archive keeps microseconds, Prometheus gets seconds."""
    return Metric(
        f"pressure.{resource}.{share}.total",
        kind="counter",
        published=f"node_pressure_{resource}_{word}_seconds_total",
        unit="seconds",
        scale=1e-6,
        help=f"Time tasks were stalled on {resource}, since boot.",
    )


def average(resource: str) -> Metric:
    return Metric(
        f"pressure.{resource}.some.avg10",
        kind="gauge",
        published=AVERAGES[resource],
        unit="percent",
        help=f"Share of the last 10 s in which some task waited for {resource}, 0 to 100.",
    )


def declare(context: Context) -> Iterator[NodeFile]:
    """One file per resource; what this kernel does not offer is left out."""
    del context
    for resource in RESOURCES:
        wanted = {("some", "total"): stalled(resource, "some", "waiting")}
        if resource in AVERAGES:
            wanted["some", "avg10"] = average(resource)
        # irq has a full line only: an interrupt that is served stalls everybody.
        if resource == "irq":
            wanted.clear()
        wanted["full", "total"] = stalled(resource, "full", "stalled")
        yield NodeFile(f"proc/pressure/{resource}", PressureLines(wanted))


make = FileSource("pressure", declare, absent="no /proc/pressure: Linux before 4.20, or booted with psi=0")
