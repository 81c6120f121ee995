"""Workloads by the names that people use: deploys, replicas, StatefulSets, CronJobs, restarts."""

from collections.abc import Iterator

import numpy as np
from tests.stories.agent import Agent
from tests.stories.answers import RIGHT, Answer, Verdict, any_near, names_in, near, none, wrong
from tests.stories.generate.cluster import GIB, MIB, Workload
from tests.stories.generate.machine import step
from tests.stories.story import CHURNING, MINUTE, Question, Scene, Story

KIND = "identity"
RATIO_SHARE = 0.2


def ratios(answer: Answer, metric: str) -> list[float]:
    """Of every finding about a metric that has both sides: after / before, in either of the two forms."""
    found = []
    for finding in answer.findings:
        if str(finding.get("metric", metric)) != metric:
            continue
        evidence = finding.get("evidence") or {}
        for before, after in SIDES:
            low, high = evidence.get(before), evidence.get(after)
            if isinstance(low, int | float) and isinstance(high, int | float) and low > 0:
                found.append(high / low)
    return found


SIDES = (
    ("a_avg", "b_avg"),
    ("before", "after"),
    ("a_sum", "b_sum"),
    ("a_per_replica", "b_per_replica"),
    ("before_per_replica", "after_per_replica"),
    ("per_replica_before", "per_replica_after"),
)


def deploy(scene: Scene, factor: float, replicas: int, after: int | None = None) -> int:
    """All pods of a Deployment are replaced within half a minute, with another image."""
    at = scene.second(0.45, 0.6)
    work = Workload("catalog", memory_limit=2 * GIB)
    level = float(scene.random.uniform(0.3, 0.5))
    scene.node.run(work, replicas, end=at, cpu=level, anon=300 * MIB, version="1.4.2")
    many = after or replicas
    scene.node.run(work, many, start=at + 4, cpu=level * factor, anon=310 * MIB, version="1.5.0")
    scene.fill()
    return at


def deploy_in_words(scene: Scene) -> Iterator[Question]:
    """Asked as people do: which deploy, and when it was, is for the answer to find."""
    factor = float(scene.random.choice([1.6, 2.0, 3.0]))
    deploy(scene, factor, int(scene.random.integers(1, 4)))

    def put(agent: Agent) -> Verdict:
        answer = agent.ask("Did the last deploy of catalog make it worse?", node=scene.node.name)
        if answer.is_unsure:
            return none(answer.headline)
        sides = zip(
            answer.numbers("a_avg", of="catalog"), answer.numbers("b_avg", of="catalog"), strict=False
        )
        ok = any(before > 0 and near(after / before, factor, 0.15) for before, after in sides)
        return RIGHT if ok else wrong(f"{factor:g} times the CPU is not told: {answer.headline}")

    yield Question("Did the last deploy of catalog make it worse?", put)


def compare_deploy(scene: Scene) -> Iterator[Question]:
    """Twice the CPU per replica."""
    replicas = int(scene.random.integers(2, 4))
    at = deploy(scene, 2.0, replicas)

    def put(agent: Agent) -> Verdict:
        answer = agent.call(
            "compare_windows", container="catalog", node=scene.node.name, **windows(scene, at)
        )
        if answer.is_unsure:
            return none(answer.headline)
        found = ratios(answer, "cpu")
        if not found:
            return wrong(f"cpu before and after is not told: {answer.headline}")
        return RIGHT if any_near(found, 2.0, RATIO_SHARE) else wrong(f"ratios {found}: {answer.headline}")

    yield Question("Does catalog use more CPU since its last deploy?", put)


def deploy_in_a_node(scene: Scene) -> Iterator[Question]:
    """Asked for the node: the old and the new pods are one row, and the first."""
    at = deploy(scene, 2.5, 3)
    node = scene.node

    def put(agent: Agent) -> Verdict:
        answer = agent.call("compare_windows", node=node.name, **windows(scene, at))
        if answer.is_unsure:
            return none(answer.headline)
        if answer.first_named(node.workloads) != "catalog":
            return wrong(f"catalog is not first: {answer.headline}")
        found = ratios(answer, "cpu")
        return RIGHT if any_near(found, 2.5, RATIO_SHARE) else wrong(f"ratios {found}: {answer.headline}")

    yield Question("What differs on the node between before and after the deploy?", put)


