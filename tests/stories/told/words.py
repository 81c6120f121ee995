"""Questions in words: find_metrics leads to the tool and the metric that answer them."""

import json
from collections.abc import Callable, Iterator, Sequence

from tests.stories.agent import Agent
from tests.stories.answers import RIGHT, Verdict, names_in, none, wrong
from tests.stories.generate.cluster import GIB, MIB, Workload
from tests.stories.generate.machine import pulses, ramp
from tests.stories.generate.noise import white
from tests.stories.story import Question, Scene, Story

KIND = "words"
# Words, and of the route any one that must stand in it: a tool, a study or a metric.
ROUTES: Sequence[tuple[str, tuple[str, ...]]] = (
    ("Does anything leak memory?", ("scan", "trend", "memory")),
    ("Right-size my workloads", ("rightsize",)),
    ("Which workloads are over-provisioned?", ("rightsize",)),
    ("Is there a noisy neighbour?", ("explain_incident", "pressure")),
    ("Why is checkout slow?", ("explain_incident", "summarize_container", "throttled", "pressure")),
    ("Is anything throttled?", ("throttled",)),
    ("Anything that spikes?", ("scan", "periodicity", "spike", "anomaly")),
    ("Was a pod evicted?", ("explain_incident", "summarize_node", "list_containers", "memory")),
    ("Which containers were OOM killed?", ("oom", "explain_incident")),
    ("Who uses the most CPU?", ("top_containers",)),
    ("What changed in the last hour?", ("explain_incident", "changepoint", "compare_windows", "scan")),
    ("What is idle?", ("top_containers", "rightsize", "scan")),
    ("Where do we waste memory?", ("rightsize", "top_containers", "memory_limit_share")),
    ("Compare this hour with the hour before", ("compare_windows",)),
    ("Is the node full?", ("summarize_node", "memory_limit_share", "filesystem")),
    ("Does the CPU of apigw go up and down regularly?", ("periodicity",)),
    ("When will the memory of apigw run out?", ("trend",)),
    ("Which pod sends the most over the network?", ("network_transmit",)),
    ("Is the disk slow?", ("pressure_io", "disk", "explain_incident")),
    ("How many restarts were there?", ("restarts", "list_containers", "summarize", "explain_incident")),
)
# "right-size" and the like led to these.
NOWHERE = ("network_receive", "network_transmit")


def routes(scene: Scene) -> Iterator[Question]:
    scene.node.run(Workload("apigw", memory_limit=1 * GIB), cpu=0.4)
    scene.node.run(Workload("checkout", memory_limit=1 * GIB), cpu=0.4)
    scene.fill()
    for words, wanted in ROUTES:
        yield Question(words, lead_to(words, wanted))


def lead_to(words: str, wanted: tuple[str, ...]) -> Callable[[Agent], Verdict]:
    def put(agent: Agent) -> Verdict:
        answer = agent.call("find_metrics", question=words)
        if answer.is_unsure or answer.status == "none":
            return none(answer.headline)
        first = json.dumps([answer.next, answer.findings[:1]])
        if any(word in first for word in wanted):
            return RIGHT
        return wrong(f"{first[:400]} has none of {wanted}")

    return put


def spikes(scene: Scene) -> Iterator[Question]:
    """One workload has bursts, the others only their noise."""
    node = scene.node
    period = float(scene.random.integers(240, 400))
    node.run(Workload("indexer"), cpu=pulses(period, 12, 0.1, 4.0), noise=white)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.ask("Anything that spikes?", node=node.name)
        if answer.is_unsure or answer.tool in ("find_metrics", "list_metrics"):
            return none(answer.headline)
        if answer.status == "none":
            return wrong(f"nothing spikes: {answer.headline}")
        first = answer.first_named(node.workloads)
        return RIGHT if first == "indexer" else wrong(f"{first}, not indexer: {answer.headline}")

    yield Question("Anything that spikes?", put)


def who_leaks(scene: Scene) -> Iterator[Question]:
    """One workload of many leaks."""
    node = scene.node
    path = ramp(0, node.seconds, 300 * MIB, 300 * MIB + float(scene.random.uniform(200, 400)) * MIB)
    node.run(Workload("mailer", memory_limit=2 * GIB), cpu=0.3, anon=path)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.ask("Which workload leaks memory?", node=node.name)
        if answer.is_unsure or answer.tool in ("find_metrics", "list_metrics"):
            return none(answer.headline)
        if answer.status == "none":
            return wrong(f"nobody leaks: {answer.headline}")
        first = answer.first_named(node.workloads)
        return RIGHT if first == "mailer" else wrong(f"{first}, not mailer: {answer.headline}")

    yield Question("Which workload leaks memory?", put)


def noisy(scene: Scene) -> Iterator[Question]:
    """Asked in words, without a time: is there a noisy neighbour?"""
    node = scene.node
    at = scene.second(0.6, 0.75)
    node.run(Workload("checkout"), 2, cpu=0.7)
    node.run(Workload("etl", namespace="batch"), start=at, cpu=0.9 * node.cores)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        words = "Is there a noisy neighbour that slows checkout down?"
        answer = agent.ask(words, node=node.name, container="checkout", at=scene.iso(at + 240))
        if answer.is_unsure or answer.tool in ("find_metrics", "list_metrics"):
            return none(answer.headline)
        told = names_in(answer.told, ["etl"])
        return RIGHT if told else wrong(f"etl is not told: {answer.headline}")

    yield Question("Is there a noisy neighbour that slows checkout down?", put)


STORIES = (
    Story("words-lead-to-tools", KIND, routes, hours=0.5, containers=12, small=5),
    Story("what-spikes", KIND, spikes),
    Story("who-leaks", KIND, who_leaks),
    Story("noisy-neighbour-in-words", KIND, noisy),
)
