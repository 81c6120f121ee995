"""
What is planted in a fleet: some nodes leak, some are throttled at night, a third gets a bad image.

Every node runs the same workloads; only some of them have the story, so that
finding it everywhere is as wrong as finding it nowhere. Which nodes is
decided by the seed, for each story anew.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from nodescope.keep.demo.plan import (
    BAD_VERSION,
    CACHE,
    DEPLOY_BYTES,
    Planter,
    nightly_spans,
    plant_crash_loop,
    plant_cron,
    plant_gpu,
    plant_leak,
)
from nodescope.keep.demo.story import (
    MIB,
    DemoNode,
    DemoRequest,
    DemoStory,
    add_service,
    make_life,
    note_truth,
    seeded_random,
)

# Each at least one node of a fleet of two.
LEAKING, THROTTLED, ROLLED_OUT = 1 / 5, 1 / 4, 1 / 3
# A rollout takes its time: half a minute from the first node to the last.
ROLLOUT_SPREAD_MS = 30_000
# The old container is gone before the new one has its first sample.
HANDOVER_MS = 4_000
MINUTE_MS = 60_000


def chosen(request: DemoRequest, story: str, share: float) -> set[int]:
    """The nodes that have a story."""
    count = max(1, round(request.nodes * share))
    return set(seeded_random(request.seed, "fleet", story).permutation(request.nodes)[:count].tolist())


def plan_fleet(request: DemoRequest) -> Sequence[Planter]:
    """What one node of the fleet gets, the important first."""
    number = request.number
    planters: list[Planter] = [
        partial(plant_leak, share=leak_share(request))
        if number in chosen(request, "leak", LEAKING)
        else plant_steady_cache,
        plant_nightly,
        plant_rollout,
        plant_cron,
    ]
    if number % 5 == 0:
        planters.append(plant_crash_loop)
    if number % 5 == 1:
        planters.append(plant_gpu)
    return planters


def leak_share(request: DemoRequest) -> float:
    """When the kernel ends it: not everywhere at the same moment."""
    return float(seeded_random(request.seed, request.node, "leak").uniform(0.6, 0.85))


def plant_steady_cache(request: DemoRequest, node: DemoNode) -> None:
    add_service(request, node, replace(CACHE, kind="service", base_bytes=200 * MIB))


def plant_nightly(request: DemoRequest, node: DemoNode) -> None:
    is_hit = request.number in chosen(request, "nightly", THROTTLED)
    kind = "nightly" if is_hit else "service"
    story = DemoStory("encoder", "media", kind, 1024 * MIB, 0.5, 0.2, 300 * MIB, 1.0)
    life = add_service(request, node, story)
    if is_hit:
        spans = [[first / 1000, last / 1000] for first, last in nightly_spans(request)]
        note_truth(node, "nightly_throttling", [life], "cpu_throttled", spans=spans, limit=0.5)


def rollout_minute(request: DemoRequest) -> int:
    """At six tenths of the range, at a whole minute; the same on all nodes."""
    length_ms = request.end_ms - request.start_ms
    return (request.start_ms + length_ms * 6 // 10) // MINUTE_MS * MINUTE_MS


def plant_rollout(request: DemoRequest, node: DemoNode) -> None:
    story = DemoStory("api", "shop", "rollout", 1024 * MIB, math.inf, 0.3, 210 * MIB, 2.0)
    if request.number not in chosen(request, "rollout", ROLLED_OUT):
        add_service(request, node, story)
        return
    minute_ms = rollout_minute(request)
    random = seeded_random(request.seed, request.node, "rollout")
    at_ms = minute_ms + int(random.integers(0, ROLLOUT_SPREAD_MS // 1000)) * 1000
    old = make_life(request, story, request.start_ms, at_ms)
    new = make_life(request, story, at_ms + HANDOVER_MS, request.end_ms, version=BAD_VERSION)
    node.lives += [old, new]
    note_truth(
        node,
        "bad_image",
        [old, new],
        "memory",
        minute=minute_ms / 1000,
        at=new.start_ms / 1000,
        image_before=dict(old.entity().labels)["image"],
        image_after=dict(new.entity().labels)["image"],
        magnitude=DEPLOY_BYTES,
    )
