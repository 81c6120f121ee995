"""Which containers are or were on a node?"""

from collections.abc import Callable

from nodescope.base.quantity import render_quantity
from nodescope.use.mcp.nodes.backend import About, ArchivedLife, Backend
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import MOST_FINDINGS, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import NAMESPACE, NODE, Argument, Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.container import Resident, gather_residents
from nodescope.use.mcp.tools.shared.metric_name import choose_metric
from nodescope.use.mcp.tools.shared.time_text import choose_span, render_at

# A container not seen for this long before the newest data has gone.
GONE_MS = 5_000
SORTS = ("last_seen", "name", "restarts", "cpu", "memory")

Found = tuple[About, list[ArchivedLife], dict[str, float], str]


def ask(sort: str) -> Callable[[Backend], Found]:
    """Lives of a node and, where they are to be sorted by use, each one's mean of the last hour."""

    def question(backend: Backend) -> Found:
        about = backend.read_about()
        lives = backend.read_lives(None)
        if sort not in ("cpu", "memory"):
            return about, lives, {}, ""
        metric = choose_metric(sort, backend.read_metrics())
        levels = backend.read_levels(metric.name, choose_span(about, None, None), None)
        return about, lives, {row.container_id: row.mean for row in levels.rows}, levels.unit

    return question


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    sort = values["sort"] or "last_seen"
    limit = values["limit"] or MOST_FINDINGS
    replies = (await fleet.ask(fleet.choose(values["node"]), ask(sort))).need_one()
    abouts = {node: found[0] for node, found in replies.answers.items()}
    residents = gather_residents(life for found in replies.answers.values() for life in found[1])
    means = {key: mean for found in replies.answers.values() for key, mean in found[2].items()}
    unit = next((found[3] for found in replies.answers.values()), "")
    matching = [one for one in residents if is_wanted(one, values)]
    if not matching:
        raise ToolMisused(tell_none(residents, values))
    ordered = order(matching, sort, means)[:limit]
    rows = [tell(one, abouts[one.node], means.get(one.lives[-1].container_id), unit) for one in ordered]
    first = ordered[0]
    return ToolAnswer(
        headline=tell_headline(matching, abouts, ordered),
        findings=tuple(rows[:MOST_FINDINGS]),
        names=tuple(one.full_name for one in ordered[MOST_FINDINGS:]),
        left_out=len(matching) - len(ordered),
        looked_at=f"containers of {', '.join(list(abouts)[:8])}, over all of their data, sorted by {sort}",
        not_looked_at=("processes outside of containers",),
        nodes_away={**replies.away, **replies.refused},
        next_call=NextCall(
            "summarize_container",
            {"container": first.name, "node": first.node},
            "how it does: figures, limits, restarts, warnings",
        ),
    )


def is_wanted(one: Resident, values: Values) -> bool:
    prefix = (values["name_prefix"] or "").lower()
    names = (one.container, one.pod, one.name, one.full_name)
    return (
        (not values["namespace"] or one.namespace == values["namespace"])
        and (not values["qos_class"] or one.qos_class.lower() == values["qos_class"].lower())
        and (not prefix or any(name.lower().startswith(prefix) for name in names))
    )


def order(residents: list[Resident], sort: str, means: dict[str, float]) -> list[Resident]:
    keys: dict[str, Callable[[Resident], float]] = {
        "last_seen": lambda one: -one.last_ms,
        "restarts": lambda one: -one.restarts,
    }
    by_name = sorted(residents, key=lambda one: (one.full_name, one.node))
    if sort == "name":
        return by_name
    return sorted(
        by_name, key=keys.get(sort, lambda one: -means.get(one.lives[-1].container_id, float("-inf")))
    )


def tell(one: Resident, about: About, mean: float | None, unit: str) -> ToolFinding:
    newest_ms = about.to_ms or one.last_ms
    running = one.last_ms >= newest_ms - GONE_MS
    state = "running" if running else f"last seen {render_at(one.last_ms, newest_ms)}"
    restarts = f", restarted {one.restarts} x" if one.restarts else ""
    used = f", {render_quantity(mean, unit)} on average in the last hour" if mean is not None else ""
    return ToolFinding(
        f'"{one.full_name}" on {one.node}: {one.qos_class or "QoS not known"}, {state}{restarts}{used}.',
        "container",
        node=one.node,
        container=one.name,
        unit=unit or None,
        start_at=one.first_ms / 1000,
        end_at=one.last_ms / 1000,
        evidence={
            "namespace": one.namespace,
            "qos_class": one.qos_class or None,
            "running": running,
            "restarts": one.restarts,
            "id": one.lives[-1].container_id[:12],
            "mean": mean,
        },
    )


def tell_headline(matching: list[Resident], abouts: dict[str, About], shown: list[Resident]) -> str:
    where = f"node {next(iter(abouts))}" if len(abouts) == 1 else f"{len(abouts)} nodes"
    running = sum(one.last_ms >= (abouts[one.node].to_ms or 0) - GONE_MS for one in matching)
    told = f"; the first {len(shown)} are named" if len(shown) < len(matching) else ""
    return f"{len(matching)} containers on {where}, {running} of them running{told}."


def tell_none(residents: list[Resident], values: Values) -> str:
    asked = ", ".join(
        f'{key} "{values[key]}"' for key in ("namespace", "qos_class", "name_prefix") if values[key]
    )
    namespaces = ", ".join(sorted({one.namespace for one in residents if one.namespace})[:8])
    classes = ", ".join(sorted({one.qos_class for one in residents if one.qos_class}))
    return (
        f"no container with {asked or 'a name'} among {len(residents)}; "
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
        Argument("name_prefix", "beginning of a pod's or container's name"),
        Argument("sort", "order; last_seen unless given", choices=SORTS),
        Argument("limit", "how many to name", "count", least=1, most=60),
    ),
    run,
)
