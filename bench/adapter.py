"""
The adapter: answers over 50 agents, with dead ones among them; memory at 50,000 pods; cost; load step to scale-up.

Agents of the first part are played by another process, over real sockets, with
answers as long as real ones. The memory is that of the real program in front of
a played API server that sends tables. The load step is seen by a real
kube-controller-manager through a real API server; a real agent reads cgroup files.
"""

import asyncio
import json
import multiprocessing
import random
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from tests.cluster.control_plane import ADMIN, ControlPlane, find_tools, free_port, wait_for
from tests.cluster.programs import Agent, Program, run_program
from tests.cluster.scaling import (
    PlayedKubelet,
    create_agent_pod,
    create_autoscaler,
    make_aggregation,
    make_serving_certificate,
    per_pod,
    read_replicas,
    run_adapter,
)
from tests.support import TurnableClock, copy_node

from bench.node import containers
from bench.pod_list import KUBECONFIG, play_api_server, read_peak_bytes
from bench.result import Goal, Options, Row, quantile
from nodescope.commands.cluster.adapter import AgentFleet
from nodescope.use.adapter.answers import Answers, NothingKnown
from nodescope.use.adapter.metric_table import parse_metric
from nodescope.use.adapter.pod_index import KnownPod, PodIndex
from nodescope.use.adapter.reports import FRESH_SECONDS, WINDOW_SECONDS, Reports

NODES, PODS, ROUNDS = 50, 100, 200
PODS_OF_AGENT = 100
LARGE_NODES, LARGE_PODS = 5_000, 50_000
STEPS = 9
# A step is nearly all waiting: so many run beside each other, each with a Deployment of its own.
STEPS_AT_ONCE = 3
SEED = 1
WARM_UP = 60
CPU = parse_metric("cpu", "pods")
# As the adapter asks.
ASKED_PATH = f"/pods?seconds={WINDOW_SECONDS}&form=lines"


