"""
What can go wrong between a question and its answer:

* NodescopeError
  + NodeAway            a node did not answer: not reachable, too slow, or broken
  + ToolMisused         the call itself: says what is wrong, what is accepted, what to try
"""

from nodescope.base.errors import NodescopeError


class NodeAway(NodescopeError):
    """A node did not answer; the others' answers stand."""


class ToolMisused(NodescopeError):
    """The call cannot be answered as made; the text tells how to make it."""
