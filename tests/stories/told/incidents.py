"""What happened: one workload takes what others then lack, or nothing happens at all."""

from collections.abc import Iterator, Sequence
from typing import Any

from tests.stories.agent import Agent
from tests.stories.answers import RIGHT, Answer, Verdict, cause_rank, names_in, none, subject_of, wrong
from tests.stories.generate.cluster import GIB, MIB, Life, Workload
from tests.stories.generate.machine import StoryNode, ramp, step
from tests.stories.generate.noise import white
from tests.stories.story import BUSY, CHURNING, MINUTE, QUIET, Question, Scene, Story

KIND = "incidents"
# An onset is told within this of the truth.
ONSET_SECONDS = 150
CAUSES = 3


def judge_cause(answer: Answer, scene: Scene, cause: str, onset: float) -> Verdict:
    """The cause is blamed first, and its onset is told."""
    if answer.is_unsure:
        return none(answer.headline, 0)
    if answer.status == "none":
        return wrong(f"nothing was seen: {answer.headline}", 0)
    names = scene.node.workloads
    rank = cause_rank(answer, cause, names) or 0
    why = f"{cause} is at place {rank or 'none'}: {answer.headline}" if rank != 1 else ""
    why = why or fault_of(answer, cause, scene.node) or late_by(answer, cause, onset)
    first = next((one for one in answer.findings if subject_of(one, names)), {})
    return Verdict("wrong" if why else "right", why, rank, first.get("confidence"))


def fault_of(answer: Answer, cause: str, node: StoryNode) -> str:
    """It is told as the one that took, and somebody as the one that lacked, where that can be seen."""
    names = node.workloads
    first = next((one for one in answer.findings if subject_of(one, names) == cause), {})
    if str(first.get("metric", "")).startswith("pressure"):
        return f"{cause} is told as one that waits: {first['sentence']}"
    if node.has_pressure and len(names_in(answer.whole, names)) < 2 and not answer.numbers("victims"):
        return f"whom it hurt is not told: {answer.headline}"
    return ""


def late_by(answer: Answer, cause: str, onset: float) -> str:
    told = [at for at in answer.numbers("at", "from", "onset", "since", of=cause) if at > 1e9]
    if told and min(abs(at - onset) for at in told) > ONSET_SECONDS:
        return f"onset {onset:.0f} is not among {told}"
    return ""


def add_victims(node: StoryNode, names: Sequence[str] = ("checkout", "finder")) -> list[Life]:
    """Services with work of their own, which feel what happens."""
    found = []
    for name in names:
        work = Workload(name, memory_limit=2 * GIB)
        flows: dict[str, Any] = {"write": 2e6, "read": 1e6, "transmit": 4e6, "receive": 4e6}
        found += node.run(work, 2, cpu=0.7, anon=500 * MIB, file=400 * MIB, **flows)
    return found


def ask_incident(scene: Scene, at: int, cause: str, onset: int, container: str | None = None) -> Question:
    def put(agent: Agent) -> Verdict:
        answer = agent.call("explain_incident", at=scene.iso(at), node=scene.node.name, container=container)
        return judge_cause(answer, scene, cause, scene.node.at(onset))

    words = f"Why was {container} slow" if container else "Services were slow"
    return Question(f"{words} around {scene.iso(at)}. What happened?", put)


def take_cpu(scene: Scene, name: str = "etl", cores: float | None = None) -> int:
    """A batch workload that is there all the time begins to work."""
    node = scene.node
    at, long = scene.second(0.4, 0.6), scene.second(0.15, 0.25)
    take = cores or float(scene.random.uniform(0.75, 1.0)) * node.cores
    node.run(Workload(name, namespace="batch"), cpu=step(at, 0.15, take, at + long), anon=800 * MIB)
    return at


def neighbour_cpu(scene: Scene) -> Iterator[Question]:
    add_victims(scene.node)
    at = take_cpu(scene)
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "etl", at)


def neighbour_cpu_job(scene: Scene) -> Iterator[Question]:
    """The neighbour is a pod that was not there before, of a Job that never ran in this span."""
    node = scene.node
    add_victims(node)
    at = scene.second(0.4, 0.6)
    node.run(
        Workload("retrain", "Job", "ml"),
        2,
        start=at,
        end=at + scene.second(0.15, 0.25),
        cpu=0.45 * node.cores,
    )
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "retrain", at)


