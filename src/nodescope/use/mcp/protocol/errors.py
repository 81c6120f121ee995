"""
What can go wrong between a question and its answer:

* NodescopeError
  + NodeAway            a node did not answer: not reachable, too slow, or broken (use/nodes/viewer_client.py)
  + ToolMisused         the call itself: says what is wrong, what is accepted, what to try
    - DeadlinePassed    it would have been answered, but not in time
"""

from collections.abc import Collection

from nodescope.base.errors import NodescopeError
from nodescope.base.text import clean_text, hint_nearest


class ToolMisused(NodescopeError):
    """The call cannot be answered as made; the text tells how to make it."""


class DeadlinePassed(ToolMisused):
    """No node was ready with its answer in time: the question asks for too much."""


def render_no_such(what: str, name: str, known: Collection[str], most_characters: int = 80) -> str:
    """A name that is not there, the nearest that is, and all there are."""
    shown = clean_text(name, most_characters)
    return f'no {what} "{shown}"{hint_nearest(shown, known)}; there are: {", ".join(known)}'
