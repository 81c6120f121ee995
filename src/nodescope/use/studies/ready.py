"""
What the first study of a process would make before it looks at its series: tables that hold for every series.

A server makes them when it starts, while nobody waits: 0.2 s of a first answer.
"""

import threading
from collections.abc import Callable

import numpy.ma  # noqa: F401 - the first median loads it

from nodescope.serve.allocator import give_back_memory
from nodescope.use.studies.forecast.evidence import prepared_shapes
from nodescope.use.studies.forecast.noise import GRIDS
from nodescope.use.studies.forecast.wave import BLOCKS, bases


def make_ready() -> None:
    """Of the largest grids, which an hour of seconds has already."""
    prepared_shapes(GRIDS[-1])
    bases(BLOCKS[-1])
    give_back_memory()


def start_making_ready(then: Callable[[], None] = lambda: None) -> threading.Thread:
    """And what else `then` makes ready."""

    def run() -> None:
        make_ready()
        then()

    thread = threading.Thread(target=run, name="ready", daemon=True)
    thread.start()
    return thread
