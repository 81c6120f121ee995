"""Which containers are or were on a node?"""

from collections.abc import Callable

from nodescope.base.quantity import render_count, render_quantity
from nodescope.use.answers.containers import (
    GONE_MS,
    Container,
    Life,
    group_lives,
    render_present,
    there_share,
)
from nodescope.use.answers.overview import About
from nodescope.use.mcp.nodes.backend import Backend, read_levels
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import MOST_FINDINGS, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import NAMESPACE, NODE, Argument, Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.metric_name import choose_metric
from nodescope.use.mcp.tools.shared.time_text import read_span, render_at

SORTS = ("last_seen", "name", "restarts", "cpu", "memory")

NodeContainers = tuple[About, list[Life], dict[str, float], str]


def list_node(backend: Backend, sort: str) -> NodeContainers:
    """Lives of a node and, where they are to be sorted by use, what each used over the last hour."""
    about = backend.read_about()
    lives = backend.read_lives(None)
    if sort not in ("cpu", "memory"):
        return about, lives, {}, ""
    metric = choose_metric(sort, backend.read_metrics())
    span = read_span(about, None, None).span
    levels = read_levels(backend, metric.name, span)
    shares = {life.id: there_share([life], levels.recorded(span)) for life in lives}
    return about, lives, {row.id: row.mean * shares.get(row.id, 1.0) for row in levels.rows}, levels.unit


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    sort = values["sort"] or "last_seen"
    limit = values["limit"] or MOST_FINDINGS
    replies = await fleet.ask_all(values["node"], lambda backend: list_node(backend, sort))
    abouts = {node: found[0] for node, found in replies.answers.items()}
    containers = group_lives(life for found in replies.answers.values() for life in found[1])
    means = {key: mean for found in replies.answers.values() for key, mean in found[2].items()}
    unit = next((found[3] for found in replies.answers.values()), "")
    matching = [one for one in containers if is_wanted(one, values)]
    if not matching:
        raise ToolMisused(render_none(containers, values))
    restarted = [one for one in matching if one.restarts]
    chosen = restarted if sort == "restarts" and restarted else matching
    ordered = order(chosen, sort, means)[:limit]
    rows = [render_row(one, abouts[one.node], means.get(one.newest.id), unit) for one in ordered]
    first = {"container": ordered[0].name, "node": ordered[0].node}
    return ToolAnswer(
        headline=render_present(matching, {node: about.to_ms or 0 for node, about in abouts.items()})
        if sort != "restarts"
        else render_restarts(order(restarted, sort, means), len(matching)),
        findings=tuple(rows[:MOST_FINDINGS]),
        names=tuple(one.full_name for one in ordered[MOST_FINDINGS:]),
        left_out=len(chosen) - len(ordered),
        rest="name_prefix or namespace chooses others; limit=60 names more",
        looked_at=f"containers of {', '.join(list(abouts)[:8])}, over all of their data, sorted by {sort}",
        not_looked_at=("processes outside of containers",),
        nodes_away=replies.missing,
        next_call=NextCall("summarize_container", first, "how it does: figures, limits, restarts, warnings"),
    )


def is_wanted(one: Container, values: Values) -> bool:
    prefix = (values["name_prefix"] or "").lower()
    newest = one.newest
    workload = newest.workload
    names = (newest.container_name, newest.pod, one.name, one.full_name, workload.name, workload.full_name)
    return (
        (not values["namespace"] or newest.namespace == values["namespace"])
        and (not values["qos_class"] or newest.qos_class.lower() == values["qos_class"].lower())
        and (not prefix or any(name.lower().startswith(prefix) for name in names))
    )


def order(containers: list[Container], sort: str, means: dict[str, float]) -> list[Container]:
    def by_mean(one: Container) -> float:
        return -means.get(one.newest.id, float("-inf"))

    keys: dict[str, Callable[[Container], float]] = {
        "name": lambda _: 0.0,
        "last_seen": lambda one: -one.last_ms,
        "restarts": lambda one: -one.restarts,
    }
    key = keys.get(sort, by_mean)
    return sorted(containers, key=lambda one: (key(one), one.full_name, one.node))


def render_row(one: Container, about: About, mean: float | None, unit: str) -> ToolFinding:
    newest_ms = about.to_ms or one.last_ms
    running = one.last_ms >= newest_ms - GONE_MS
    state = "running" if running else f"last seen {render_at(one.last_ms, newest_ms)}"
    restarts = f", restarted {one.restarts} x" if one.restarts else ""
    used = f", {render_quantity(mean, unit)} over the last hour" if mean is not None else ""
    workload, image = one.newest.workload, one.newest.image
    what = f"{workload.kind} {workload.name}, " if workload.known_by != "id" else ""
    of_image = f"image {image}, " if image else ""
    return ToolFinding(
        f'"{one.full_name}" on {one.node}: {what}{of_image}{one.newest.qos_class or "QoS not known"}, {state}{restarts}{used}.',
        "container",
        node=one.node,
        container=one.name,
        unit=unit or None,
        start_at=one.first_ms / 1000,
        end_at=one.last_ms / 1000,
        evidence={
            "namespace": one.newest.namespace,
            "qos_class": one.newest.qos_class or None,
            "running": running,
            "restarts": one.restarts,
            "id": one.newest.id[:12],
            "mean": mean,
            "workload": workload.name,
            "workload_kind": workload.kind,
            "workload_known_by": workload.known_by,
            "image": image or None,
        },
    )


def render_restarts(restarted: list[Container], known: int) -> str:
    if not restarted:
        return f"None of {known} containers was restarted."
    most = restarted[0]
    times = render_count(most.restarts, "time")
    return (
        f"{len(restarted)} of {known} containers {'was' if len(restarted) == 1 else 'were'} restarted, "
        f'most often "{most.full_name}" on {most.node}: {times}.'
    )


def render_none(containers: list[Container], values: Values) -> str:
    filters = ", ".join(
        f'{key} "{values[key]}"' for key in ("namespace", "qos_class", "name_prefix") if values[key]
    )
    namespaces = ", ".join(sorted({one.newest.namespace for one in containers} - {""})[:8])
    classes = ", ".join(sorted({one.newest.qos_class for one in containers} - {""}))
    return (
        f"no container with {filters or 'a name'} among {len(containers)}; "
        f"namespaces: {namespaces or 'not known'}; QoS classes: {classes or 'not known'}"
    )


TOOL = Tool(
    "list_containers",
    "Containers",
    "Find containers by namespace, QoS class or the beginning of a name.",
    (
        NODE,
        NAMESPACE,
        Argument("qos_class", "Guaranteed, Burstable or BestEffort"),
        Argument("name_prefix", "of a workload's, pod's or container's name"),
        Argument("sort", "default: last_seen", choices=SORTS),
        Argument("limit", "how many", "count", least=1, most=60),
    ),
    run,
)
