"""
The one module that knows all folders: loads settings, builds, connects.

Time, roots, environment and randomness are reached for here and handed on.
"""

import gc
import os
import resource
import socket
import sys
import tomllib
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nodescope import __version__
from nodescope.base.clock import Clock, SystemClock, read_boot_id
from nodescope.base.errors import SettingsRejected
from nodescope.base.perf_requests import PerfRequests
from nodescope.base.settings import Settings
from nodescope.base.settings_load import LoadedSettings, choose_data
from nodescope.base.text import hint_nearest
from nodescope.base.workload import find_workload
from nodescope.collect.containers.cgroup_path import parse_cgroup_path
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.native import describe_reader, load_native
from nodescope.collect.files.roots import Descriptors, open_root
from nodescope.collect.run.call_runner import CallRunner
from nodescope.collect.run.guard import run_guarded
from nodescope.collect.run.sampler import Sampler
from nodescope.collect.run.source import Context, MakeBatchSource, MakeCallSource
from nodescope.collect.sources import BATCH_SOURCES, CALL_SOURCES
from nodescope.fpga.tracker import FpgaTracker
from nodescope.hold.memory_budget import MemoryBudget
from nodescope.hold.ring import Ring
from nodescope.keep.annotation_file import add_annotation
from nodescope.keep.archiver import ArchivePlan, Archiver
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder, clean_identifier
from nodescope.keep.retention import build_limits
from nodescope.keep.session import Session, render_time
from nodescope.kube.account import Access, KubeAccount, find_account
from nodescope.kube.client import Client
from nodescope.publish.agent_http import Agent, build_app
from nodescope.publish.annotated_object import LeaseObject, NodeObject
from nodescope.publish.annotation import AnnotationCounters, Annotator, AnnotatorTurns
from nodescope.publish.annotation_content import (
    AnnotationContent,
    build_fpga_content,
    build_window_content,
    read_load,
)
from nodescope.publish.live import Live
from nodescope.publish.scrape import Scrape
from nodescope.publish.self_metrics import Obituaries, SelfMetrics, read_resident_bytes
from nodescope.publish.tell.alert_sender import AlertSender, name_alerts_file
from nodescope.publish.tell.alert_servers import build_alert_senders, check_alertmanager
from nodescope.publish.tell.pod_event_sender import FILE_NAME as EVENTS_FILE
from nodescope.publish.tell.pod_event_sender import PodEventSender
from nodescope.publish.textfile import TextfileFolder
from nodescope.publish.workload_content import build_workloads_content
from nodescope.serve.allocator import give_back_memory
from nodescope.serve.step_thread import StepThread
from nodescope.serve.token import Token
from nodescope.watch.finding_store import FILE_NAME, FindingStore
from nodescope.watch.watcher import Watcher

# Left for connections (384 and the probes'), logs and what libraries open behind our back.
SPARE_DESCRIPTORS = 512
# Objects made before the collector looks for cycles; Python's own is 700.
COLLECT_OBJECTS = 10_000
# While containers stay the same, all objects are looked at every tenth half minute: that takes 4 ms.
COLLECT_TURNS = 10
# What may be written to this node's annotations.
ANNOTATIONS = ("fpga", "window", "workloads")
# Those that change all the time, or are long.
LEASED = ("window", "workloads")
# CAP_* numbers of linux/capability.h, with what each gives us.
CAPABILITIES = {
    "CAP_DAC_READ_SEARCH": (2, "files of other users when not root"),
    "CAP_SYS_PTRACE": (19, "smaps_rollup and network namespaces of other users' processes"),
    "CAP_SYS_RESOURCE": (24, "raising the limit of open files"),
    "CAP_SYS_ADMIN": (21, "nothing we use"),
    "CAP_PERFMON": (38, "hardware counters"),
    "CAP_SYSLOG": (34, "the kernel's log"),
}


def raise_descriptor_limit() -> int:
    """The soft limit raised to the hard one; how many may stay open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # macOS refuses "unlimited"; some sandboxes refuse any change.
        wanted = 65536 if hard == resource.RLIM_INFINITY else hard
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(64, soft - SPARE_DESCRIPTORS)


def read_permissions() -> dict[str, Any]:
    """What this process may do: user and the capabilities we know a use for."""
    held: dict[str, Any] = {"user": os.geteuid()}
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return held
    mask = next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)
    held["capabilities"] = {
        name: {"held": bool(mask >> bit & 1), "for": use} for name, (bit, use) in CAPABILITIES.items()
    }
    return held


def build_context(settings: Settings) -> Context:
    """What sources need to read this machine's files."""
    if not settings.root.is_dir():
        raise SettingsRejected(f"root = {str(settings.root)!r} is not accepted: no such folder")
    native, reason = load_native(settings.reader)
    if native is None and settings.reader == "native":
        raise SettingsRejected(f"reader = native: {reason}; accepted here: python, auto")
    root = open_root(settings.root, native)
    return Context(
        root=root,
        descriptors=Descriptors(raise_descriptor_limit()),
        settings=settings,
        names=ContainerNames(root),
        live_containers=LiveContainers(),
        page_bytes=read_page_bytes(settings.root),
        ticks_per_second=os.sysconf("SC_CLK_TCK"),
    )