def neighbour_disk(scene: Scene) -> Iterator[Question]:
    node = scene.node
    add_victims(node)
    at, long = scene.second(0.4, 0.6), scene.second(0.15, 0.25)
    write = float(scene.random.uniform(1.1, 1.6)) * node.disk_bytes_per_second
    node.run(Workload("compactor", "StatefulSet", "data"), cpu=0.4, write=step(at, 200e3, write, at + long))
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "compactor", at)


def neighbour_memory(scene: Scene) -> Iterator[Question]:
    """It takes what the others had as page cache; all of them wait for memory."""
    node = scene.node
    add_victims(node)
    node.run(Workload("warehouse", "StatefulSet", "data"), cpu=0.3, anon=4 * GIB, file=10 * GIB)
    at = scene.second(0.4, 0.55)
    scene.fill()
    rest = node.rest_of_memory(float(scene.random.uniform(0.93, 0.97)))
    node.run(Workload("importer", namespace="batch"), cpu=0.5, anon=ramp(at, at + 120, 300 * MIB, rest))
    yield ask_incident(scene, at + 4 * MINUTE, "importer", at)


def neighbour_network(scene: Scene) -> Iterator[Question]:
    """No pressure is counted for a network card: what the others send falls."""
    node = scene.node
    victims = ("checkout", "finder", "streamer")
    for name in victims:
        node.run(Workload(name), 2, cpu=0.4, transmit=9e6, receive=3e6)
    at, long = scene.second(0.4, 0.6), scene.second(0.15, 0.25)
    send = 2.2 * node.network_bytes_per_second
    node.run(Workload("mirrord", namespace="data"), cpu=0.5, transmit=step(at, 100e3, send, at + long))
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "mirrord", at)


def victim_asks(scene: Scene) -> Iterator[Question]:
    """Asked about one container that did nothing itself."""
    add_victims(scene.node)
    at = take_cpu(scene)
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "etl", at, "checkout")


def victim_asks_disk(scene: Scene) -> Iterator[Question]:
    node = scene.node
    add_victims(node)
    at, long = scene.second(0.4, 0.6), scene.second(0.15, 0.25)
    write = 1.4 * node.disk_bytes_per_second
    node.run(Workload("compactor", "StatefulSet", "data"), cpu=0.4, write=step(at, 200e3, write, at + long))
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "compactor", at, "finder")


def loop_crashes(node: StoryNode, name: str = "migrator") -> None:
    """Kubelet's back-off at its end: it tries every five minutes, over the whole span."""
    work = Workload(name, namespace="platform", memory_limit=256 * MIB)
    life, at = None, int(node.random.integers(0, 120))
    while at < node.seconds:
        end = min(at + int(node.random.integers(15, 40)), node.seconds)
        if life is None:
            life = node.run(work, start=at, end=end, cpu=0.4)[0]
            life.restarts = 140
        else:
            life = node.again(life, at, end, cpu=0.4)
        at = end + 300


def crash_loop_is_old(scene: Scene) -> Iterator[Question]:
    """A crash loop far away was there before; the neighbour is the news."""
    add_victims(scene.node)
    loop_crashes(scene.node)
    at = take_cpu(scene)
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "etl", at)


def cron_is_no_news(scene: Scene) -> Iterator[Question]:
    """A job that comes every five minutes and takes its cores is no news."""
    node = scene.node
    add_victims(node)
    for start in range(100, node.seconds, 300):
        node.run(
            Workload("collector", "CronJob", "data"), start=start, end=min(start + 20, node.seconds), cpu=4.0
        )
    at = take_cpu(scene)
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "etl", at)


def neighbour_ramps(scene: Scene) -> Iterator[Question]:
    """It takes its cores over five minutes, not at once."""
    node = scene.node
    add_victims(node)
    at = scene.second(0.4, 0.55)
    take = float(scene.random.uniform(0.8, 1.0)) * node.cores
    node.run(Workload("etl", namespace="batch"), cpu=ramp(at, at + 300, 0.15, take))
    scene.fill()
    yield ask_incident(scene, at + 6 * MINUTE, "etl", at + 150)


