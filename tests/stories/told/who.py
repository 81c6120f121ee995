"""Who uses the most: over the span that was asked about, short lives of one workload together."""

from collections.abc import Iterator

from tests.stories.agent import Agent
from tests.stories.answers import RIGHT, Answer, Verdict, any_near, names_in, none, wrong
from tests.stories.generate.background import run_job
from tests.stories.generate.cluster import GIB, MIB, Workload
from tests.stories.generate.machine import step
from tests.stories.story import CHURNING, HOUR, Question, Scene, Story

KIND = "who uses the most"
NUMBERS = ("use", "mean", "avg", "sum", "total", "value", "span_mean", "over_span", "used", "mean_over_span")


def judge_most(answer: Answer, scene: Scene, truth: str, levels: list[float], share: float = 0.12) -> Verdict:
    """The true first is first, and one of its figures is its use (of the workload, or of one replica)."""
    if answer.is_unsure:
        return none(answer.headline)
    first = answer.first_named(scene.node.workloads)
    if first != truth:
        return wrong(f"{first} is first, not {truth}: {answer.headline}")
    if not any_near(answer.all_numbers(of=truth), levels[0], share) and not any(
        any_near(answer.all_numbers(of=truth), level, share) for level in levels[1:]
    ):
        return wrong(f"none of its figures is {levels}: {answer.headline}")
    return RIGHT


def judge_lines(answer: Answer, name: str) -> Verdict:
    """Short lives of one workload are one line."""
    lines = [one for one in answer.findings if names_in(str(one.get("sentence", "")), [name])]
    return wrong(f"{len(lines)} lines are of {name}") if len(lines) > 1 else RIGHT


def most_cpu_among_jobs(scene: Scene) -> Iterator[Question]:
    """A steady Deployment uses the most; hundreds of jobs each use more while they are there."""
    node = scene.node
    replicas = int(scene.random.integers(1, 4))
    level = float(scene.random.uniform(1.2, 1.8))
    node.run(Workload("catalog"), replicas, cpu=level)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("top_containers", by="cpu")
        truth = node.use("catalog")
        verdict = judge_most(answer, scene, "catalog", [truth, truth / replicas])
        if verdict.grade != "right":
            return verdict
        return judge_lines(answer, "thumbnail")

    yield Question("Who uses the most CPU on this node?", put)


def most_cpu_are_jobs(scene: Scene) -> Iterator[Question]:
    """Jobs of one CronJob together use more than anything else; none of them for longer than seconds."""
    node = scene.node
    batch = Workload("transcode", "CronJob", "media")
    for minute in range(node.seconds // 60):
        for _ in range(6):
            run_job(node, batch, minute * 60 + int(scene.random.integers(1, 20)), cpu=3.2)
    node.run(Workload("catalog"), cpu=1.1)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("top_containers", by="cpu")
        verdict = judge_most(answer, scene, "transcode", [node.use("transcode")])
        return verdict if verdict.grade != "right" else judge_lines(answer, "transcode")

    yield Question("Which workload uses the most CPU?", put)


def most_cpu_has_ended(scene: Scene) -> Iterator[Question]:
    """One that ended used the most of the hour; one that was there for two minutes had the highest mean then."""
    node = scene.node
    begin = scene.second(0.1, 0.3)
    node.run(Workload("reindex", "Job", "data"), start=begin, end=begin + 1500, cpu=5.5)
    brief = scene.second(0.8, 0.9)
    node.run(Workload("vacuum", "Job", "data"), start=brief, end=brief + 100, cpu=9.0)
    node.run(Workload("catalog"), cpu=1.4)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("top_containers", by="cpu", from_=scene.iso(0), to=scene.iso(node.seconds))
        return judge_most(answer, scene, "reindex", [node.use("reindex")])

    yield Question("What used the most CPU in that hour?", put)


def most_memory(scene: Scene) -> Iterator[Question]:
    """By memory: a large steady one before a larger one that lived for a minute."""
    node = scene.node
    node.run(Workload("warehouse", "StatefulSet", "data"), cpu=0.4, anon=9 * GIB, file=1 * GIB)
    brief = scene.second(0.3, 0.6)
    node.run(Workload("unloader", "Job", "data"), start=brief, end=brief + 60, cpu=0.5, anon=18 * GIB)
    node.run(Workload("catalog"), cpu=0.6, anon=4 * GIB)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("top_containers", by="memory")
        return judge_most(answer, scene, "warehouse", [node.use("warehouse", "memory")])

    yield Question("Which container uses the most memory?", put)


def most_disk(scene: Scene) -> Iterator[Question]:
    """Who writes the most: bytes over the span, not while there."""
    node = scene.node
    node.run(Workload("ledgerdb", "StatefulSet", "data"), cpu=0.3, write=30e6)
    begin = scene.second(0.4, 0.7)
    node.run(Workload("dumper", "Job", "data"), start=begin, end=begin + 120, cpu=0.6, write=180e6)
    node.run(Workload("catalog"), cpu=0.6, write=step(HOUR // 2, 2e6, 3e6))
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("top_containers", by="disk_write")
        return judge_most(answer, scene, "ledgerdb", [node.use("ledgerdb", "write")])

    yield Question("Which workload writes the most to disk?", put)


def least_cpu(scene: Scene) -> Iterator[Question]:
    """What is idle, and what it holds: the waste."""
    node = scene.node
    idle = Workload(
        "oldshop",
        "Deployment",
        "old",
        cpu_limit=6,
        memory_limit=8 * GIB,
        cpu_request=6,
        memory_request=8 * GIB,
    )
    node.run(idle, 2, cpu=0.004, anon=90 * MIB, file=10 * MIB)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.ask("What is idle or wasted on this node?")
        # Less than a day is too short to size it, and long enough to name it.
        if names_in(answer.headline, node.workloads)[:1] == ["oldshop"]:
            return RIGHT
        if answer.is_unsure or answer.tool in ("find_metrics", "list_metrics"):
            return none(answer.headline)
        told = names_in(answer.headline, node.workloads) or [
            name for one in answer.findings[:3] for name in names_in(str(one.get("sentence")), node.workloads)
        ]
        return (
            RIGHT if "oldshop" in told[:3] else wrong(f"told are {told[:3]}, not oldshop: {answer.headline}")
        )

    yield Question("What is idle or wasted on this node?", put)


STORIES = (
    Story("most-cpu-among-jobs", KIND, most_cpu_among_jobs, on=CHURNING),
    Story("most-cpu-are-jobs", KIND, most_cpu_are_jobs, containers=40),
    Story("most-cpu-has-ended", KIND, most_cpu_has_ended),
    Story("most-memory", KIND, most_memory, on=CHURNING),
    Story("most-disk", KIND, most_disk),
    Story("idle-waste", "words", least_cpu),
)
