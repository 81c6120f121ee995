"""Leaks, periods and sawtooths: how far back must be looked, and what a No is worth."""

import re
from collections.abc import Iterator

import numpy as np
from tests.stories.agent import Agent
from tests.stories.answers import RIGHT, Answer, Verdict, any_near, near, none, wrong
from tests.stories.generate.cluster import GIB, MIB, Workload
from tests.stories.generate.machine import pulses, ramp, sawtooth
from tests.stories.generate.noise import autoregressive, white
from tests.stories.story import HOUR, QUIET, Question, Scene, Story, Teller

KIND = "window"


def rises(answer: Answer) -> bool:
    """Growth is told as such: by kind, or by a positive slope."""
    kinds = [str(one.get("kind")) for one in answer.findings]
    if any(word in kind for kind in kinds for word in ("leak", "rising", "growth")):
        return True
    return any(slope > 0 for slope in answer.numbers("slope_per_second"))


def slope(answer: Answer) -> list[float]:
    return [3600 * one for one in answer.numbers("slope_per_second")]


BYTES = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def judge_no(answer: Answer, rate: float) -> Verdict:
    """A No that says what it could have seen is not wrong about what is smaller."""
    bounds = [float(one) * BYTES[unit] for one, unit in re.findall(r"([\d.]+) ([KMG]iB)/h", answer.told)]
    if any(bound >= rate for bound in bounds):
        return none(f"could not have seen {rate / MIB:.0f} MiB/h: {answer.headline}")
    return wrong(f"no leak: {answer.headline}")


def judge_no_period(answer: Answer, seconds: float) -> Verdict:
    told = re.findall(r"period\D*([\d.]+) (s|min|h)\b", answer.told)
    if any(float(one) * SECONDS[unit] <= seconds for one, unit in told):
        return none(f"could not have seen {seconds:.0f} s: {answer.headline}")
    return wrong(f"no period: {answer.headline}")


def ask_leak(agent: Agent, scene: Scene, name: str, **span: str) -> Answer:
    """Is it leaking? One call; and where the answer itself says to look longer, the second."""
    answer = agent.call(
        "analyze_container", container=name, study="trend", metric="memory", node=scene.node.name, **span
    )
    step = answer.next or {}
    if answer.status in ("none", "not_enough_data") and step.get("tool") == "analyze_container":
        return agent.follow(answer, container=name)
    return answer


