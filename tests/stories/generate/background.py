"""
What runs on a node beside the story: quiet, busy, or churning with short jobs.

Nothing here is news. Services have their noise, a cron job comes on time, a
churning node starts hundreds of jobs an hour that live for seconds.
"""

from typing import Any

import numpy as np
from tests.stories.generate.cluster import GIB, MIB, Life, Workload, digest, suffix
from tests.stories.generate.machine import StoryNode
from tests.stories.generate.noise import choose_noise, white

# No name begins with another one, and none is a word of a sentence.
SERVICES = (
    *("frontend", "cartd", "payments", "adserver", "emailer", "currencyd", "shipper", "inventory", "authd"),
    *(
        "gatewayd",
        "sessiond",
        "billing",
        "accounting",
        "pricing",
        "reviews",
        "wishlist",
        "coupons",
        "loyalty",
    ),
    *("trackerd", "returnsd", "invoices", "taxes", "fraudwatch", "identityd", "profiler", "consentd"),
    *("bannerd", "sitemap", "feeder", "webhook", "notifier", "auditor", "geocoder", "weatherd", "ratesd"),
    *("quoter", "vouchers", "storefinder", "labeler", "customsd", "greeter", "suggester"),
)
AGENTS = ("kube-proxy", "node-exporter", "fluent-bit", "csi-node")
HOUR = 3600
# Of the node, for one workload with all its replicas.
LARGEST = 0.05


def fill_quiet(node: StoryNode, containers: int) -> None:
    """Little work: a tenth of the node."""
    fill_services(node, containers, load=0.10)


def fill_busy(node: StoryNode, containers: int) -> None:
    """Half of the node is used, evenly spread over many."""
    fill_services(node, containers, load=0.5)


def fill_churning(node: StoryNode, containers: int, jobs_per_hour: float = 500) -> None:
    """Services, and jobs that come at random and live for seconds: one family by a queue, one by a CronJob."""
    fill_services(node, containers, load=0.2)
    queue = Workload("thumbnail", "Jobs", "media")
    batch = Workload("resize", "CronJob", "media")
    random = node.random
    many = int(jobs_per_hour * node.seconds / HOUR)
    for start in np.sort(random.integers(0, max(1, node.seconds - 3), many // 2)).tolist():
        run_job(node, queue, int(start))
    minutes = max(1, node.seconds // 60)
    each = max(1, round((many - many // 2) / minutes))
    for minute in range(minutes):
        for _ in range(each):
            run_job(node, batch, minute * 60 + int(random.integers(1, 6)))


def run_job(node: StoryNode, work: Workload, start: int, cpu: float | None = None) -> None:
    random = node.random
    end = start + int(random.integers(2, 16))
    level = float(random.uniform(0.3, 1.6)) if cpu is None else cpu
    if work.kind == "Jobs":
        # A queue makes Jobs with generateName; each has one pod.
        job = f"{work.name}-{suffix(random)}"
        uid = digest("pod", node.name, node.seed, job)
        pod_uid = f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:32]}"
        life = node.live(work, f"{job}-{suffix(random)}", pod_uid)
        life.owner, life.image = f"Job/{job}", work.image_of("3.1.0")
        node.want(life, start, end, white, {"cpu": level, "anon": 60 * MIB, "file": 5 * MIB})
    else:
        node.run(work, 1, start, end, noise=white, cpu=level, anon=60 * MIB, file=5 * MIB)


def fill_services(node: StoryNode, containers: int, load: float) -> None:
    random = node.random
    names = [str(name) for name in random.permutation(SERVICES)]
    taken = {life.workload.name for life in node.lives}
    left = containers
    for agent in AGENTS[: max(0, min(len(AGENTS), containers // 8))]:
        node.run(Workload(agent, "DaemonSet", "kube-system"), cpu=float(random.uniform(0.01, 0.05)))
        left -= 1
    shares = random.dirichlet(np.full(max(1, left), 1.5)) * load * node.cores
    at = 0
    for name in names:
        if at >= left:
            return
        if name in taken:
            continue
        replicas = min(left - at, int(random.integers(1, 5)))
        # Nobody in the background is large: the story's own stand out, or hide, as the story says.
        cores = min(float(shares[at : at + replicas].mean()), LARGEST * node.cores / replicas)
        run_service(node, name, replicas, cores)
        at += replicas


def run_service(node: StoryNode, name: str, replicas: int, cores: float) -> list[Life]:
    random = node.random
    limit = float(random.choice([0.5, 1, 2])) * GIB
    has_quota = bool(random.random() < 0.4)
    work = Workload(
        name,
        "Deployment",
        str(random.choice(["shop", "platform", "web"])),
        cpu_limit=float(np.ceil(cores * 8 * 4) / 4) if has_quota else float("inf"),
        memory_limit=limit,
        cpu_request=round(cores * 1.5, 2),
        memory_request=limit / 2,
    )
    anon = limit * float(random.uniform(0.15, 0.45))
    flows: dict[str, Any] = {
        "write": float(random.uniform(5e3, 400e3)),
        "read": float(random.uniform(1e3, 50e3)),
        "transmit": float(random.uniform(20e3, 500e3)),
        "receive": float(random.uniform(20e3, 500e3)),
    }
    noise = choose_noise(random)
    return node.run(work, replicas, noise=noise, cpu=cores, anon=anon, file=limit * 0.1, **flows)


FILLS = {"quiet": fill_quiet, "busy": fill_busy, "churning": fill_churning}