def windows(scene: Scene, at: int, long: int = 15 * MINUTE) -> dict[str, str]:
    return {
        "a_from": scene.iso(at - long),
        "a_to": scene.iso(at - 10),
        "b_from": scene.iso(at + 20),
        "b_to": scene.iso(at + 20 + long),
    }


def image_is_named(scene: Scene) -> Iterator[Question]:
    """What came with the change: the new image."""
    at = deploy(scene, 2.0, 3)

    def put(agent: Agent) -> Verdict:
        answer = agent.call(
            "explain_incident", at=scene.iso(at + 60), node=scene.node.name, container="catalog"
        )
        if answer.is_unsure:
            return none(answer.headline)
        if answer.status == "none":
            return wrong(f"nothing changed: {answer.headline}")
        if not scene.node.has_api:
            return RIGHT if names_in(answer.whole, ["catalog"]) else wrong(answer.headline)
        return RIGHT if "1.5.0" in answer.whole else wrong(f"the new image is not named: {answer.headline}")

    yield Question(f"What changed with catalog around {scene.iso(at)}?", put)


def scaled_out(scene: Scene) -> Iterator[Question]:
    """Twice the replicas with the same CPU each is no costlier image."""
    at = deploy(scene, 1.0, 2, 4)

    def put(agent: Agent) -> Verdict:
        answer = agent.call(
            "compare_windows", container="catalog", node=scene.node.name, **windows(scene, at)
        )
        if answer.is_unsure:
            return none(answer.headline)
        found = ratios(answer, "cpu")
        is_said = any_near(found, 2.0, RATIO_SHARE) or any_near(found, 1.0, RATIO_SHARE)
        counts = answer.numbers(
            "a_replicas", "b_replicas", "replicas_before", "replicas_after", "replicas", "pods"
        )
        told = 4.0 in counts or answer.says(r"\b4 (?:replicas|pods|containers)", r"\b2 to 4\b", "two to four")
        if is_said and told:
            return RIGHT
        return wrong(f"ratios {found}, counts {counts}: {answer.headline}")

    yield Question("catalog was scaled out: does it use more CPU, per replica and together?", put)


def by_deployment(scene: Scene) -> Iterator[Question]:
    """A Deployment of three pods is one thing."""
    node = scene.node
    level = float(scene.random.uniform(0.4, 0.9))
    node.run(Workload("catalog", memory_limit=2 * GIB), 3, cpu=level, anon=600 * MIB)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("summarize_container", container="catalog", node=node.name)
        if answer.is_unsure:
            return none(answer.headline)
        total = node.use("catalog")
        values = answer.numbers("avg", "mean", "sum", "use", "per_replica", "total", "avg_per_replica")
        ok = any_near(values, total, 0.1) or any_near(values, total / 3, 0.1)
        return RIGHT if ok else wrong(f"neither {total:.3f} nor {total / 3:.3f}: {answer.headline}")

    yield Question("How is catalog doing?", put)


def one_of_a_set(scene: Scene) -> Iterator[Question]:
    """One pod of a StatefulSet grows, the others do not."""
    node = scene.node
    work = Workload("orders-db", "StatefulSet", "data", memory_limit=4 * GIB)
    lives = node.run(work, 3, cpu=0.4, anon=900 * MIB)
    grown = int(scene.random.integers(0, 3))
    rise = float(scene.random.uniform(0.5, 0.9)) * GIB
    lives[grown].demand["anon"] += np.linspace(0, rise, node.seconds)
    scene.fill()
    name = f"orders-db-{grown}"

    def put(agent: Agent) -> Verdict:
        answer = agent.call(
            "analyze_container", container="orders-db", study="trend", metric="memory", node=node.name
        )
        if answer.is_unsure:
            return none(answer.headline)
        if answer.status == "none":
            return wrong(f"no growth: {answer.headline}")
        told = names_in(answer.told, [f"orders-db-{number}" for number in range(3)])
        return RIGHT if told[:1] == [name] else wrong(f"told is {told}, not {name}: {answer.headline}")

    yield Question("Which pod of orders-db is growing?", put)


