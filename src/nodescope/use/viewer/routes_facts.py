"""What there is: nodes, metrics, filters, studies, and what this viewer accepts."""

from fastapi import FastAPI
from starlette.responses import Response

from nodescope import __version__
from nodescope.read.series_name import scope_of
from nodescope.use.viewer import findings, shapes
from nodescope.use.viewer.container_table import answer_filters, answer_metrics
from nodescope.use.viewer.live import status_of
from nodescope.use.viewer.question import POINTS_MOST, SERIES_MOST, choose_nodes
from nodescope.use.viewer.render import Json
from nodescope.use.viewer.request import NodeName, Viewer, make_json, work
from nodescope.use.viewer.snapshots import ServedNode
from nodescope.use.viewer.tiles import count_cores, read_memory_total

PANELS_MOST = 5
PROBLEMS_SHOWN = 50


def add_facts(api: FastAPI, viewer: Viewer) -> None:
    @api.get("/api/health", response_model=shapes.HealthJson)
    @api.get("/healthz", include_in_schema=False)
    @api.get("/readyz", include_in_schema=False)
    async def health() -> Response:
        return make_json({"status": "ok", "version": __version__})

    @api.get("/api/instance", response_model=shapes.InstanceJson)
    async def instance() -> Response:
        return await work(viewer, lambda: make_json(answer_instance(viewer)))

    @api.get("/api/metrics", response_model=shapes.MetricsJson)
    async def metrics(node: NodeName = "") -> Response:
        def answer() -> Response:
            return make_json(answer_metrics(choose_nodes(viewer.shelf.snapshot(), node)))

        return await work(viewer, answer)

    @api.get("/api/filters", response_model=shapes.FiltersJson)
    async def filters(node: NodeName = "") -> Response:
        def answer() -> Response:
            snapshot = viewer.shelf.snapshot()
            return make_json(answer_filters(snapshot, choose_nodes(snapshot, node)))

        return await work(viewer, answer)

    @api.get("/api/studies", response_model=shapes.StudiesJson)
    async def studies() -> Response:
        return make_json(findings.answer_studies())


def answer_instance(viewer: Viewer) -> Json:
    snapshot = viewer.shelf.snapshot()
    agent = viewer.shelf.agent
    status = status_of(snapshot, agent.address if agent else None)
    cores = [count for node in snapshot.nodes if (count := count_cores(node))]
    memory = [size for node in snapshot.nodes if (size := know_memory_total(viewer, node))]
    problems = [{"file": refusal.path.name, "reason": refusal.reason} for refusal in snapshot.refusals]
    if agent and agent.reason:
        problems.append({"file": agent.address, "reason": agent.reason})
    names = [node.name for node in snapshot.nodes]
    return {
        "version": __version__,
        "node": names[0] if len(names) == 1 else "",
        "nodes": names,
        "from": None if snapshot.from_ms is None else snapshot.from_ms / 1000,
        "to": None if snapshot.to_ms is None else snapshot.to_ms / 1000,
        "live": status["live"],
        "lag_seconds": status["lag_seconds"],
        "agent": agent.address if agent else None,
        "cores": sum(cores) if cores else None,
        "memory_bytes": sum(memory) if memory else None,
        "containers": sum(
            1 for node in snapshot.nodes for one in node.listed if scope_of(one) == "container"
        ),
        "limit": {
            "panels": PANELS_MOST,
            "max_points": POINTS_MOST,
            "containers": SERIES_MOST,
            "studies": findings.SERIES_MOST,
        },
        "problems": problems[:PROBLEMS_SHOWN],
    }


def know_memory_total(viewer: Viewer, node: ServedNode) -> float | None:
    """Read once a file: every page begins with this answer, and the size of a node hardly changes."""
    newest = node.catalog.entries[-1].path.name if node.catalog.entries else ""
    known = viewer.memory_totals.get(node.name)
    if known and known[0] == newest:
        return known[1]
    total = read_memory_total(viewer.engine, node)
    if total is not None:
        viewer.memory_totals[node.name] = (newest, total)
    return total