def leak_of(scene: Scene, start: int, end: int, before: float, after: float) -> None:
    """Over a slow path that wanders by some MiB within ten minutes, and comes back."""
    node = scene.node
    second = np.arange(node.seconds, dtype=np.float64)
    knots = node.random.standard_normal(node.seconds // 600 + 2) * 10 * MIB
    wander = np.interp(second, np.arange(len(knots)) * 600.0, knots)
    hiss = node.random.standard_normal(node.seconds) * 2 * MIB
    path = ramp(start, end, before, after)(second) + wander + hiss
    node.run(Workload("apigw", memory_limit=4 * GIB), cpu=0.4, anon=path, file=20 * MIB)


def late_leak(scene: Scene) -> Iterator[Question]:
    """Five hours of nothing, then it leaks: over six hours no steady rise, and yet a leak."""
    node = scene.node
    start = node.seconds - int(scene.random.integers(45, 65)) * 60
    rate = float(scene.random.uniform(250, 500)) * MIB
    end_level = 400 * MIB + rate * (node.seconds - start) / HOUR
    leak_of(scene, start, node.seconds, 400 * MIB, end_level)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = ask_leak(agent, scene, "apigw", from_="-6h")
        if answer.is_unsure:
            return none(answer.headline)
        if not rises(answer):
            return wrong(f"no leak: {answer.headline}")
        ok = any_near(slope(answer), rate, 0.35)
        return RIGHT if ok else wrong(f"{slope(answer)} instead of {rate:.0f} bytes/h: {answer.headline}")

    yield Question("Did apigw leak in the last six hours?", put)


def slow_leak(scene: Scene) -> Iterator[Question]:
    """Below the noise of an hour, plain over six."""
    node = scene.node
    rate = float(scene.random.uniform(9, 14)) * MIB
    leak_of(scene, 0, node.seconds, 500 * MIB, 500 * MIB + rate * node.seconds / HOUR)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = ask_leak(agent, scene, "apigw")
        if answer.is_unsure:
            return none(answer.headline)
        if not rises(answer):
            return judge_no(answer, rate)
        ok = any_near(slope(answer), rate, 0.5)
        return RIGHT if ok else wrong(f"{slope(answer)} instead of {rate:.0f} bytes/h: {answer.headline}")

    yield Question("Is apigw leaking memory?", put)


def no_leak(scene: Scene) -> Iterator[Question]:
    """Level for six hours: a No, and what it would have seen."""
    node = scene.node
    leak_of(scene, 0, node.seconds, 500 * MIB, 500 * MIB)
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = ask_leak(agent, scene, "apigw", from_="-6h")
        if answer.is_unsure:
            return none(answer.headline)
        return wrong(f"a leak was invented: {answer.headline}") if rises(answer) else RIGHT

    yield Question("Is apigw leaking memory?", put)


def heap(scene: Scene) -> Iterator[Question]:
    """A garbage-collected heap: fills and falls, and is no leak, wherever the span ends."""
    node = scene.node
    period = float(scene.random.integers(300, 1500))
    node.run(
        Workload("jvm", memory_limit=2 * GIB),
        cpu=0.5,
        anon=sawtooth(period, 500 * MIB, 1100 * MIB),
        file=20 * MIB,
        noise=white,
    )
    scene.fill()

    def put(agent: Agent) -> Verdict:
        answer = ask_leak(agent, scene, "jvm")
        if answer.is_unsure:
            return none(answer.headline)
        kinds = [str(one.get("kind")) for one in answer.findings]
        if "leak" in " ".join(kinds):
            return wrong(f"a heap was called a leak: {answer.headline}")
        return RIGHT

    yield Question("Is jvm leaking memory?", put)


def crest(scene: Scene) -> Iterator[Question]:
    """A heap whose crests rise: they reach the limit long before the mean does."""
    node = scene.node
    low, high, period = 400 * MIB, 1000 * MIB, 600.0
    rise = float(scene.random.uniform(70, 110)) * MIB / HOUR
    limit = 1.5 * GIB + rise * 3 * HOUR
    work = Workload("jvm", memory_limit=limit)
    path = sawtooth(period, low, high, rise)(np.arange(node.seconds, dtype=np.float64))
    path += node.random.standard_normal(node.seconds) * 2 * MIB
    node.run(work, cpu=0.5, anon=path, file=1 * MIB, noise=white)
    scene.fill()
    left = (limit - (high + rise * node.seconds)) / rise

    def put(agent: Agent) -> Verdict:
        answer = agent.call(
            "analyze_container", container="jvm", study="trend", metric="memory", node=node.name, from_="-6h"
        )
        told = answer.numbers("time_to_limit_seconds", "time_to_touch_seconds", "touch_seconds")
        if answer.is_unsure or not told:
            return none(f"no time to the limit: {answer.headline}")
        ok = any_near(told, left, 0.25)
        return RIGHT if ok else wrong(f"{told} s instead of {left:.0f} s: {answer.headline}")

    yield Question("When does jvm reach its memory limit?", put)


def period(seconds: float, width: float, words: str) -> Teller:
    """A pulse that comes back after so many seconds."""

    def tell(scene: Scene) -> Iterator[Question]:
        node = scene.node
        phase = float(scene.random.uniform(0, seconds))
        node.run(
            Workload("poller"),
            cpu=pulses(seconds, width, 0.1, 0.9, phase),
            anon=120 * MIB,
            noise=autoregressive,
        )
        scene.fill()

        def put(agent: Agent) -> Verdict:
            answer = agent.call(
                "analyze_container", container="poller", study="periodicity", metric="cpu", node=node.name
            )
            if answer.status in ("none", "not_enough_data") and answer.next:
                answer = agent.follow(answer, container="poller")
            if answer.is_unsure:
                return none(answer.headline)
            told = answer.numbers("period_seconds")
            if not told:
                return judge_no_period(answer, seconds)
            return RIGHT if near(told[0], seconds, 0.02) else wrong(f"{told} instead of {seconds} s")

        yield Question(words, put)

    return tell


STORIES = (
    Story("late-leak", KIND, late_leak, hours=6, on=QUIET, containers=10, small=3),
    Story("slow-leak", KIND, slow_leak, hours=8, on=QUIET, containers=10, small=3),
    Story("no-leak", KIND, no_leak, hours=6, on=QUIET, containers=10, small=3),
    Story("heap-is-no-leak", "sawtooth", heap, containers=40),
    Story("crest-reaches-limit", "sawtooth", crest, hours=6, on=QUIET, containers=8, small=3),
    Story("period-7-minutes", KIND, period(420, 25, "Does the CPU of poller repeat?"), containers=40),
    Story(
        "period-25-minutes",
        KIND,
        period(1500, 60, "Does the CPU of poller repeat?"),
        hours=6,
        on=QUIET,
        containers=8,
        small=3,
    ),
)