def find_access(loaded: LoadedSettings, environment: Mapping[str, str]) -> Access:
    """
    The account for the Kubernetes API, or why there is none.

    A kubeconfig that was asked for must be usable; one that merely lies in
    the shell's KUBECONFIG is no reason not to start.
    """
    settings = loaded.settings
    if not settings.kubernetes:
        return Access(absent="turned off: kubernetes = false")
    try:
        account = find_account(settings.kubeconfig, environment)
    except SettingsRejected as error:
        if loaded.origins["kubeconfig"] != "KUBECONFIG":
            raise
        return Access(absent=str(error))
    return Access(account) if account else Access()


def check_annotate(settings: Settings) -> None:
    for word in settings.annotate:
        if word not in ANNOTATIONS:
            raise SettingsRejected(f"annotate = {word!r} is not accepted; accepted: {', '.join(ANNOTATIONS)}")


def check_tellers(settings: Settings) -> None:
    if settings.kubernetes_events and not settings.watch:
        raise SettingsRejected("kubernetes_events tells what the watcher finds: it needs watch = true")
    check_alertmanager(settings)


def read_page_bytes(root: Path) -> int:
    """This machine's page size; a fixture node says its own."""
    described = root.parent / "node.toml"
    if described.exists():
        return int(tomllib.loads(described.read_text()).get("page_bytes", 4096))
    return resource.getpagesize()


def choose_sources(settings: Settings) -> tuple[list[MakeBatchSource], list[MakeCallSource]]:
    """Every source but the excluded; an exclusion that names none is refused."""
    known = [*(make.name for make in BATCH_SOURCES), *(make.name for make in CALL_SOURCES)]
    for name in settings.sources_exclude:
        if name not in known:
            raise SettingsRejected(
                f'sources_exclude: no source "{name}"{hint_nearest(name, known)} accepted: {", ".join(known)}'
            )
    return (
        [make for make in BATCH_SOURCES if make.name not in settings.sources_exclude],
        [make for make in CALL_SOURCES if make.name not in settings.sources_exclude],
    )


@dataclass(slots=True)
class Parts:
    """The agent, connected but not started."""

    node: str
    loaded: LoadedSettings
    clock: Clock
    context: Context
    ring: Ring
    sampler: Sampler
    own: SelfMetrics
    scrape: Scrape
    agent: Agent
    run_id: str
    archiver: Archiver | None = None
    annotator: AnnotatorTurns | None = None
    """Writes this node's annotations, where there is an account that may."""
    watcher: Watcher | None = None
    """Looks for what is wrong, unless settings say not to."""
    events: PodEventSender | None = None
    """Tells it as Events of pods, where settings say so and there is an account."""
    alerts: tuple[AlertSender, ...] = ()
    """Tell it to Alertmanagers, one each."""

    def make_threads(self) -> list[StepThread]:
        """Those that talk to servers, each in its own time."""
        tellers = (self.events, *self.alerts, self.annotator)
        return [teller.make_thread() for teller in tellers if teller is not None]


def parse_label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise SettingsRejected(
            f"label = {text!r} is not accepted; accepted: key=value, the key of letters, digits and _"
        )
    return key, value


def build_parts(
    loaded: LoadedSettings, clock: Clock | None = None, environment: Mapping[str, str] = MappingProxyType({})
) -> Parts:
    settings = loaded.settings
    clock = clock or SystemClock()
    node = settings.node or socket.gethostname()
    fpga = FpgaTracker(clock, settings.fpga_window_seconds, settings.fpga_bitstream_seconds)
    check_annotate(settings)
    check_tellers(settings)
    access = find_access(loaded, environment)
    perf = PerfRequests(clock)
    context = build_context(settings)
    context = replace(context, fpga=fpga, node=node, clock=clock, kubernetes=access, perf_requests=perf)
    ring = Ring(settings.ring_seconds, settings.ring_bytes, settings.interval_seconds)
    obituaries = Obituaries()
    batch, calls = choose_sources(settings)
    callers = [CallRunner(make, context, clock) for make in calls]
    sampler = Sampler(batch, callers, [ring, obituaries], context, clock)
    labels = tuple(parse_label(text) for text in settings.label)
    own = SelfMetrics(sampler.counters, ring, obituaries, labels)
    folder = settings.textfile_directory
    textfiles = TextfileFolder(folder) if folder else None
    scrape = Scrape(ring, own, clock, settings.names, textfiles=textfiles)
    memory = build_memory_budget(settings, ring, scrape, context)
    sampler.connect(memory)
    own.memory = memory.status
    watcher = None
    if settings.watch:
        watcher = Watcher(ring, FindingStore(node), clock, run_guarded, sampler.told.append)
        own.watcher = watcher
    run_id = uuid.uuid4().hex[:12]
    live = Live(ring, run_id, node)
    agent = Agent(
        node,
        loaded,
        ring,
        scrape,
        own,
        live,
        clock,
        sampler.status,
        read_permissions,
        describe_reader(settings.reader),
        fpga,
        perf,
        watcher,
    )
    contents: dict[str, AnnotationContent[Any]] = {
        "fpga": build_fpga_content(fpga),
        "window": build_window_content(partial(read_load, ring, clock)),
        "workloads": build_workloads_content(ring, clock),
    }
    annotator = None
    if access.account and settings.annotate:
        chosen = {word: contents[word] for word in settings.annotate}
        annotator = build_annotators(access.account, settings, node, chosen, clock, own.annotation)
    events = None
    if watcher and access.account and settings.kubernetes_events:
        events = PodEventSender(Client(access.account), watcher.store, clock, own.pod_events)
    elif settings.kubernetes_events:
        own.pod_events.reason = access.absent
    alerts = build_alert_senders(settings, watcher.store, clock) if watcher else ()
    own.alerts = tuple(one.counters for one in alerts)
    return Parts(
        node,
        loaded,
        clock,
        context,
        ring,
        sampler,
        own,
        scrape,
        agent,
        run_id,
        annotator=annotator,
        watcher=watcher,
        events=events,
        alerts=alerts,
    )


