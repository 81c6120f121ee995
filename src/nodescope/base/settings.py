"""
Settings: what can be turned, its default, and what changes if you turn it.

One frozen dataclass. A docstring stands under every field; the settings page
is generated from it. Units are in the names: `_seconds` accepts 500ms or 2m,
`_bytes` accepts 64MiB, `_ratio` lies between 0 and 1.
"""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def _bounded(
    default: object, *, least: float | None = None, most: float | None = None, choices: tuple[str, ...] = ()
) -> Any:
    return field(default=default, metadata={"least": least, "most": most, "choices": choices})


@dataclass(frozen=True, slots=True)
class Settings:
    node: str = ""
    """
    The node's name in answers, in the archive and in Kubernetes.

    Empty means the machine's host name. NODE_NAME is understood, too.
    """

    cluster: str = ""
    """A cluster's name for the session manifest. CLUSTER_NAME is understood, too."""

    root: Path = Path("/")
    """
    Where the node's /proc, /sys and /var/log are found.

    A container with the host mounted at /host says /host; a captured fixture
    node is a folder like any other.
    """

    listen: tuple[str, ...] = ("127.0.0.1:9100",)
    """
    HOST:PORT of every listener; repeat it for more than one.

    Loopback unless you say otherwise: whoever can connect can read what runs
    on this machine. EXPORTER_PORT adds one more.
    """

    probe_listen: str = ""
    """
    HOST:PORT of one more listener that answers /healthz and /readyz and nothing else; empty means none.

    It has a thread and connections of its own: a crowd at the other listeners
    does not keep a probe waiting. Plain HTTP, without a token: it reports health only.
    """

    fpga_listen: str = ""
    """
    HOST:PORT of one more listener that takes FPGA events and nothing else; empty means none.

    For programs that report their FPGA use over the network: whoever reaches this port can
    post events, and reads nothing. The other listeners take events as well.
    """

    allow_host: tuple[str, ...] = ()
    """
    Names that requests may ask for in their Host header, beside loopback's own and addresses.

    An agent that listens on loopback only answers to no other name, so that a web page
    cannot reach it by a name of its own. On other addresses every name is answered
    unless this is set.
    """

    interval_seconds: float = _bounded(1.0, least=0.1, most=60.0)
    """
    The length of a tick.

    Halving it doubles the agent's CPU time and the archive's size. Below a second, only what is
    read at every tick is read more often; raise budget_ratio with it.
    """

    ring_seconds: float = _bounded(120.0, least=30.0, most=3600.0)
    """How far back windows reach. Memory grows with it until ring_bytes."""

    ring_bytes: int = _bounded(64 * 2**20, least=2**20)
    """
    The most memory that samples may take in the ring.

    When it is full the oldest frames of the largest table leave first, and
    the accepted window of that scope shrinks accordingly.
    """

    memory_bytes: int = _bounded(224 * 2**20, least=32 * 2**20)
    """
    The most resident memory that the agent's process should take.

    Over it the ring is shortened first; then containers are left out, the
    newest first and those that users nest before the node's own. Both come back
    by themselves; /status says what was given up. Keep it below the limit of
    the agent's container (256 MiB in the chart).
    """

    budget_ratio: float = _bounded(0.05, least=0.001, most=1.0)
    """
    The share of one core that reading the node may cost.

    Over it, the costliest class of files is read every 5 s, then every 30 s;
    /status says which. It comes back by itself when there is room.
    """

    process_top: int = _bounded(25, least=1, most=1000)
    """How many processes are kept by CPU, and as many by memory."""

    services: str = _bounded("auto", choices=("auto", "always", "never"))
    """
    Whether cgroups that are no containers (services, slices) are sampled.

    auto samples them while the node has no container, so that a first look is
    never empty.
    """

    cgroup_levels: bool = False
    """
    Whether the root cgroup, its slices and each pod as a whole are published, as cAdvisor does.

    For dashboards that ask for id="/" or for pods. Their series have the names of
    containers' and an empty label container: a query that adds up containers
    must leave them out.
    """

    kubelet_cgroup_root: str = ""
    """
    The cgroup below which kubelet keeps its pods, as its --cgroup-root says.

    Empty means the top, or what kubelet's own command line and configuration
    say. Pods elsewhere are measured, but not given the names of Kubernetes.
    """

    pss: bool = True
    """
    Whether smaps_rollup is read for the proportional memory of containers.

    It walks page tables under the process' memory lock; the budget keeps it
    slow, and false turns it off.
    """

    pcm_command: str = "pcm"
    """
    The program that counts hardware events, with arguments of its own if any.

    Found in PATH and in /usr/sbin. It is run as `pcm INTERVAL -csv -f`; where
    there is none, perf, resctrl, rapl and cpufreq give what they can.
    """

    pcm_url: str = ""
    """
    A pcm-sensor-server to ask, such as http://localhost:9738, instead of running pcm.

    Its numbers are whole ones; pcm's CSV has two decimals.
    """

    pcm_per_core: bool = True
    """
    Whether pcm counts every core, for windows with cores=3,4,5.

    false halves what pcm costs on large machines.
    """

    perf_containers: tuple[str, ...] = ()
    """
    Containers whose hardware counters are read all the time: namespace/pod/container, a name, or an id.

    `*` stands for anything. Others are counted for a minute when
    /window?scope=container&perf=NAME asks for them. Every context switch into
    or out of such a container costs a little more.
    """

    perf_descriptors: int = _bounded(512, least=0)
    """
    Descriptors for the counters of containers: four per core and container.

    Containers that do not fit are not counted, and /status says how many.
    """

    mem_bw_peak_bytes: int | None = _bounded(None, least=1)
    """
    Bytes per second that memory can move at the most, for mem_bw_util.

    Unset takes the highest rate seen since the start; /status says which is used.
    """

    reader: str = _bounded("auto", choices=("auto", "native", "python"))
    """
    How files are read: by the native reader, or in plain Python.

    auto takes the native one where it was built. Both give the same values;
    the plain one costs about twice as much.
    """

    gpu_interval_seconds: float | None = _bounded(None, least=0.1, most=3600.0)
    """
    How often GPUs are asked; COLLECTION_INTERVAL is understood, too.

    Unset takes what each way of asking can bear: a second for NVML and sysfs, 30
    for rocm-smi, amd-smi and nvidia-smi, which start a process each time. The
    tick of everything else stays.
    """

    nvidia_smi: str = _bounded("auto", choices=("auto", "never"))
    """
    Whether nvidia-smi is run where the driver's library cannot be loaded.

    auto runs it every 30 s (gpu_interval_seconds) where it is installed and NVML is not
    to be had in this process; it is never run beside NVML.
    """

    amd_tools: str = _bounded("auto", choices=("auto", "always", "never"))
    """
    Whether rocm-smi and amd-smi are run beside the kernel's own files.

    auto runs one where the files leave out utilisation, memory or power of a
    card; always lets it fill in what else is missing; never runs none.
    """

    dcgm_names: bool = False
    """
    Whether GPUs are also published under the names of NVIDIA's DCGM exporter.

    For dashboards and autoscalers that ask for DCGM_FI_DEV_GPU_UTIL. The same
    values, in its units and with its labels; the GPU tables double.
    """

    amd_names: bool = False
    """
    Whether AMD GPUs are also published under the names of AMD's device-metrics-exporter.

    For its dashboards, which ask for gpu_gfx_activity and gpu_used_vram. The same values, in
    its units and with its labels; what its profiler counts (gpu_prof_*) is not among them.
    """

    names: str = _bounded("compatible", choices=("compatible", "own"))
    """
    `own` puts nodescope_ before every container_ and node_ name that is not ours alone.

    For clusters that keep scraping kubelet and node_exporter and must not
    count twice.
    """

    systemd: str = _bounded("cgroups", choices=("cgroups", "dbus", "never"))
    """
    Where units of systemd are read: from cgroups, or from systemd itself over D-Bus.

    Cgroups show which services run, since when and with how many tasks. dbus also
    tells which have failed, restarts, sockets and timers; it needs the host's
    /run/dbus/system_bus_socket.
    """

    textfile_directory: str = ""
    """
    A folder whose *.prom files are published with our own metrics; none unless set.

    As node_exporter's --collector.textfile.directory: scripts leave their figures
    there. At most 100 files of 1 MiB are read; one that is wrong is refused
    whole, which node_textfile_scrape_error and the log say.
    """

    fpga_window_seconds: float = _bounded(300.0, least=10.0, most=86400.0)
    """
    How far back FPGA usage and reconfigurations count as recent.

    The scheduler compares nodes by it: all nodes of a cluster should agree.
    """

    fpga_bitstream_seconds: float = _bounded(60.0, least=1.0, most=86400.0)
    """For how long a bitstream counts as loaded after it was last reported."""

    sources_exclude: tuple[str, ...] = ()
    """Sources that are not asked at all."""

    series_limit: int = _bounded(0, least=0)
    """Lowers every scope's limit of live series to this number; 0 keeps the defaults."""

    label: tuple[str, ...] = ()
    """Your own tags, key=value: in nodescope_labels_info and the session manifest."""

    metrics_path: str = "/metrics"
    """One more path that answers like /metrics. METRICS_PATH is understood, too."""

    token_file: Path | None = None
    """
    A file with a bearer token that every request but the probes must carry.

    Read again when it changes, so that a rotated secret needs no restart.
    """

    tls_cert: Path | None = None
    """The certificate chain (PEM) for HTTPS; needs tls_key."""

    tls_key: Path | None = None
    """The private key (PEM) for tls_cert."""

    tls_client_ca: Path | None = None
    """Only clients with a certificate of this authority may connect."""

    log_level: str = _bounded("info", choices=("debug", "info", "warning", "error"))
    """How much is written to stderr. LOG_LEVEL is understood, too."""

    archive: bool = True
    """Whether samples are kept on disk."""

    data: Path | None = None
    """
    The folder of the archive; unset means $XDG_STATE_HOME/nodescope (~/.local/state/nodescope).

    One agent a folder. Its files are plain Parquet, for any tool to read.
    """

    identifier: str = ""
    """
    The name of this agent's partition in the data folder; empty means the node's name.

    A pod's name works, too, but changes with every rollout.
    """

    archive_include: tuple[str, ...] = ()
    """Metrics that are archived, as patterns such as cgroup.*; empty means all."""

    archive_exclude: tuple[str, ...] = ()
    """Metrics that are not archived, as patterns; wins over archive_include."""

    rotation_seconds: float = _bounded(90.0, least=1.0, most=3600.0)
    """
    How long a segment of the log grows before it becomes Parquet.

    Shorter makes samples visible to other tools sooner, and more, smaller files.
    """

    wal_sync_seconds: float = _bounded(5.0, least=0.1, most=600.0)
    """
    How often the log is forced to the disk: what a power cut may cost.

    A killed process loses nothing of it: every tick is handed to the kernel at once.
    """

    retention_days: float = _bounded(7.0, least=0.01)
    """Samples older than this leave; rollups stay for rollup_days."""

    retention_bytes: int = _bounded(4 * 2**30, least=2**20)
    """The most the archive may take; the oldest files leave first, rollups last."""

    retention_free_bytes: int = _bounded(512 * 2**20, least=0)
    """
    What is left free on the archive's file system.

    Below it the oldest files leave early; below half of it the archive pauses.
    """

    rollup_days: float = _bounded(90.0, least=0.01)
    """One-minute rollups older than this leave."""

    copy_to: str = ""
    """
    An object store that the consolidator copies finished files to: s3://, gs://, abfs:// or file://.

    Credentials come from the environment only. Retention then waits for the
    copy, unless the disk runs full.
    """

    copy_rate_bytes: int = _bounded(1 << 30, least=1024)
    """
    Bytes a second that the copy may use, sending and reading back together; 1 GiB is more than a node has.

    Below what the node writes, the copy falls behind, and nodescope_copy_lag_seconds grows.
    """

    kubernetes: bool = True
    """
    Whether the Kubernetes API is used where an account is at hand.

    For the names of pods, and for what `annotate` asks for.
    """

    kubeconfig: str = ""
    """
    A kubeconfig for the Kubernetes API, where the pod has no account of its own.

    KUBECONFIG is understood, too. A user that needs a program run (exec) is
    refused; a token or a client certificate is accepted.
    """

    annotate: tuple[str, ...] = ("fpga",)
    """
    What is written for schedulers: fpga, window, workloads, or nothing.

    fpga is written from the first FPGA event on; window (20 s means and p95,
    health) always. On material change, at most every 10 s, at least every 60 s.
    workloads (what one pod of each uses, by name) is renewed every 5 minutes.
    """

    lease: bool = True
    """
    Whether window and workloads are annotations of a Lease, node.NAME, in place of the Node.

    A write of a Node is sent to everybody who watches nodes. Where the account may
    not write Leases, the Node is written. fpga is always at the Node.
    """

    lease_namespace: str = ""
    """The namespace of these Leases; empty for the account's own, or nodescope where it has none."""

    watch: bool = True
    """
    Whether the agent looks for what is wrong on its node, every ten seconds, and tells it as findings.

    It takes at most 0.3 % of a core and 24 MiB at 100 containers. Findings are
    on /findings and /metrics, in the archive, and in findings.json of the data folder.
    """

    kubernetes_events: bool = False
    """
    Whether findings about pods are told as Events of these pods, for `kubectl describe pod`.

    One for each finding and state, at most 25 at once and one every 12 s after that. The
    account needs create and patch on events; the chart's policy narrows it to
    pods of this node.
    """

    alertmanager_url: tuple[str, ...] = ()
    """
    Alertmanagers that are told what is worth a page, such as http://alertmanager:9093; repeat it for each of a cluster.

    Findings that are kill or hurt are posted to /api/v2/alerts under the labels of our Prometheus
    rules. While one is away they wait in the data folder.
    """

    alertmanager_token_file: Path | None = None
    """A file with a bearer token for alertmanager_url; read again for every request."""

    alertmanager_basic_file: Path | None = None
    """A file with one line user:password for alertmanager_url; read again for every request."""

    alertmanager_ca: Path | None = None
    """The authority (PEM) of an Alertmanager with HTTPS; unset means those that the system trusts."""

    alertmanager_resend_seconds: float = _bounded(60.0, least=1.0, most=3600.0)
    """
    How often an alert that still holds is sent again.

    Less than Alertmanager's resolve_timeout (5 min unless changed), or it takes every alert for over in between.
    """


FIELDS = {item.name: item for item in dataclasses.fields(Settings)}
