"""The workload or container that a call names, wherever it is; else how to say which."""

from nodescope.base.text import clean_path, clean_text
from nodescope.use.answers.containers import Container, ContainerAmbiguous, ContainerUnknown, group_lives
from nodescope.use.answers.workloads import WorkloadLives, find_target, group_workloads
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.errors import ToolMisused

# Shorter beginnings of an id are as likely a name.
SHORTEST_ID = 4
NAMED_MATCHES = 6


async def find_container(fleet: Fleet, text: str, node: str | None) -> Container:
    """A workload with all its pods; one container with all its lives, also where an id names one of them."""
    replies = await fleet.ask_all(node, lambda backend: backend.read_lives(None))
    lives = [life for found in replies.answers.values() for life in found]
    try:
        target = find_target(lives, clean_path(text), SHORTEST_ID).choose_main()
    except ContainerAmbiguous as error:
        raise ToolMisused(render_ambiguous(text, error)) from None
    except ContainerUnknown as error:
        names = ", ".join(list(replies.away)[:5])
        away = f" (not asked: {names}, which did not answer)" if replies.away else ""
        raise ToolMisused(render_unknown(text, error, node) + away) from None
    if len(target.containers) > 1:
        return Container(target.lives, target.name)
    first = target.lives[-1]
    whole = next(one for one in group_lives(lives) if any(life.id == first.id for life in one.lives))
    return Container(whole.lives, "" if target.part else target.name)


async def find_workload(fleet: Fleet, text: str, node: str | None) -> WorkloadLives:
    """A workload with all its pods; one pod, container or id is the special case."""
    replies = await fleet.ask_all(node, lambda backend: backend.read_lives(None))
    lives = [life for found in replies.answers.values() for life in found]
    try:
        return find_target(lives, clean_path(text), SHORTEST_ID)
    except ContainerAmbiguous as error:
        raise ToolMisused(render_ambiguous(text, error)) from None
    except ContainerUnknown as error:
        raise ToolMisused(render_unknown(text, error, node)) from None


def render_ambiguous(text: str, error: ContainerAmbiguous) -> str:
    matches: list[WorkloadLives] = group_workloads(error.candidates)
    nodes = sorted({node for one in matches for node in one.nodes})
    shown = clean_text(text, 80)
    if len(matches) == 1:
        listed = ", ".join(nodes[:NAMED_MATCHES]) + (" and more" if len(nodes) > NAMED_MATCHES else "")
        return f'container "{shown}" is on {len(nodes)} nodes; add "node", one of: {listed}'
    listed = ", ".join(f'"{one.full_name}"' for one in matches[:NAMED_MATCHES])
    more = f" and {len(matches) - NAMED_MATCHES} more" if len(matches) > NAMED_MATCHES else ""
    return f'container "{shown}" is ambiguous; say which: {listed}{more}'


def render_unknown(text: str, error: ContainerUnknown, node: str | None) -> str:
    near = error.nearest()
    hint = f'; did you mean "{near[:120]}"?' if near else ""
    where = f" on node {node}" if node else ""
    known = len(group_lives(error.lives))
    return f'no container "{clean_text(text, 80)}"{where}{hint} (list_containers names all {known})'