def build_annotators(
    account: KubeAccount,
    settings: Settings,
    node: str,
    contents: Mapping[str, AnnotationContent[Any]],
    clock: Clock,
    counters: AnnotationCounters,
) -> AnnotatorTurns:
    """What changes often goes to a Lease, the rest to the Node."""
    at_node = NodeObject(Client(account), node)
    at_lease = LeaseObject(at_node, settings.lease_namespace or account.namespace, clock)
    leased = [content for word, content in contents.items() if settings.lease and word in LEASED]
    others = [content for content in contents.values() if content not in leased]
    places = ((at_node, others), (at_lease, leased))
    return AnnotatorTurns(
        [Annotator(place, chosen, clock, counters) for place, chosen in places if chosen], clock
    )


def build_memory_budget(settings: Settings, ring: Ring, scrape: Scrape, context: Context) -> MemoryBudget:
    live = context.live_containers
    # The memory of whoever looks at a captured node is not the node's affair.
    read_resident: Callable[[], float] = (lambda: 0.0) if context.root.is_fixture else read_resident_bytes
    turns, seen_version = 0, live.version

    def give_back() -> None:
        nonlocal turns, seen_version
        scrape.forget()
        turns += 1
        is_other = live.version != seen_version
        if is_other or turns % COLLECT_TURNS == 0 or read_resident() > settings.memory_bytes:
            seen_version = live.version
            # They remember thousands of containers, of which all may be gone.
            parse_cgroup_path.cache_clear()
            find_workload.cache_clear()
            # Containers that went leave cycles, few and large: the collector counts objects, not bytes.
            gc.collect()
        give_back_memory()

    return MemoryBudget(
        ring, settings.memory_bytes, read_resident, give_back, lambda: len(live.members), live.limit
    )


def connect_archive(parts: Parts, environment: Mapping[str, str]) -> None:
    """Makes the agent keep what it samples, unless settings say not to."""
    settings = parts.loaded.settings
    if not settings.archive:
        return
    session = Session(
        parts.run_id,
        clean_identifier(settings.identifier or parts.node),
        render_time(parts.clock.wall_ns()),
        parts.node,
        settings.cluster,
        round(settings.interval_seconds * 1000),
        settings.rotation_seconds,
        __version__,
        dict(parse_label(text) for text in settings.label),
        read_boot_id(),
    )
    plan = ArchivePlan(
        settings.rotation_seconds,
        settings.wal_sync_seconds,
        build_limits(settings),
        settings.archive_include,
        settings.archive_exclude,
        settings.ring_seconds,
        settings.ring_bytes,
    )
    folder = DataFolder(choose_data(settings, environment).absolute())
    archiver = Archiver(folder, session, plan, parts.clock, Disk())
    parts.archiver = archiver
    parts.sampler.connect(archiver)
    parts.own.archive = archiver.status
    parts.agent = replace(parts.agent, annotate=partial(add_annotation, folder.path))
    if parts.watcher:
        parts.watcher.store.path = folder.path / FILE_NAME
    if parts.events:
        parts.events.ledger.path = folder.path / EVENTS_FILE
    for sender in parts.alerts:
        sender.ledger.path = folder.path / name_alerts_file(sender.counters.address)


def build_agent_app(parts: Parts) -> Any:
    settings = parts.loaded.settings
    return build_app(parts.agent, Token(settings.token_file) if settings.token_file else None)


def settle_process() -> None:
    """
    What makes a long-lived process calm.

    Nothing made before this is garbage: the collector need not look at it
    again, and at what comes later in fewer, larger looks: a tick makes some
    hundred objects, nearly all of which leave the ring in order. A waiting
    thread gets the interpreter after one millisecond, not five, so that a
    scrape does not make a tick late.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_OBJECTS, *gc.get_threshold()[1:])
    sys.setswitchinterval(0.001)
