"""Names offered while a person fills in a prompt: nodes and containers that begin with what is typed."""

from nodescope.use.answers.containers import group_lives
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.errors import ToolMisused

# The protocol's own limit is 100; nobody reads more than a screen.
MOST = 20
MOMENTS = ("-5m", "-15m", "-1h", "-6h")


async def complete(fleet: Fleet, argument: str, typed: str) -> list[str]:
    """Empty where nothing is known: a person can still type."""
    names = await read_names(fleet, argument)
    wanted = typed.lower()
    begun = [name for name in names if name.lower().startswith(wanted)]
    inside = [name for name in names if wanted in name.lower() and name not in begun]
    return [*begun, *inside][:MOST]


async def read_names(fleet: Fleet, argument: str) -> list[str]:
    if argument == "at":
        return list(MOMENTS)
    try:
        entries = fleet.choose(None)
    except ToolMisused:
        return []
    if argument == "node":
        return list(entries)
    if argument != "container":
        return []
    replies = await fleet.ask(entries, lambda backend: backend.read_lives(None))
    lives = (life for found in replies.answers.values() for life in found)
    return sorted({container.name for container in group_lives(lives)})
