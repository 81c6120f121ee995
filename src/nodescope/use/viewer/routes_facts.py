"""What there is: nodes, metrics, filters, studies, and what this viewer accepts."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict

from fastapi import APIRouter
from starlette.responses import Response

from nodescope import __version__
from nodescope.read.series_name import scope_of
from nodescope.use.answers.clocks import find_ahead
from nodescope.use.answers.container_table import labels_of
from nodescope.use.answers.containers import group_lives
from nodescope.use.answers.findings import STUDIES_MOST
from nodescope.use.answers.metrics import list_metrics
from nodescope.use.answers.overview import know_size
from nodescope.use.answers.snapshots import ServedNode, View
from nodescope.use.answers.timeseries import SERIES_MOST
from nodescope.use.answers.wire import Json, render_metrics, seconds
from nodescope.use.studies import STUDIES
from nodescope.use.viewer import shapes
from nodescope.use.viewer.front import make_health
from nodescope.use.viewer.live import status_of
from nodescope.use.viewer.question import POINTS_MOST
from nodescope.use.viewer.request import NodeName, Served, Viewer, make_json, work

PANELS_MOST = 12
PROBLEMS_SHOWN = 50
# Values of one label that a filter offers.
VALUES_SHOWN = 100

router = APIRouter()


@router.get("/api/health", response_model=shapes.HealthJson)
async def health() -> Response:
    """Of the document; the front answers it, also while nothing of this is loaded."""
    return make_health("ready")


@router.get("/api/instance", response_model=shapes.InstanceJson)
async def instance(viewer: Served) -> Response:
    return await work(viewer, lambda: make_json(answer_instance(viewer)))


@router.get("/api/metrics", response_model=shapes.MetricsJson)
async def metrics(viewer: Served, node: NodeName = "") -> Response:
    return await work(viewer, lambda: make_json(render_metrics(list_metrics(viewer.view(node).nodes))))


@router.get("/api/filters", response_model=shapes.FiltersJson)
async def filters(viewer: Served, node: NodeName = "") -> Response:
    return await work(viewer, lambda: make_json(answer_filters(viewer.view(node))))


@router.get("/api/studies", response_model=shapes.StudiesJson)
async def studies() -> Response:
    return make_json(answer_studies())


def answer_studies() -> Json:
    return {
        "studies": [
            {"id": study.name, "title": study.name.capitalize(), "help": study.question}
            for study in STUDIES.values()
        ]
    }


def answer_instance(viewer: Viewer) -> Json:
    view = viewer.view()
    snapshot = view.snapshot
    agent = viewer.folders.agent
    status = status_of(snapshot, agent.address if agent else None)
    sizes = {node.name: know_size(viewer.folders, view, node) for node in snapshot.nodes}
    cores = [size.cores for size in sizes.values() if size.cores]
    memory = [size.memory_bytes for size in sizes.values() if size.memory_bytes]
    problems = [{"file": refusal.path.name, "reason": refusal.reason} for refusal in snapshot.refusals]
    if agent and agent.reason:
        problems.append({"file": agent.address, "reason": agent.reason})
    names = [node.name for node in snapshot.nodes]
    return {
        "version": __version__,
        "node": names[0] if len(names) == 1 else "",
        "nodes": names,
        "from": seconds(snapshot.from_ms),
        "to": seconds(snapshot.to_ms),
        "live": status["live"],
        "lag_seconds": status["lag_seconds"],
        "agent": agent.address if agent else None,
        "cores": sum(cores) if cores else None,
        "memory_bytes": sum(memory) if memory else None,
        "sizes": [{**asdict(sizes[node.name]), **describe_node(node)} for node in snapshot.nodes],
        "containers": sum(count_containers(node) for node in snapshot.nodes),
        "limit": {
            "panels": PANELS_MOST,
            "max_points": POINTS_MOST,
            "containers": SERIES_MOST,
            "studies": STUDIES_MOST,
        },
        "problems": problems[:PROBLEMS_SHOWN],
        "cluster": len(names) > 1 or viewer.has_others,
    }


def describe_node(node: ServedNode) -> Json:
    """What a list of nodes says of each."""
    return {
        "node": node.name,
        "ahead_seconds": find_ahead(node),
        "containers": count_containers(node),
        "from": seconds(node.from_ms),
        "to": seconds(node.to_ms),
    }


def count_containers(node: ServedNode) -> int:
    return sum(1 for one in node.listed if scope_of(one) == "container")


def answer_filters(view: View) -> Json:
    lives = view.lives()
    labels: dict[str, set[str]] = {}
    for life in lives:
        for key, value in labels_of(life).items():
            labels.setdefault(key, set()).add(value)
    # A restart is no other container.
    containers = [one.newest for one in group_lives(lives)]
    on_nodes = Counter(life.node for life in containers)
    return {
        "namespaces": count_names(life.namespace for life in containers),
        "qos_classes": count_names(life.qos_class for life in containers),
        "nodes": [{"name": node.name, "count": on_nodes[node.name]} for node in view.snapshot.nodes],
        # One value for each container tells nobody apart.
        "labels": {
            key: sorted(values)[:VALUES_SHOWN]
            for key, values in sorted(labels.items())
            if len(values) < max(2, len(containers))
        },
    }


def count_names(names: Iterable[str]) -> list[Json]:
    counted = Counter(name for name in names if name)
    return [{"name": name, "count": count} for name, count in sorted(counted.items())]
