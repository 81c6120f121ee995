"""Limits, sizes and full nodes: what ends in a kill, what is only cache, what could be given back."""

from collections.abc import Iterator

from tests.stories.agent import Agent
from tests.stories.answers import RIGHT, Answer, Verdict, any_near, names_in, none, wrong
from tests.stories.generate.cluster import GIB, MIB, Workload
from tests.stories.generate.machine import StoryNode, pulses, step
from tests.stories.generate.metrics import FILESYSTEM_BYTES
from tests.stories.generate.noise import white
from tests.stories.story import QUIET, Question, Scene, Story

KIND = "limits"
RECLAIM = ("reclaim", "page cache", "cache", "anon", "working set")


def cache_at_limit(scene: Scene) -> Iterator[Question]:
    """Page cache fills the limit, as it should: 60 of 500 MiB cannot be given back."""
    node = scene.node
    node.run(
        Workload("filesrv", memory_limit=500 * MIB),
        cpu=0.2,
        anon=60 * MIB,
        file=2 * GIB,
        noise=white,
        read=8e6,
    )
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("summarize_container", container="filesrv", node=node.name)
        if answer.is_unsure:
            return none(answer.headline)
        alarms = [one for one in answer.findings if is_alarm(one)]
        told = " ".join([answer.headline, *(str(one.get("sentence")) for one in alarms)]).lower()
        if (alarms or "critical" in told) and not any(word in told for word in RECLAIM):
            return wrong(f"an alarm without a word of cache: {told[:300]}")
        return RIGHT

    yield Question("Is filesrv about to be killed for memory?", put)


def is_alarm(finding: dict[str, object]) -> bool:
    """A warning that memory runs out."""
    kind, metric = str(finding.get("kind", "")), str(finding.get("metric", ""))
    is_summary = kind in ("summary", "figures")
    text = str(finding.get("sentence", "")).lower()
    return (
        not is_summary
        and "memory" in f"{metric} {text}"
        and any(word in f"{kind} {text}" for word in ("limit", "critical", "full", "oom"))
    )


def anon_at_limit(scene: Scene) -> Iterator[Question]:
    """The same share of the limit, and nothing of it can be given back."""
    node = scene.node
    node.run(Workload("filesrv", memory_limit=500 * MIB), cpu=0.2, anon=488 * MIB, file=4 * MIB, noise=white)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("summarize_container", container="filesrv", node=node.name)
        if answer.is_unsure:
            return none(answer.headline)
        alarms = [one for one in answer.findings if is_alarm(one)]
        return RIGHT if alarms else wrong(f"no warning: {answer.headline}")

    yield Question("Is filesrv about to be killed for memory?", put)


def own_limit(scene: Scene) -> Iterator[Question]:
    """It is slow by its own limit; the node is idle, and nobody else is to blame."""
    node = scene.node
    work = Workload("encoder", namespace="media", cpu_limit=0.5, memory_limit=1 * GIB)
    at = scene.second(0.4, 0.6)
    node.run(work, cpu=step(at, 0.3, 0.9), anon=300 * MIB, noise=white)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("summarize_container", container="encoder", node=node.name)
        if answer.is_unsure:
            return none(answer.headline)
        is_told = answer.says("throttl", "cpu limit", "quota")
        first = " ".join(
            [answer.headline, *(str(one.get("sentence")) for one in answer.findings[:3])]
        ).lower()
        if is_told and any(word in first for word in ("throttl", "quota", "cpu limit")):
            return RIGHT
        return wrong(f"throttling is not among the first: {answer.headline}")

    yield Question("Why is encoder slow?", put)


def who_is_throttled(scene: Scene) -> Iterator[Question]:
    node = scene.node
    node.run(Workload("encoder", namespace="media", cpu_limit=0.5), cpu=0.9, noise=white)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.ask("Is anything throttled by its own CPU limit?", node=node.name)
        if answer.is_unsure or answer.tool in ("find_metrics", "list_metrics"):
            return none(answer.headline)
        first = answer.first_named(node.workloads)
        return RIGHT if first == "encoder" else wrong(f"{first}, not encoder: {answer.headline}")

    yield Question("Is anything throttled by its own CPU limit?", put)


def full_node(scene: Scene) -> Iterator[Question]:
    """Memory is nearly all used, by one that cannot give it back."""
    node = scene.node
    scene.fill()
    rest = node.rest_of_memory(0.9)
    node.run(Workload("warehouse", "StatefulSet", "data"), cpu=0.5, anon=rest, file=1 * GIB)

    def put(agent: Agent) -> Verdict:
        if agent.has("summarize_node"):
            answer = agent.call("summarize_node", node=node.name)
        else:
            answer = agent.ask("Is the node full?", node=node.name)
        if answer.is_unsure or answer.tool in ("find_metrics", "list_metrics"):
            return none(answer.headline)
        kernel = 1.5 * GIB
        used = (
            float(node.totals["anon"].mean()) + 0.15 * float(node.totals["file"].mean()) + kernel
        ) / node.memory_bytes
        values = answer.all_numbers()
        if any_near(values, used, 0.05) or any_near(values, used * node.memory_bytes, 0.05):
            return RIGHT
        return wrong(f"{used:.0%} of its memory is not told: {answer.headline}")

    yield Question("Is the node full?", put)


