"""Nodes as a whole: clocks, gaps, figures that cannot be, and times as people write them."""

from collections.abc import Callable, Iterator

import numpy as np
from tests.stories.agent import Agent
from tests.stories.answers import RIGHT, Answer, Verdict, any_near, names_in, near, none, wrong
from tests.stories.generate.cluster import GIB, MIB, Workload
from tests.stories.generate.machine import StoryNode, step
from tests.stories.generate.noise import white
from tests.stories.story import MINUTE, QUIET, Question, Scene, Story

from nodescope.base.block import Floats

AHEAD_MS = 47 * 60_000
NODES = ("node-a", "node-b", "node-c")


def three_nodes(scene: Scene) -> list[StoryNode]:
    """The clock of the last is 47 minutes ahead; the busiest container is on the first."""
    nodes = [scene.add_node(name) for name in NODES]
    nodes[2].ahead_ms = AHEAD_MS
    nodes[0].run(Workload("matcher"), cpu=4.5)
    for node in nodes:
        node.run(Workload("catalog"), cpu=0.8)
        scene.fill(node)
    return nodes


def clock_is_ahead(scene: Scene) -> Iterator[Question]:
    three_nodes(scene)
    yield Question("Which nodes are there, and is their data up to date?", ask_nodes)
    yield Question("Who uses the most CPU in the cluster in the last 20 minutes?", ask_all_nodes)


def ask_nodes(agent: Agent) -> Verdict:
    answer = agent.call("list_nodes")
    if answer.is_unsure:
        return none(answer.headline)
    blamed = [one for one in told_old(answer) if one in NODES[:2]]
    if blamed:
        return wrong(f"{blamed} are called old: {answer.text[:400]}")
    skew = answer.numbers(
        "ahead_seconds", "skew_seconds", "clock_ahead_seconds", "clock_skew_seconds", "clock"
    )
    is_said = any_near(skew, AHEAD_MS / 1000, 0.1) or (
        answer.says("clock", "ahead") and answer.says(r"\b4[67](?:\.\d+)? ?min")
    )
    return RIGHT if is_said else wrong(f"the skew of 47 min is not told: {answer.text[:400]}")


def told_old(answer: Answer) -> list[str]:
    """Nodes in a sentence that calls data old or a node behind."""
    lines = [*answer.told.splitlines()]
    old = [
        line for line in lines if any(word in line for word in ("older", "stale", "behind", "out of date"))
    ]
    return [name for line in old for name in names_in(line, NODES)]


def ask_all_nodes(agent: Agent) -> Verdict:
    answer = agent.call("top_containers", by="cpu", from_="-20m")
    if answer.is_unsure:
        return none(answer.headline)
    if answer.first_named(["matcher", "catalog"]) != "matcher":
        return wrong(f"matcher is not first: {answer.headline}")
    blamed = [one for one in told_old(answer) if one in NODES[:2]]
    return wrong(f"{blamed} are called old: {answer.told[:400]}") if blamed else RIGHT


def gap(scene: Scene) -> Iterator[Question]:
    """Ten minutes without an agent are not ten minutes of nothing."""
    node = scene.node
    start = scene.second(0.3, 0.5)
    node.gaps.append((start, start + 10 * MINUTE))
    level = float(scene.random.uniform(0.7, 1.1))
    node.run(Workload("tariffd", memory_limit=1 * GIB), cpu=level, noise=white)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("summarize_container", container="tariffd", node=node.name)
        if answer.is_unsure:
            return none(answer.headline)
        cpu = [one for one in answer.findings if one.get("metric") == "cpu" and one.get("kind") == "summary"]
        values = answer.numbers("avg", "mean", "use")
        if not any_near(values, node.use("tariffd"), 0.06):
            return wrong(f"{node.use('tariffd'):.3f} is not among {values[:6]}: {answer.headline}")
        if any((one.get("evidence") or {}).get("min") == 0 for one in cpu):
            return wrong(f"zero cores in a gap: {cpu}")
        return RIGHT

    def did_it_fall(agent: Agent) -> Verdict:
        answer = agent.call(
            "analyze_container", container="tariffd", study="changepoint", metric="cpu", node=node.name
        )
        if answer.is_unsure:
            return none(answer.headline)
        falls = [one for one in answer.findings if one.get("metric") == "cpu" and is_to_nothing(one)]
        return wrong(f"a gap is told as a fall: {falls[0]['sentence']}") if falls else RIGHT

    yield Question("How much CPU does tariffd use on average?", put)
    yield Question("Did the CPU of tariffd fall?", did_it_fall)


def is_to_nothing(finding: dict[str, object]) -> bool:
    evidence = finding.get("evidence")
    after = evidence.get("after") if isinstance(evidence, dict) else None
    return isinstance(after, int | float) and after < 0.05