def victim_restarts(scene: Scene) -> Iterator[Question]:
    """A victim misses its probe and is restarted: a consequence."""
    node = scene.node
    victims = add_victims(node)
    at = take_cpu(scene)
    for victim in victims[:2]:
        end = at + int(scene.random.integers(60, 150))
        cut = slice(0, end)
        victim.end = end
        later = {name: values[end + 5 :] for name, values in victim.demand.items()}
        victim.demand = {name: values[cut] for name, values in victim.demand.items()}
        again = node.again(victim, end + 5)
        again.demand = later
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "etl", at)


def two_incidents(scene: Scene) -> Iterator[Question]:
    """One is over when the other begins; the question is about the second."""
    node = scene.node
    add_victims(node)
    first, second = scene.second(0.15, 0.2), scene.second(0.6, 0.7)
    node.run(Workload("etl", namespace="batch"), cpu=step(first, 0.15, 0.9 * node.cores, first + 400))
    write = 1.4 * node.disk_bytes_per_second
    work = Workload("compactor", "StatefulSet", "data")
    node.run(work, cpu=0.4, write=step(second, 200e3, write, second + 500))
    scene.fill()
    yield ask_incident(scene, second + 3 * MINUTE, "compactor", second)


def own_limit_in_an_incident(scene: Scene) -> Iterator[Question]:
    """More work than its limit allows: nobody else took anything."""
    node = scene.node
    at = scene.second(0.4, 0.6)
    work = Workload("encoder", namespace="media", cpu_limit=0.5, memory_limit=1 * GIB)
    node.run(work, cpu=step(at, 0.25, 0.9), anon=300 * MIB)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        moment = scene.iso(at + 3 * MINUTE)
        answer = agent.call("explain_incident", at=moment, node=node.name, container="encoder")
        if answer.is_unsure:
            return none(answer.headline)
        others = [name for name in node.workloads if name != "encoder"]
        blamed = [subject_of(one, others) for one in answer.findings[:1] if not subject_of(one, ["encoder"])]
        if blamed and blamed[0]:
            return wrong(f"{blamed[0]} is blamed: {answer.headline}")
        is_told = answer.says("throttl", "quota", "cpu limit", "its limit")
        return RIGHT if is_told else wrong(f"its own limit is not told: {answer.headline}")

    yield Question(f"Why was encoder slow around {scene.iso(at + 180)}?", put)


def limit_was_lowered(scene: Scene) -> Iterator[Question]:
    """The same work with a quarter of the CPU limit since its deploy: no more demand."""
    node = scene.node
    at = scene.second(0.4, 0.6)
    level = float(scene.random.uniform(0.7, 1.1))
    before = Workload("encoder", namespace="media", cpu_limit=2.0, memory_limit=1 * GIB)
    after = Workload("encoder", namespace="media", cpu_limit=0.5, memory_limit=1 * GIB)
    node.run(before, end=at, cpu=level, anon=300 * MIB, version="1.4.2")
    node.run(after, start=at + 4, cpu=level, anon=300 * MIB, version="1.4.3")
    scene.fill()

    def put(agent: Agent) -> Verdict:
        moment = scene.iso(at + 3 * MINUTE)
        answer = agent.call("explain_incident", at=moment, node=node.name, container="encoder")
        return judge_limit(answer)

    def compare(agent: Agent) -> Verdict:
        return judge_limit(agent.call("compare_windows", container="encoder", node=node.name))

    yield Question(f"Why is encoder slow since {scene.iso(at)}?", put)
    yield Question("What is different since the last deploy of encoder?", compare)


def judge_limit(answer: Answer) -> Verdict:
    """Both limits are told, and that it is throttled or uses less; never that it wants more."""
    if answer.is_unsure:
        return none(answer.headline)
    has_limits = answer.says(r"\b0?\.5 cores") and answer.says(r"\b2 cores")
    return RIGHT if has_limits else wrong(f"the lowered limit is not told: {answer.told[:400]}")


