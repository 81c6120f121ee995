"""One heap for everything in a process that answers for days: what one part gives back, another uses again."""

import os
from collections.abc import MutableMapping

from nodescope.serve.allocator import share_one_arena

# Arrow's own allocator keeps what was freed: some 60 MiB after a question about a day.
ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"


def share_one_heap(environment: MutableMapping[str, str] = os.environ) -> None:
    """To be called before Arrow is loaded and threads begin; what somebody has set is left alone."""
    environment.setdefault(ARROW_POOL, "system")
    share_one_arena()
