"""What the containers of the demo want: cores and bytes at each second, before limits."""

import math

import numpy as np

from nodescope.base.block import Floats, Integers
from nodescope.keep.demo.plan import (
    BAD_VERSION,
    CRON_SECONDS,
    CRON_WIDTH,
    DEPLOY_BYTES,
    deploy_moment,
    nightly_spans,
    throttled_span,
)
from nodescope.keep.demo.story import MIB, DemoLife, DemoRequest, DemoStory, noise, within

Demand = tuple[Floats, Floats]


def derive_traffic(story: DemoStory, seconds: Floats) -> Floats:
    """A slow wave of an hour and one of a day, as traffic has."""
    return (
        1
        + 0.15 * np.sin(seconds / 3600 * 2 * math.pi + story.phase)
        + 0.1 * np.sin(seconds / 86400 * 2 * math.pi)
    )


def demand_of(request: DemoRequest, life: DemoLife, time_ms: Integers) -> Demand:
    """Cores and bytes wanted at each second, before limits."""
    story = life.story
    seconds = time_ms / 1000
    count = len(time_ms)
    jitter = noise(request, story.name + life.container_id[:6], int(time_ms[0]), count)
    cores = story.base_cores * derive_traffic(story, seconds) * np.exp(0.2 * jitter)
    wobble = noise(request, story.name + "m", int(time_ms[0]), count)
    size = story.base_bytes * (1 + 0.01 * np.sin(seconds / 600 + story.phase) + 0.002 * wobble)
    if story.kind == "leak":
        age = (time_ms - life.start_ms) / max(1, life.end_ms - life.start_ms)
        growth = (story.limit_bytes - story.base_bytes) * age if life.ends_in_oom else 0.0
        size = story.base_bytes + growth + 0.5 * MIB * wobble
    elif story.kind == "throttled":
        cores = np.where(within(time_ms, *throttled_span(request)), cores * 3, cores)
    elif story.kind == "nightly":
        for night in nightly_spans(request):
            cores = np.where(within(time_ms, *night), cores * 3, cores)
    elif story.kind == "rollout" and life.version == BAD_VERSION:
        size, cores = size + DEPLOY_BYTES, cores * 1.5
    elif story.kind == "cron":
        in_spike = (time_ms // 1000) % CRON_SECONDS < CRON_WIDTH
        cores = np.where(in_spike, cores + 1.2, cores)
        size = np.where(in_spike, size + 60 * MIB, size)
    elif story.kind == "deploy":
        after = time_ms >= deploy_moment(request)
        size, cores = np.where(after, size + DEPLOY_BYTES, size), np.where(after, cores * 1.5, cores)
    elif story.kind == "gpu":
        cores = np.where(within(time_ms, *throttled_span(request)), cores + 0.9, cores)
    return cores, size