def correlation_names_it(scene: Scene) -> Iterator[Question]:
    """What moved with the CPU pressure of the victim: the one that took the CPU."""
    node = scene.node
    node.run(Workload("checkout"), cpu=0.7)
    path = step(scene.second(0.3, 0.4), 0.15, 0.8 * node.cores, scene.second(0.6, 0.7))
    node.run(Workload("etl", namespace="batch"), cpu=path)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call(
            "analyze_container",
            container="checkout",
            study="correlation",
            metric="pressure_cpu",
            node=node.name,
        )
        if answer.is_unsure:
            return none(answer.headline)
        others = [name for name in node.workloads if name != "checkout"]
        told = [name for one in answer.findings for name in names_in(str(one.get("sentence")), others)]
        first = next(iter(names_in(answer.headline, others) or told), None)
        return RIGHT if first == "etl" else wrong(f"{first}, not etl: {answer.headline}")

    yield Question("With what does the CPU pressure of checkout move?", put)


def what_crash_loops(scene: Scene) -> Iterator[Question]:
    loop_crashes(scene.node)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.ask("Is anything in a crash loop?", node=scene.node.name)
        if answer.is_unsure or answer.tool in ("find_metrics", "list_metrics"):
            return none(answer.headline)
        first = answer.first_named(scene.node.workloads)
        return RIGHT if first == "migrator" else wrong(f"{first}, not migrator: {answer.headline}")

    yield Question("Is anything in a crash loop?", put)


def harmless_deploy(scene: Scene) -> Iterator[Question]:
    """In the same minute another workload is deployed anew, and costs no more than before."""
    node = scene.node
    add_victims(node)
    at = take_cpu(scene)
    work = Workload("banking", namespace="web")
    node.run(work, 3, end=at - 20, cpu=0.2)
    node.run(work, 3, start=at - 14, version="3.0.0", cpu=0.2)
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "etl", at)


def small_squeeze(scene: Scene) -> Iterator[Question]:
    """The node is only just full: the others wait for some percent of the time."""
    node = scene.node
    add_victims(node)
    at, long = scene.second(0.4, 0.6), scene.second(0.15, 0.25)
    scene.fill()
    others = sum(float(life.demand["cpu"].mean()) for life in node.lives if life.end == node.seconds)
    take = node.cores * float(scene.random.uniform(1.03, 1.08)) - others
    node.run(Workload("etl", namespace="batch"), cpu=step(at, 0.15, take, at + long), noise=white)
    yield ask_incident(scene, at + 4 * MINUTE, "etl", at)


def brief_neighbour(scene: Scene) -> Iterator[Question]:
    """A minute and a half, and it is over."""
    node = scene.node
    add_victims(node)
    at = scene.second(0.4, 0.6)
    long = int(scene.random.integers(75, 110))
    node.run(Workload("etl", namespace="batch"), cpu=step(at, 0.15, 0.95 * node.cores, at + long))
    scene.fill()
    yield ask_incident(scene, at + 2 * MINUTE, "etl", at)


def host_takes_cpu(scene: Scene) -> Iterator[Question]:
    """What took the CPU is in no container: nobody may be blamed for it."""
    node = scene.node
    add_victims(node)
    at, long = scene.second(0.4, 0.6), scene.second(0.15, 0.25)
    node.host_cores = step(at, 0.15, 0.95 * node.cores, at + long)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("explain_incident", at=scene.iso(at + 4 * MINUTE), node=node.name)
        if answer.is_unsure:
            return none(answer.headline)
        if answer.status == "none":
            return wrong(f"nothing was seen: {answer.headline}")
        causes = [str((one.get("evidence") or {}).get("cause", "")) for one in answer.findings]
        blamed = [name for cause in causes for name in names_in(cause, node.workloads)]
        if blamed:
            return wrong(f"{blamed} are blamed: {answer.headline}")
        is_said = answer.says("outside", "host", "nobody", "no container", "unknown", "not seen", "no cause")
        return RIGHT if is_said else none(answer.headline)

    yield Question(f"Services were slow around {scene.iso(at + 240)}. Who took the CPU?", put)


def scale_out_is_the_cause(scene: Scene) -> Iterator[Question]:
    """No pod of it uses more than before; there are four times as many."""
    node = scene.node
    add_victims(node)
    at = scene.second(0.4, 0.6)
    work = Workload("webfront", namespace="web")
    node.run(work, 3, cpu=0.09 * node.cores)
    node.run(work, 9, start=at, cpu=0.09 * node.cores)
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "webfront", at)