def run(options: Options) -> list[Row]:
    """`--rounds N` takes at most N load steps; each row is told when it is known."""
    rows: list[Row] = []
    measures: tuple[Callable[[], list[Row]], ...] = (
        partial(measure_answers, 0),
        partial(measure_answers, NODES // 10),
        lambda: [measure_memory()],
        lambda: [measure_agent()],
        partial(measure_steps, min(STEPS, options.rounds)),
    )
    for measure in measures:
        found = measure()
        for row in found:
            print(f"{row.what}: {row.ours:.4g} {row.unit}", file=sys.stderr, flush=True)
        rows += found
    return rows


# -- answers ------------------------------------------------------------------


def make_report(number: int) -> bytes:
    """As an agent with a hundred pods has it; two of them are asked about."""
    names = ("cpu", "memory", "cpu_contention", "mem_pressure", "io_pressure", "cpu_throttled")
    chance = random.Random(number)
    head = {"newest_seconds": 0.5, "statistics": ["mean", "p95", "max"], "metrics": {}}
    lines = [json.dumps(head)]
    for pod in range(PODS_OF_AGENT):
        numbers = {name: [round(chance.random(), 4) for _ in range(3)] for name in names}
        lines.append(f"uid-{number}-{pod} {json.dumps(numbers, separators=(',', ':'))}")
    return "\n".join(lines).encode()


def play_agents(port: int, ready: Any) -> None:
    """One address of loopback for each node."""

    async def answer(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = make_report(number)
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with suppress(EOFError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(head + body)

    async def listen() -> None:
        for number in range(NODES):
            await asyncio.start_server(partial(answer, number), name_address(number), port)
        ready.set()
        await asyncio.Event().wait()

    asyncio.run(listen())


def name_address(number: int) -> str:
    return f"127.1.{number // 250}.{number % 250 + 1}"


@contextmanager
def run_agents() -> Iterator[int]:
    context = multiprocessing.get_context("fork")
    port, ready = free_port(), context.Event()
    child = context.Process(target=play_agents, args=(port, ready), daemon=True)
    child.start()
    ready.wait(30)
    try:
        yield port
    finally:
        child.terminate()
        child.join()


def make_index(dead: int) -> PodIndex:
    """Two pods on each node; the last nodes' agents have an address that takes connections and says nothing."""
    index = PodIndex("app=agent")
    for number in range(NODES):
        is_dead = number >= NODES - dead
        address = f"127.2.0.{number + 1}" if is_dead else name_address(number)
        rows = [
            ("agent", f"agent-{number}", address, number),
            *(("web", f"web-{number}-{pod}", "", pod) for pod in range(PODS // NODES)),
        ]
        for app, name, ip, pod in rows:
            about = {"namespace": "shop", "name": name, "uid": f"uid-{number}-{pod}", "labels": {"app": app}}
            status = {"phase": "Running", "podIP": ip}
            index.change({"metadata": about, "spec": {"nodeName": f"node-{number}"}, "status": status})
    return index


@contextmanager
def hold_dead(port: int, dead: int) -> Iterator[None]:
    """Listeners that never accept: as far as a client sees, a node that has stopped."""
    held = []
    for number in range(NODES - dead, NODES):
        listener = socket.socket()
        listener.bind((f"127.2.0.{number + 1}", port))
        listener.listen(1)
        held.append(listener)
    try:
        yield
    finally:
        for listener in held:
            listener.close()


async def ask_rounds(index: PodIndex, port: int) -> tuple[list[float], float, int]:
    """Seconds of each answer, CPU seconds of one, pods told in the last; agents are asked anew each time."""
    clock = TurnableClock()
    reports = Reports(AgentFleet(index, port, None, None).ask, clock)
    answers = Answers(index, reports)
    pods = index.select("shop", "app=web")
    taken, told = [], 0
    await warm_up(answers, pods)
    cpu = time.process_time()
    for _ in range(ROUNDS):
        clock.advance(round((FRESH_SECONDS + 1) * 1e9))
        began = time.perf_counter()
        told = len(await answers.read_pods(CPU, pods))
        taken.append(time.perf_counter() - began)
    return taken, (time.process_time() - cpu) / ROUNDS, told


async def warm_up(answers: Answers, pods: Sequence[KnownPod]) -> None:
    """Until the first agents have answered: on a busy machine their process takes a while to begin."""
    for _ in range(WARM_UP):
        with suppress(NothingKnown):
            await answers.read_pods(CPU, pods)
            return
        await asyncio.sleep(0.5)


def measure_answers(dead: int) -> list[Row]:
    with run_agents() as port, hold_dead(port, dead):
        taken, cpu, told = asyncio.run(ask_rounds(make_index(dead), port))
    if told != PODS - dead * PODS // NODES:
        raise SystemExit(f"{told} pods were told of {PODS}, with {dead} agents dead")
    what = f"adapter, {PODS} pods on {NODES} nodes" + (f", {dead} agents dead" if dead else "")
    if dead:
        return [Row(f"{what}: longest answer", max(taken), "s", goal=Goal(0.3, "ours"))]
    return [
        Row(f"{what}: answer p99", quantile(taken, 0.99), "s", goal=Goal(0.1, "ours")),
        Row(f"{what}: CPU of an answer", cpu, "s"),
    ]


# -- memory -------------------------------------------------------------------


def make_table(start: int, end: int, total: int) -> dict[str, Any]:
    names = ("Name", "Ready", "Status", "Restarts", "Age", "IP", "Node")
    return {
        "kind": "Table",
        "metadata": {"resourceVersion": "1", **({"continue": str(end)} if end < total else {})},
        "columnDefinitions": [{"name": name} for name in names],
        "rows": [make_row(number) for number in range(start, end)],
    }


def make_row(number: int) -> dict[str, Any]:
    """The first are the agents; the others belong to Deployments of twenty pods each."""
    is_agent = number < LARGE_NODES
    app = {"app.kubernetes.io/name": "nodescope", "app.kubernetes.io/component": "agent"}
    labels = app if is_agent else {"app": f"web-{number // 20}", "pod-template-hash": f"{number // 20:08x}"}
    name = f"agent-{number}" if is_agent else f"web-{number // 20}-{number:08x}-{number % 20}"
    about = {
        "name": name,
        "namespace": f"team-{number % 50}",
        "uid": f"{number:08x}-0000-4000-8000-000000000000",
        "creationTimestamp": "2026-11-17T12:00:00Z",
        "labels": labels,
        "managedFields": [{"manager": f"m{part}", "fieldsV1": {"f:x": "y" * 380}} for part in range(5)],
    }
    ip = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    cells = [name, "1/1", "Running", "0", "5m", ip, f"node-{number % LARGE_NODES}"]
    return {"cells": cells, "object": {"kind": "PartialObjectMetadata", "metadata": about}}


def answer_tables(path: str, query: dict[str, list[str]], pods: int) -> dict[str, Any]:
    if path.endswith("/extension-apiserver-authentication"):
        return {"data": {}}
    start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
    return make_table(start, min(pods, start + limit), pods)


def measure_list(pods: int) -> tuple[int, float, float]:
    """The most that the adapter held until its list was whole; pods and agents that it knows then."""
    with TemporaryDirectory() as scratch, play_api_server(pods, answer_tables) as api:
        folder = Path(scratch)
        (folder / "kubeconfig").write_text(KUBECONFIG.format(port=api))
        port = free_port()
        command = ["adapter", "--kubeconfig", str(folder / "kubeconfig"), "--listen", f"127.0.0.1:{port}"]
        command += [
            "--api-listen",
            f"127.0.0.1:{free_port()}",
            "--api-tls",
            str(make_serving_certificate(folder)),
        ]
        with run_program(command, folder / "log") as process:
            adapter = Program(f"http://127.0.0.1:{port}", process)
            wait_for("the list is whole", adapter.is_ready, 600)
            known = adapter.metric("nodescope_adapter_pods"), adapter.metric("nodescope_adapter_agents")
            return read_peak_bytes(process.pid), *known


def measure_memory() -> Row:
    peak, pods, agents = measure_list(LARGE_PODS)
    if (pods, agents) != (LARGE_PODS, LARGE_NODES):
        raise SystemExit(f"the adapter knows {pods:g} pods and {agents:g} agents")
    what = f"adapter, {LARGE_NODES:,} nodes and {LARGE_PODS:,} pods: most memory, first list included"
    return Row(what, peak, "resident", goal=Goal(192 * 2**20, "ours"))


# -- the agent's cost ---------------------------------------------------------


def measure_agent(rounds: int = 5, asked: int = 100) -> Row:
    """
    CPU of /pods over 100 containers on a connection that stays open, as an adapter has it.

    Spans without questions take turns with spans that have them: the median of the differences counts, and what equal
    spans differ by is told beside it. Questions come ten a second, more often than two adapters ask, so that they stand
    out; what two ask for costs as much each.
    """
    with containers(100, processes=1, pause_ms=1000), TemporaryDirectory() as scratch:
        port = free_port()
        command = ["agent", "--port", str(port), "--no-archive", "--no-kubernetes"]
        with run_program(command, Path(scratch, "log")) as process:
            agent = Agent(f"http://127.0.0.1:{port}", process)
            wait_for("the agent answers", agent.is_ready, 60)
            time.sleep(22)
            with httpx.Client(base_url=agent.url) as adapter:
                # The first answer loads what all others use, once in the life of an agent.
                length = len(adapter.get(ASKED_PATH).content)
                spans = [
                    (measure_span(agent, adapter, 0), measure_span(agent, adapter, asked))
                    for _ in range(rounds)
                ]
    each = max(0.0, statistics.median(busy - idle for idle, busy in spans) / asked)
    idles = [idle for idle, _ in spans]
    remark = (
        f"{each * 1e3:.2f} ms an answer of {length >> 10} KiB, twice in {FRESH_SECONDS:g} s; "
        f"equal spans differ by {(max(idles) - min(idles)) / asked * 1e3:.2f} ms an answer"
    )
    return Row(
        "agent, 100 containers: asked by two adapters",
        2 * each / FRESH_SECONDS,
        "core",
        goal=Goal(0.002, "ours"),
        remark=remark,
    )


def measure_span(agent: Agent, adapter: httpx.Client, asked: int, seconds: float = 10.0) -> float:
    """The agent's CPU seconds over ten seconds, with so many questions spread over them."""
    before, begun = read_thread_seconds(agent.process.pid), time.monotonic()
    for number in range(asked):
        adapter.get(ASKED_PATH).raise_for_status()
        time.sleep(max(0.0, begun + (number + 1) * seconds / asked - time.monotonic()))
    time.sleep(max(0.0, begun + seconds - time.monotonic()))
    took = time.monotonic() - begun
    return (read_thread_seconds(agent.process.pid) - before) * seconds / took


def read_thread_seconds(pid: int) -> float:
    """CPU of all threads in the scheduler's own nanoseconds: ticks of 10 ms are as long as three answers."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in files) / 1e9


# -- a load step --------------------------------------------------------------


def measure_steps(steps: int) -> list[Row]:
    """By the p95, as the guide shows it, and by the mean, which the 20 s before the step hold back."""
    chance = random.Random(SEED)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        tools = find_tools(("kube-controller-manager", "kubectl"))
        plane = ControlPlane(folder, tools, api_flags=make_aggregation(folder))
        try:
            plane.start()
            taken = take_steps(plane, folder, chance, steps)
        finally:
            plane.stop_all()
    return [describe_steps(metric, seconds) for metric, seconds in taken.items()]


def describe_steps(metric: str, taken: list[float]) -> Row:
    remark = f"seed {SEED}: {', '.join(f'{one:.0f}' for one in taken)} s; HPA's own period is 15 s"
    goal = Goal(20.0, "ours") if metric == "cpu_p95" else None
    return Row(
        f"load step to HPA scale-up by {metric}, median",
        statistics.median(taken),
        "s",
        goal=goal,
        remark=remark,
    )


def take_steps(
    plane: ControlPlane, folder: Path, chance: random.Random, steps: int
) -> dict[str, list[float]]:
    plane.kubectl("create", "namespace", "nodescope")
    plane.create_node("worker")
    root = copy_node("cgroup2-systemd", folder / "root")
    port = free_port()
    flags = ("--node", "worker", "--no-archive", "--no-kubernetes", "--port", str(port))
    tls = make_serving_certificate(folder)
    with run_program(["agent", "--root", str(root), *flags], folder / "agent.log") as process:
        wait_for("the agent answers", Agent(f"http://127.0.0.1:{port}", process).is_ready, 60)
        create_agent_pod(plane, "worker", "127.0.0.1")
        with run_adapter(plane, plane.kubeconfig(ADMIN), tls, "--agent-port", str(port)):
            plane.start_controllers("horizontal-pod-autoscaler-controller")
            with ThreadPoolExecutor(STEPS_AT_ONCE) as pool:
                return {
                    metric: list(
                        pool.map(
                            partial(take_step, plane, root, metric),
                            range(steps),
                            [chance.uniform(25, 40) for _ in range(steps)],
                        )
                    )
                    for metric in ("cpu_p95", "cpu")
                }


def take_step(plane: ControlPlane, root: Path, metric: str, number: int, before_seconds: float) -> float:
    """From 40 % of what is wanted to 160 %, after a while of quiet: seconds until the Deployment is larger."""
    name = f"{metric.replace('_', '-')}-{number}"
    with PlayedKubelet(plane, "worker", root, f"app={name}") as pods:
        plane.kubectl("create", "deployment", name, "--image=nginx")
        pods.cores = 0.2
        create_autoscaler(plane, name, per_pod(metric, "500m"))
        threading.Event().wait(before_seconds)
        began = time.monotonic()
        pods.cores = 0.8
        wait_for("it is larger", lambda: read_replicas(plane, name) > 1, 120)
        return time.monotonic() - began