def by_cron_job(scene: Scene) -> Iterator[Question]:
    """Runs of a CronJob are pods of many names."""
    node = scene.node
    work = Workload("nightsave", "CronJob", "data")
    for start in range(30, node.seconds, 600):
        node.run(work, start=start, end=min(start + 70, node.seconds), cpu=1.2, anon=200 * MIB)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("summarize_container", container="nightsave", node=node.name)
        if answer.is_unsure:
            return none(answer.headline)
        over = node.use("nightsave")
        there = sum(life.end - life.start for life in node.of("nightsave")) / node.seconds
        values = [*answer.all_numbers()]
        ok = any_near(values, over, 0.12) or any_near(values, over / there, 0.12)
        return RIGHT if ok else wrong(f"neither {over:.3f} nor {over / there:.3f}: {answer.headline}")

    yield Question("How much CPU does the CronJob nightsave use?", put)


def restart_doubles(scene: Scene) -> Iterator[Question]:
    """The same container, started anew, uses twice the CPU."""
    node = scene.node
    at = scene.second(0.4, 0.6)
    level = float(scene.random.uniform(0.3, 0.6))
    life = node.run(Workload("pressd", memory_limit=1 * GIB), end=at, cpu=level)[0]
    node.again(life, at + 5, cpu=2 * level)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call(
            "analyze_container", container="pressd", study="changepoint", metric="cpu", node=node.name
        )
        if answer.is_unsure:
            return none(answer.headline)
        found = ratios(answer, "cpu")
        if not any_near(found, 2.0, RATIO_SHARE):
            return wrong(f"ratios {found}: {answer.headline}")
        told = answer.numbers("at", "from")
        is_then = any(abs(one - node.at(at)) < 60 for one in told)
        return RIGHT if is_then else wrong(f"not at {node.at(at):.0f}: {told}")

    yield Question("Did the CPU of pressd change?", put)


def two_windows(scene: Scene) -> Iterator[Question]:
    """Of all workloads one has changed."""
    node = scene.node
    at = scene.second(0.45, 0.55)
    node.run(Workload("finder"), 2, cpu=step(at, 0.5, 1.3))
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("compare_windows", node=node.name, **windows(scene, at))
        if answer.is_unsure:
            return none(answer.headline)
        if answer.first_named(node.workloads) != "finder":
            return wrong(f"finder is not first: {answer.headline}")
        first = answer.finding_of("finder") or {}
        evidence = first.get("evidence") or {}
        low, high = evidence.get("a_avg"), evidence.get("b_avg")
        if low is None or high is None or not near(high / max(low, 1e-9), 2.6, RATIO_SHARE):
            return wrong(f"a_avg {low}, b_avg {high}: {answer.headline}")
        return RIGHT

    yield Question("What differs between the quarter hour before and after?", put)


STORIES = (
    Story("deploy-doubles-cpu", KIND, compare_deploy),
    Story("deploy-in-words", KIND, deploy_in_words),
    Story("deploy-in-a-node", KIND, deploy_in_a_node),
    Story("deploy-names-image", KIND, image_is_named),
    Story("scaled-out", KIND, scaled_out, containers=40),
    Story("by-deployment", KIND, by_deployment),
    Story("one-of-a-statefulset", KIND, one_of_a_set, containers=40),
    Story("by-cron-job", KIND, by_cron_job, on=CHURNING),
    Story("restart-doubles-cpu", "across a restart", restart_doubles, containers=40),
    Story("two-windows", "compare", two_windows),
)