def full_disk(scene: Scene) -> Iterator[Question]:
    """The root file system has 3 % left."""
    node = scene.node
    node.filesystem_share = 0.97
    node.run(Workload("loggerd"), cpu=0.2, write=400e3)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        if agent.has("summarize_node"):
            answer = agent.call("summarize_node", node=node.name)
        else:
            answer = agent.ask("Is the disk of the node full?", node=node.name)
        if answer.is_unsure or answer.tool in ("find_metrics", "list_metrics"):
            return none(answer.headline)
        values = answer.all_numbers()
        truths = (0.97, 0.03, 0.03 * FILESYSTEM_BYTES, 0.97 * FILESYSTEM_BYTES)
        if any(any_near(values, truth, 0.01) for truth in truths):
            return RIGHT
        return wrong(f"97 % of the file system are not told: {answer.headline}")

    yield Question("Is the disk of the node full?", put)


def oversized(scene: Scene) -> Iterator[Question]:
    """A day of a service that uses a twentieth of its limits."""
    node = size_for_a_day(scene)

    def put(agent: Agent) -> Verdict:
        answer = ask_rightsize(agent, node)
        if answer.tool != "rightsize" or answer.is_error:
            return none(f"{answer.tool} sizes nothing: {answer.headline}")
        if answer.status != "found":
            return wrong(f"a day is enough: {answer.headline}")
        values = answer.all_numbers(of="reportgen")
        peak = node.peak("cpu", "reportgen")
        is_sized = any(
            0.8 * 0.2 <= value <= max(2.2 * peak, 1.5) for value in cpu_values(answer, "reportgen")
        )
        saved = any(2.0 <= value <= 4.0 for value in values)
        if not names_in(answer.told, ["reportgen"]):
            return wrong(f"reportgen is not told: {answer.headline}")
        return RIGHT if is_sized and saved else wrong(f"{values}: {answer.headline}")

    yield Question("Right-size reportgen: what should its CPU and memory limits be?", put)


def cpu_values(answer: Answer, name: str) -> list[float]:
    keys = ("cpu", "cpu_limit", "cpu_request", "recommended", "recommended_limit", "recommended_request")
    more = (
        "limit",
        "request",
        "recommended_cpu_limit",
        "recommended_cpu_request",
        "after",
        "to",
        "new_limit",
    )
    return answer.numbers(*keys, *more, "cpu_limit_recommended", "cpu_request_recommended", of=name)


def ask_rightsize(agent: Agent, node: StoryNode, container: str | None = "reportgen") -> Answer:
    if agent.has("rightsize"):
        known = {"container": container, "workload": container, "node": node.name}
        return agent.call("rightsize", **known)
    return agent.ask(f"Right-size {container}", node=node.name, container=container)


def size_for_a_day(scene: Scene) -> StoryNode:
    node = scene.node
    work = Workload(
        "reportgen",
        "Deployment",
        "finance",
        cpu_limit=4,
        memory_limit=8 * GIB,
        cpu_request=4,
        memory_request=8 * GIB,
    )
    node.run(work, cpu=pulses(3600, 120, 0.15, 0.45), anon=500 * MIB, file=80 * MIB, noise=white)
    scene.fill()
    return node


def too_short(scene: Scene) -> Iterator[Question]:
    """Three hours are no day: not yet."""
    node = size_for_a_day(scene)

    def put(agent: Agent) -> Verdict:
        answer = ask_rightsize(agent, node)
        if answer.tool != "rightsize" or answer.is_error:
            return none(f"{answer.tool} sizes nothing: {answer.headline}")
        if answer.status == "not_enough_data" or answer.says("not yet", "less than a day", "too short"):
            return RIGHT
        return wrong(f"sized after three hours: {answer.headline}")

    yield Question("Right-size reportgen: what should its limits be?", put)


STORIES = (
    Story("cache-is-not-critical", KIND, cache_at_limit, containers=40),
    Story("anon-is-critical", KIND, anon_at_limit, containers=40),
    Story("throttled-by-own-limit", KIND, own_limit, on=QUIET),
    Story("who-is-throttled", "words", who_is_throttled, containers=40),
    Story("node-full", "words", full_node, containers=40),
    Story("disk-full", "words", full_disk, containers=40),
    Story("rightsize-after-a-day", "right-sizing", oversized, hours=25, on=QUIET, containers=6, small=2),
    Story("rightsize-not-yet", "right-sizing", too_short, hours=3, on=QUIET, containers=12, small=3),
)
