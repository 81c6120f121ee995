"""What is planted: ordinary services, and six with a story. What was planted goes into truth.json."""

import math
from collections.abc import Callable, Sequence

from nodescope.keep.demo.story import (
    MIB,
    DemoLife,
    DemoNode,
    DemoRequest,
    DemoStory,
    add_service,
    hexadecimal,
    make_life,
    moment_of,
    note_truth,
    seeded_random,
    span_of,
)
from nodescope.keep.folder import MS_PER_DAY, MS_PER_HOUR

NIGHT_MS = (2 * MS_PER_HOUR, 3 * MS_PER_HOUR)
BAD_VERSION = "2.0.0"
CRON_SECONDS = 300
CRON_WIDTH = 20
DEPLOY_BYTES = 120 * MIB

SERVICES = [
    "frontend",
    "cart",
    "checkout",
    "payment",
    "search",
    "catalog",
    "ads",
    "email",
    "currency",
    "shipping",
    "recommendation",
    "inventory",
    "auth",
    "gateway",
    "sessions",
    "billing",
    "reports",
    "queue",
    "worker",
    "scheduler",
]

Planter = Callable[[DemoRequest, DemoNode], None]


def plan_node(request: DemoRequest, planters: Sequence[Planter] | None = None) -> DemoNode:
    node = DemoNode([], [])
    if planters is None:
        planters = (plant_leak, plant_throttling, plant_cron, plant_deploy, plant_crash_loop, plant_gpu)
    for plant in planters[: max(0, request.containers)]:
        plant(request, node)
    for number in range(max(0, request.containers - len(planters))):
        add_service(request, node, ordinary_service(request, number))
    return node


def ordinary_service(request: DemoRequest, number: int) -> DemoStory:
    turn, place = divmod(number, len(SERVICES))
    name = SERVICES[place] + (f"-{turn}" if turn else "")
    random = seeded_random(request.seed, request.node, name)
    limit = float(random.choice([128, 256, 512, 1024, 2048])) * MIB
    has_quota = bool(random.random() < 0.4)
    cores = float(random.uniform(0.005, 0.4))
    return DemoStory(
        name,
        "shop" if number % 3 else "platform",
        "service",
        limit if random.random() < 0.9 else math.inf,
        math.ceil(cores * 40) / 10 if has_quota else math.inf,
        cores,
        limit * float(random.uniform(0.2, 0.6)),
        float(random.uniform(0, 2 * math.pi)),
    )


CACHE = DemoStory("cache", "shop", "leak", 512 * MIB, math.inf, 0.08, 160 * MIB, 0.0)


def plant_leak(request: DemoRequest, node: DemoNode, share: float = 0.7) -> None:
    """Grows from a third of its limit until the kernel ends it, then begins again."""
    story = CACHE
    length_ms = request.end_ms - request.start_ms
    oom_ms = request.start_ms + round(length_ms * share) // 1000 * 1000
    first = make_life(request, story, request.start_ms, oom_ms)
    first.ends_in_oom = True
    second = make_life(request, story, oom_ms + 10_000, request.end_ms, 1)
    node.lives += [first, second]
    slope = (story.limit_bytes - story.base_bytes) / ((oom_ms - request.start_ms) / 1000)
    facts = {**span_of(request.start_ms, oom_ms), "slope_per_second": slope, "limit": story.limit_bytes}
    note_truth(node, "leak", [first, second], "memory", **facts)
    note_truth(node, "oom_kill", [first], "oom_kills", **moment_of(oom_ms - 1000), limit=story.limit_bytes)


def plant_throttling(request: DemoRequest, node: DemoNode) -> None:
    story = DemoStory("encoder", "media", "throttled", 1024 * MIB, 0.5, 0.3, 300 * MIB, 1.0)
    life = add_service(request, node, story)
    note_truth(node, "throttling", [life], "cpu_throttled", **span_of(*throttled_span(request)), limit=0.5)


def throttled_span(request: DemoRequest) -> tuple[int, int]:
    """The second quarter of the range."""
    start_ms, length_ms = request.start_ms, request.end_ms - request.start_ms
    return (start_ms + length_ms // 4) // 1000 * 1000, (start_ms + length_ms // 2) // 1000 * 1000


def nightly_spans(request: DemoRequest) -> list[tuple[int, int]]:
    """02:00 to 03:00 UTC of every night; in a range without a whole one, its second quarter."""
    days = range(request.start_ms // MS_PER_DAY, request.end_ms // MS_PER_DAY + 1)
    nights = [(day * MS_PER_DAY + NIGHT_MS[0], day * MS_PER_DAY + NIGHT_MS[1]) for day in days]
    inside = [(first, last) for first, last in nights if request.start_ms <= first and last <= request.end_ms]
    return inside or [throttled_span(request)]


def plant_cron(request: DemoRequest, node: DemoNode) -> None:
    story = DemoStory("report-cron", "batch", "cron", 512 * MIB, math.inf, 0.02, 90 * MIB, 0.5)
    life = add_service(request, node, story)
    spikes = {"period_seconds": CRON_SECONDS, "width_seconds": CRON_WIDTH, "height": 1.2}
    note_truth(node, "cron_spikes", [life], "cpu", **span_of(request.start_ms, request.end_ms), **spikes)


def plant_deploy(request: DemoRequest, node: DemoNode) -> None:
    story = DemoStory("api", "shop", "deploy", 1024 * MIB, math.inf, 0.3, 210 * MIB, 2.0)
    life = add_service(request, node, story)
    step = {"before": story.base_bytes, "after": story.base_bytes + DEPLOY_BYTES, "magnitude": DEPLOY_BYTES}
    note_truth(node, "deploy_step", [life], "memory", **moment_of(deploy_moment(request)), **step)


def deploy_moment(request: DemoRequest) -> int:
    return (request.start_ms + (request.end_ms - request.start_ms) * 6 // 10) // 1000 * 1000


def plant_crash_loop(request: DemoRequest, node: DemoNode) -> None:
    """Kubelet's own back-off: 10 s, doubled up to five minutes."""
    story = DemoStory("migrator", "platform", "crash", 256 * MIB, math.inf, 0.4, 60 * MIB, 0.0)
    lives: list[DemoLife] = []
    at_ms = (request.start_ms + (request.end_ms - request.start_ms) // 3) // 1000 * 1000
    wait_seconds = 10
    while at_ms < request.end_ms:
        end_ms = min(at_ms + 40_000, request.end_ms)
        lives.append(make_life(request, story, at_ms, end_ms, len(lives)))
        at_ms = end_ms + wait_seconds * 1000
        wait_seconds = min(300, wait_seconds * 2)
    node.lives += lives
    if lives:
        span = span_of(lives[0].start_ms, lives[-1].end_ms)
        note_truth(node, "crash_loop", lives, "processes", **span, restarts=len(lives) - 1)


def plant_gpu(request: DemoRequest, node: DemoNode) -> None:
    story = DemoStory("trainer", "ml", "gpu", 4096 * MIB, math.inf, 0.05, 800 * MIB, 0.0)
    life = add_service(request, node, story)
    span = span_of(*throttled_span(request))
    note_truth(node, "gpu_job", [life], "gpu_utilization", **span, gpu=gpu_id(request))


def gpu_id(request: DemoRequest) -> str:
    return "GPU-" + hexadecimal("gpu", request.seed, request.node)[:32]
