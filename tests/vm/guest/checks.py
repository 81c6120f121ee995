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

from tests.vm.guest import agent, image, pods
from tests.vm.guest.kernel import TRUTHS, Truth, read_pairs, read_stalled, read_truth, read_truths
from tests.vm.guest.report import Report, wait_until

# Slow tiers are 30 s apart, and the agent makes them slower yet where it is
# over its CPU budget; here it is, with Python 15 times slower.
PATIENCE_SECONDS = 90
NETWORK_SECONDS = 40
WINDOW_SECONDS = 10
PSS = "container_memory_pss_bytes"
V2_USAGE = "cgroup.v2.cpu.stat.usage_usec"
# The kernel hands out memory to each of the two CPUs in batches of 64 pages,
# and a reading may or may not hold them: 2 x 64 x 4 KiB.
SLACK_BYTES = 512 << 10
# The kernel counts in microseconds; seconds as a float are exact to far less.
ROUNDING = 1e-6

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
            value is not None and value >= self.before[container, truth.metric] - ROUNDING
            for truth in TRUTHS
            if truth.counter
            for container in pods.STANDING
            for value in [published[container, truth.metric]]
        )


def find_slack(truth: Truth, container: pods.Container) -> float:
    if truth.counter:
        return ROUNDING
    if truth.metric.startswith("container_memory"):
        return SLACK_BYTES
    # A child may come and go between two of our readings.
    return 1 if container in pods.FORKING else 0


def check_every_metric(report: Report, span: Span) -> None:
    for truth in TRUTHS:
        wrong = []
        for container in pods.STANDING:
            low, high = span.low[container, truth.metric], span.high[container, truth.metric]
            value = span.published(container, truth.metric)
            # Unlimited has no series, or a value that says so; never a small one.
            if low == inf and (value is None or value == inf):
                continue
            slack = find_slack(truth, container)
            if value is None or not low - slack <= value <= high + slack:
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


def read_bytes_moved(process: pods.Process) -> dict[str, float]:
    """Of eth0 in the process's network: received in the first field, sent in the ninth."""
    lines = Path(f"/proc/{process.pid}/net/dev").read_text().splitlines()
    (fields,) = (line.partition(":")[2].split() for line in lines if line.lstrip().startswith("eth0:"))
    return {
        "container_network_receive_bytes_total": float(fields[0]),
        "container_network_transmit_bytes_total": float(fields[8]),
    }


def check_node(report: Report, span: Span) -> None:
    """The node's own counters moved with its containers': the OOM kill and the pressure were theirs."""
    node = {one.name: one.value for one in span.samples if not one.labels}
    kills = read_pairs(Path("/proc/vmstat"))["oom_kill"]
    report.check("node_vmstat_oom_kill is the kernel's", node.get("node_vmstat_oom_kill") == kills, kills)
    for resource in ("cpu", "memory", "io"):
        metric = f"node_pressure_{resource}_waiting_seconds_total"
        most = read_stalled(Path(f"/proc/pressure/{resource}"), "some")
        report.check(
            f"{metric} is above 0 and not ahead of the kernel",
            0 < node.get(metric, 0) <= most,
            node.get(metric),
        )


def check_network(report: Report, process: pods.Process) -> None:
    """A pod with its own network has its own bytes; one on the node's must not claim the node's."""
    own = {pods.TALKER.pod, image.POD.pod}
    before = read_bytes_moved(process)
    published: dict[tuple[str, str], list[agent.Sample]] = {}

    def has_caught_up() -> bool:
        published.clear()
        for one in agent.scrape():
            if one.name in before:
                published.setdefault((one.name, one.labels.get("pod", "")), []).append(one)
        return all(
            sum(one.value for one in published.get((name, pods.TALKER.pod), ())) >= value
            for name, value in before.items()
        )

    wait_until(has_caught_up, NETWORK_SECONDS)
    after = read_bytes_moved(process)
    for name in before:
        talker = published.get((name, pods.TALKER.pod), [])
        others = sorted(pod for metric, pod in published if metric == name and pod not in own)
        report.check(
            f"{name} of a pod is its own eth0's",
            [one.labels.get("interface") for one in talker] == ["eth0"]
            and before[name] <= talker[0].value <= after[name],
            f"published {talker}, kernel {before[name]} to {after[name]}",
        )
        report.check(f"{name} is not claimed by pods on the node's network", not others, others)