Fall = Callable[[Floats, int], Floats]
COURSES: tuple[Fall, ...] = (
    # A straight fall to nearly nothing, with short bursts.
    lambda second, at: np.interp(second, [at, at + 400], [3.0, 0.02]) + np.where(second % 97 < 2, 0.4, 0.0),
    # Bursts that fade, each from its own height.
    lambda second, at: 3.0 * np.exp(-((second - at) % 700) / 90) + 0.02,
    # A rise, and a sudden end.
    lambda second, at: np.where(second < at, 0.05 + 2.5 * second / at, 0.02),
)


def cooling(scene: Scene) -> Iterator[Question]:
    """A fitted line goes below zero or above every sample; the samples do not."""
    node = scene.node
    second = np.arange(node.seconds, dtype=np.float64)
    at = scene.second(0.4, 0.5)
    path = COURSES[scene.seed % len(COURSES)](second, at) * white(node.random, node.seconds)
    node.run(Workload("spindown"), cpu=path)
    scene.fill()

    def put(study: str) -> Question:
        def ask(agent: Agent) -> Verdict:
            answer = agent.call(
                "analyze_container", container="spindown", study=study, metric="cpu", node=node.name
            )
            if answer.is_unsure:
                return none(answer.headline)
            highest = node.peak("cpu", "spindown")
            for name in ("before", "after", "min", "max", "avg"):
                for value in answer.numbers(name):
                    if not -1e-9 <= value <= highest * 1.02:
                        return wrong(f"{name} {value} is not within 0 and {highest:.3f}: {answer.headline}")
            return RIGHT

        return Question(f"The CPU of spindown: {study}?", ask)

    yield put("changepoint")
    yield put("trend")


def written_times(scene: Scene) -> Iterator[Question]:
    """14:05, -1h30m, now-20m, epoch milliseconds; and names as people write them."""
    node = scene.node
    at = node.seconds // 2
    node.run(Workload("dawn"), cpu=step(at, 3.0, 0.1), noise=white)
    node.run(Workload("dusk"), cpu=step(at, 0.1, 3.0), noise=white)
    scene.fill()
    # Half an hour before the end, in several ways.
    later = at + 60
    clock = scene.iso(later)[11:16]
    forms = {
        "now-20m": {"from_": "now-20m"},
        "-0h20m": {"from_": "-0h20m"},
        clock: {"from_": clock},
        "epoch ms": {"from_": str(round(node.at(later) * 1000))},
        "by=CPU": {"by": "CPU", "from_": "-20m"},
        "cpu_usage": {"by": "cpu_usage", "from_": "-20m"},
    }
    for words, arguments in forms.items():
        yield Question(f"Who uses the most CPU, {words}?", who_is_late(scene, arguments))


def who_is_late(scene: Scene, arguments: dict[str, str]) -> Callable[[Agent], Verdict]:
    def put(agent: Agent) -> Verdict:
        given = {"by": "cpu", **arguments}
        answer = agent.call("top_containers", **given, node=scene.node.name)
        if answer.is_unsure:
            return none(answer.headline)
        first = answer.first_named(scene.node.workloads)
        return RIGHT if first == "dusk" else wrong(f"{first} is first, not dusk: {answer.headline}")

    return put


def which_node(scene: Scene) -> Iterator[Question]:
    """The same workload on three nodes, one of which is hot."""
    hot = int(scene.random.integers(0, 3))
    for number, name in enumerate(NODES):
        node = scene.add_node(name)
        node.run(Workload("ingest", "DaemonSet"), cpu=3.0 if number == hot else 0.5, anon=400 * MIB)
        scene.fill(node)

    def put(agent: Agent) -> Verdict:
        answer = agent.call("top_containers", by="cpu")
        if answer.is_unsure:
            return none(answer.headline)
        first = next((one for one in answer.findings if one.get("node")), {})
        level = scene.nodes[hot].use("ingest")
        told = names_in(answer.headline, NODES)
        is_there = first.get("node") == NODES[hot] or told[:1] == [NODES[hot]]
        if not is_there:
            return wrong(f"not on {NODES[hot]}: {answer.headline}")
        ok = any(near(value, level, 0.1) for value in answer.all_numbers(of="ingest"))
        return RIGHT if ok else wrong(f"{level:.2f} cores are not told: {answer.headline}")

    yield Question("On which node does ingest use the most CPU?", put)


STORIES = (
    Story("clock-is-ahead", "clocks", clock_is_ahead, on=QUIET, containers=12, small=4),
    Story("gap-is-not-zero", "missing data", gap, containers=40),
    Story("no-impossible-figures", "impossible figures", cooling, containers=40),
    Story("times-as-written", "words", written_times, containers=40),
    Story("which-node", "who uses the most", which_node, on=QUIET, containers=20, small=5),
)
