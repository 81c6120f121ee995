"""
What the agent says beside what the kernel says.

A scrape shows the newest tick, not the present, and slow files are read less
often than fast ones. So for a counter two facts are asked for: it never is
ahead of a kernel reading made after the scrape, and with patience it reaches
one made before. Together: before <= published <= after. A gauge must lie
between the lowest and highest kernel reading of the same span.
"""

import time
from math import inf
from pathlib import Path

from tests.vm.guest import agent, pods
from tests.vm.guest.kernel import TRUTHS, read_truth, read_truths
from tests.vm.guest.report import Report, wait_until

# Slow tiers are 30 s apart, and the agent makes them slower yet where it is
# over its CPU budget; here it is, with Python 15 times slower.
PATIENCE_SECONDS = 90
# The kernel hands out memory to each of the two CPUs in batches of 64 pages,
# and a reading may or may not hold them: 2 x 64 x 4 KiB.
SLACK_BYTES = 512 << 10

WORKLOADS = (
    (pods.HOARDER, "container_memory_usage_bytes", pods.HOARD_BYTES),
    (pods.BURNER, "container_cpu_cfs_throttled_periods_total", 5),
    (pods.BURNER, "container_pressure_cpu_waiting_seconds_total", 0.1),
    (pods.SURVIVOR, "container_oom_events_total", 1),
    (pods.PRESSER, "container_pressure_memory_waiting_seconds_total", 0.1),
    (pods.WRITER, "container_fs_reads_bytes_total", pods.MIB),
    (pods.WRITER, "container_fs_writes_bytes_total", pods.MIB),
    (pods.WRITER, "container_pressure_io_waiting_seconds_total", 0.001),
    (pods.CROWD, "container_processes", 4),
)


def check_the_workloads(report: Report) -> None:
    """They do what they are here for; else nothing after this means anything."""
    for container, metric, least in WORKLOADS:
        wait_until(lambda c=container, m=metric, n=least: read_truth(c.path, m) >= n, seconds=60)  # type: ignore[misc]
        seen = read_truth(container.path, metric)
        report.check(f"kernel: {container.name} brings {metric} to {least:g}", seen >= least, seen)


class Span:
    """Kernel readings of all standing containers around a series of scrapes."""

    def __init__(self) -> None:
        self.before = self._read()
        self.low = self.before
        self.high = self.before
        self.samples: list[agent.Sample] = []

    @staticmethod
    def _read() -> dict[tuple[pods.Container, str], float]:
        return {
            (container, metric): value
            for container in pods.STANDING
            for metric, value in read_truths(container.path).items()
        }

    def scrape(self) -> None:
        self.samples = agent.scrape()
        now = self._read()
        self.low = {key: min(value, self.low[key]) for key, value in now.items()}
        self.high = {key: max(value, self.high[key]) for key, value in now.items()}

    def published(self, container: pods.Container, metric: str) -> float | None:
        return agent.total(self.samples, metric, container)

    def has_caught_up(self) -> bool:
        """Every counter has reached the reading made before the first scrape."""
        self.scrape()
        published = {key: self.published(*key) for key in self.before}
        return all(
            value is not None and value >= self.before[container, truth.metric] - 1e-6
            for truth in TRUTHS
            if truth.counter
            for container in pods.STANDING
            for value in [published[container, truth.metric]]
        )


def is_between(value: float, low: float, high: float, slack: float) -> bool:
    return value == low or low - slack <= value <= high + slack


def check_every_metric(report: Report, span: Span) -> None:
    for truth in TRUTHS:
        wrong = []
        for container in pods.STANDING:
            low, high = span.low[container, truth.metric], span.high[container, truth.metric]
            value = span.published(container, truth.metric)
            # Unlimited has no series, or a value that says so; never a small one.
            if low == inf and (value is None or value == inf):
                continue
            slack = 1e-6 if truth.counter or high < pods.MIB else SLACK_BYTES
            if value is None or not is_between(value, low, high, slack):
                wrong.append(f"{container.name} published {value}, kernel {low} to {high}")
        report.check(
            f"{truth.metric} is the kernel's, in all {len(pods.STANDING)} containers",
            not wrong,
            "; ".join(wrong),
        )


def check_identity(report: Report, span: Span) -> None:
    infos = {one.labels.get("id"): one.labels for one in span.samples if one.name == "container_info"}
    for container in pods.STANDING:
        labels = infos.get(container.cgroup, {})
        values = set(labels.values())
        report.check(
            f"container_info knows {container.name} ({container.driver} driver): pod uid, QoS, container id",
            {container.uid, container.id} <= values and container.qos in {value.lower() for value in values},
            dict(labels),
        )
        report.check(
            f"container_info names {container.name} from /var/log/pods",
            {container.pod, container.name, pods.NAMESPACE} <= values,
            dict(labels),
        )


def check_the_agent(report: Report, out: Path) -> None:
    started = time.monotonic()
    span = Span()
    span.scrape()
    wait_until(span.has_caught_up, PATIENCE_SECONDS)
    report.note(f"every counter caught up after {time.monotonic() - started:.1f} s")
    (out / "metrics.prom").write_text(agent.fetch("/metrics"))
    check_every_metric(report, span)
    check_identity(report, span)
