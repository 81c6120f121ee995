"""What a tool is: a name, what a model reads about it, its arguments, and the function that answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import ToolAnswer
from nodescope.use.mcp.protocol.argument import Argument, Values


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool; each lives in a file of its name."""

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    run: Callable[[Fleet, Values], Awaitable[ToolAnswer]]