def check_status(report: Report) -> None:
    sources = agent.fetch_json("/status")["sources"]
    withheld = image.WITHHELD if image.is_here() else {}
    failed = {name: one for name, one in sources.items() if one["state"] == "failed"}
    unforeseen = {name: one for name, one in failed.items() if name not in withheld}
    report.check("/status: no source has failed", not unforeseen, unforeseen)
    for name, permission in withheld.items():
        reason = failed.get(name, {}).get("reason", "")
        report.check(
            f"/status: {name} asks for {permission}, which the manifest withholds",
            permission in reason,
            reason,
        )
    for name in ("container", "process", "pressure", "memory", "cpu"):
        report.check(f"/status: {name} is ok", sources.get(name, {}).get("state") == "ok", sources.get(name))


def check_window(report: Report) -> None:
    """A window tells rates: a fifth of a core for the burner, 200 MiB for the hoarder."""
    before, started = read_truth(pods.BURNER.path, "container_cpu_usage_seconds_total"), time.monotonic()
    time.sleep(WINDOW_SECONDS + 2)
    answer = agent.fetch_json(f"/window?seconds={WINDOW_SECONDS}&scope=container&stats=mean,last")
    after, ended = read_truth(pods.BURNER.path, "container_cpu_usage_seconds_total"), time.monotonic()
    cores = (after - before) / (ended - started)
    entities = {one["labels"].get("id"): one for one in answer["entities"]}
    expected = {container.cgroup for container in pods.STANDING}
    report.check(
        "/window has all standing containers", expected <= entities.keys(), expected - entities.keys()
    )
    burner, hoarder = (entities.get(one.cgroup, {"metrics": {}}) for one in (pods.BURNER, pods.HOARDER))
    used = [value for name, value in burner["metrics"].items() if name in ("mean_cpu", f"mean_{V2_USAGE}")]
    report.check(
        f"/window: the burner's mean is the kernel's {cores:.3f} cores within 0.03",
        len(used) == 1 and abs(used[0] - cores) < 0.03,
        burner["metrics"],
    )
    report.check(
        "/window: the hoarder's mean memory is 200 MiB within 2 %",
        abs(hoarder["metrics"].get("mean_memory", 0) / pods.HOARD_BYTES - 1) < 0.02,
        hoarder["metrics"],
    )
    samples = burner.get("samples_count", 0)
    # Ten ticks in ten seconds, less what a busy host makes it miss.
    report.check(
        f"/window counts its samples: {samples}", WINDOW_SECONDS / 2 <= samples <= WINDOW_SECONDS + 1
    )


def check_processes(report: Report, processes: pods.Processes) -> None:
    owners = {one.labels.get("pid"): one.labels for one in agent.scrape() if one.name == "cpu_process_info"}
    for container in (pods.BURNER, pods.WRITER, pods.PRESSER):
        labels = owners.get(str(processes[container].pid), {})
        report.check(
            f"the process of {container.name} belongs to its pod", labels.get("pod") == container.pod, labels
        )


def read_proportional_bytes(cgroup: Path) -> float:
    """Pss of all its processes: a page that two share counts half for each."""
    pids = [pid for file in cgroup.rglob("cgroup.procs") for pid in file.read_text().split()]
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    return float(sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")))


def check_proportional_memory(report: Report) -> None:
    """The slowest of the sources: every 30 s, with pauses."""
    for container in (pods.HOARDER, pods.CROWD):
        wait_until(lambda c=container: agent.total(agent.scrape(), PSS, c), PATIENCE_SECONDS)  # type: ignore[misc]
        value, truth = agent.total(agent.scrape(), PSS, container), read_proportional_bytes(container.path)
        # Other busyboxes come and go and share its pages.
        near = value is not None and abs(value - truth) <= SLACK_BYTES
        report.check(f"{PSS} of {container.name} is the kernel's", near, f"published {value}, kernel {truth}")


def check_the_agent(report: Report, processes: pods.Processes, out: Path) -> None:
    started = time.monotonic()
    span = Span()
    wait_until(span.has_caught_up, PATIENCE_SECONDS)
    report.note(f"every counter caught up after {time.monotonic() - started:.1f} s")
    (out / "metrics.prom").write_text(agent.fetch("/metrics"))
    check_every_metric(report, span)
    check_identity(report, span)
    check_node(report, span)
    check_network(report, processes[pods.TALKER])
    check_processes(report, processes)
    check_window(report)
    check_proportional_memory(report)
    check_status(report)