def decoy_before(scene: Scene) -> Iterator[Question]:
    """Another one rises three minutes earlier, into cores that were idle."""
    node = scene.node
    add_victims(node)
    at = take_cpu(scene)
    idle = 0.2 * node.cores
    node.run(Workload("warmer", namespace="web"), cpu=step(at - 180, 0.1, idle, at + 300))
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "etl", at)


def no_pressure(scene: Scene) -> Iterator[Question]:
    """A kernel without pressure: the others use less than before, and nothing says why."""
    scene.node.has_pressure = False
    add_victims(scene.node)
    at = take_cpu(scene)
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "etl", at)


def deploy_is_the_cause(scene: Scene) -> Iterator[Question]:
    """A new image of a service takes several times the CPU, and the node is full."""
    node = scene.node
    add_victims(node)
    at = scene.second(0.4, 0.6)
    work = Workload("pricer", namespace="shop")
    node.run(work, 4, end=at, cpu=0.05 * node.cores)
    node.run(work, 4, start=at + 3, version="2.0.0", cpu=0.22 * node.cores)
    scene.fill()
    yield ask_incident(scene, at + 4 * MINUTE, "pricer", at)


def killed_for_memory(scene: Scene) -> Iterator[Question]:
    """A leak until the kernel ends it."""
    node = scene.node
    at = scene.second(0.55, 0.75)
    work = Workload("tokencache", "StatefulSet", memory_limit=1 * GIB)
    growth = ramp(0, at, 250 * MIB, 1040 * MIB)
    life = node.run(work, end=at, cpu=0.2, anon=growth, file=1 * MIB)[0]
    life.is_killed = True
    node.again(life, at + 6, cpu=0.2, anon=260 * MIB)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.call("explain_incident", at=scene.iso(at + 60), node=node.name)
        if answer.is_unsure:
            return none(answer.headline, 0)
        rank = cause_rank(answer, "tokencache", node.workloads) or 0
        if rank != 1:
            return wrong(f"place {rank or 'none'}: {answer.headline}", rank)
        kinds = " ".join(str(one.get("kind")) for one in answer.findings)
        is_killed = "oom" in kinds or answer.says("oom", "kill")
        return Verdict("right", rank=1) if is_killed else wrong(f"no kill: {answer.headline}", rank)

    yield Question(f"What happened around {scene.iso(at + 60)}?", put)


def who_was_killed(scene: Scene) -> Iterator[Question]:
    """In words: who was OOM-killed, among ordinary restarts and jobs."""
    node = scene.node
    at = scene.second(0.3, 0.8)
    work = Workload("renderer", memory_limit=512 * MIB)
    life = node.run(work, end=at, cpu=0.3, anon=ramp(at - 90, at, 200 * MIB, 530 * MIB), file=1 * MIB)[0]
    life.is_killed = True
    node.again(life, at + 4, cpu=0.3, anon=200 * MIB)
    other = node.run(Workload("envoyd"), end=at - 200, cpu=0.2)[0]
    node.again(other, at - 190, cpu=0.2)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = agent.ask("Who was OOM-killed in the last hour?", node=node.name, at=scene.iso(at))
        if answer.is_unsure or answer.tool in ("find_metrics", "list_metrics"):
            return none(answer.headline)
        if answer.first_named(node.workloads) != "renderer":
            return wrong(f"not renderer: {answer.headline}")
        return RIGHT

    yield Question("Who was OOM-killed in the last hour?", put)


def evicted(scene: Scene) -> Iterator[Question]:
    """The node ran out of memory and the kubelet ended a pod; the kernel killed nobody."""
    node = scene.node
    at = scene.second(0.5, 0.7)
    node.run(Workload("scratch", namespace="lab"), end=at, cpu=0.2, anon=5 * GIB)
    scene.fill()
    path = ramp(at - 300, at, 1 * GIB, node.rest_of_memory(0.96))
    node.run(Workload("importer", namespace="batch"), cpu=0.5, anon=path)

    def put(agent: Agent) -> Verdict:
        answer = agent.ask("Was anything evicted?", node=node.name, at=scene.iso(at))
        if answer.is_unsure or answer.tool in ("find_metrics", "list_metrics"):
            return none(answer.headline)
        if answer.status == "none":
            return wrong(f"nothing: {answer.headline}")
        told = names_in(answer.whole, ["scratch", "importer"])
        return RIGHT if told else wrong(f"neither scratch nor importer: {answer.headline}")

    yield Question("Was anything evicted?", put)


