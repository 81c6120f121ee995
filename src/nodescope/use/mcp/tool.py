"""What a tool is: a name, what a model reads about it, its arguments, and the function that answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nodescope.use.mcp.answer import Answer
from nodescope.use.mcp.argument import Argument, Values
from nodescope.use.mcp.fleet import Fleet


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool; each lives in a file of its name."""

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    run: Callable[[Fleet, Values], Awaitable[Answer]]