def nothing_happened(scene: Scene) -> Iterator[Question]:
    """No incident may be invented. A crash loop and a cron job that were there before are none."""
    node = scene.node
    if scene.seed % 2:
        loop_crashes(node)
    every = Workload("nightsave", "CronJob", "data")
    for start in range(45, node.seconds, 600):
        node.run(every, start=start, end=start + 40, cpu=0.8)
    scene.fill()
    yield ask_quiet(scene, scene.second(0.3, 0.7))


def ask_quiet(scene: Scene, at: int) -> Question:
    def put(agent: Agent) -> Verdict:
        answer = agent.call("explain_incident", at=scene.iso(at), node=scene.node.name)
        if answer.is_error:
            return none(answer.headline)
        told = [one for one in answer.findings if is_incident(one)]
        if answer.status in ("none", "not_enough_data"):
            return RIGHT
        return wrong(f"{len(told)} incidents in a quiet hour: {answer.headline}") if told else RIGHT

    return Question(f"Did anything go wrong around {scene.iso(at)}?", put)


def always_full(scene: Scene) -> Iterator[Question]:
    """The node is nearly full all the hour, as it was before: everybody waits a little, and nothing happens."""
    node = scene.node
    scene.fill()
    others = sum(float(life.demand["cpu"].mean()) for life in node.lives if life.end == node.seconds)
    node.run(Workload("grinder", namespace="batch"), 4, cpu=(0.93 * node.cores - others) / 4, noise=white)
    yield ask_quiet(scene, scene.second(0.3, 0.7))


def is_incident(finding: dict[str, object]) -> bool:
    """Background and context are told as such, not as incidents."""
    kind = str(finding.get("kind", ""))
    return not any(word in kind for word in ("background", "context", "crash_loop", "churn", "note"))


STORIES = (
    Story("neighbour-cpu", KIND, neighbour_cpu),
    Story("neighbour-cpu-job", KIND, neighbour_cpu_job),
    Story("neighbour-cpu-churn", KIND, neighbour_cpu, on=CHURNING),
    Story("neighbour-disk", KIND, neighbour_disk),
    Story("neighbour-memory", KIND, neighbour_memory),
    Story("neighbour-network", KIND, neighbour_network),
    Story("victim-asks-cpu", "cause", victim_asks),
    Story("victim-asks-disk", "cause", victim_asks_disk),
    Story("crash-loop-is-old", KIND, crash_loop_is_old),
    Story("deploy-is-the-cause", KIND, deploy_is_the_cause),
    Story("cron-is-no-news", KIND, cron_is_no_news),
    Story("neighbour-ramps", KIND, neighbour_ramps),
    Story("victim-restarts", KIND, victim_restarts),
    Story("harmless-deploy-too", KIND, harmless_deploy),
    Story("small-squeeze", KIND, small_squeeze),
    Story("brief-neighbour", KIND, brief_neighbour),
    Story("host-takes-cpu", "cause", host_takes_cpu),
    Story("scale-out-is-the-cause", KIND, scale_out_is_the_cause),
    Story("decoy-before", KIND, decoy_before),
    Story("no-pressure-counted", KIND, no_pressure),
    Story("two-incidents", KIND, two_incidents),
    Story("own-limit-incident", "cause", own_limit_in_an_incident, containers=40),
    Story("limit-was-lowered", "cause", limit_was_lowered, containers=40),
    Story("correlation-names-it", "cause", correlation_names_it, containers=40),
    Story("what-crash-loops", "words", what_crash_loops, containers=40),
    Story("oom-after-leak", KIND, killed_for_memory),
    Story("who-was-oom-killed", "words", who_was_killed, on=CHURNING),
    Story("was-anything-evicted", "words", evicted, containers=40),
    Story("quiet-hour-quiet", "quiet hours", nothing_happened, on=QUIET),
    Story("quiet-hour-busy", "quiet hours", nothing_happened, on=BUSY),
    Story("quiet-hour-full", "quiet hours", always_full, on=BUSY),
    Story("quiet-hour-churn", "quiet hours", nothing_happened, on=CHURNING),
)
