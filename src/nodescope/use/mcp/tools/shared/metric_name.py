"""From what a caller names a metric to one that the node has, or why it has none."""

from collections.abc import Sequence

from nodescope.base.metric_names import PLAIN, find_plain
from nodescope.base.text import clean_text, hint_nearest
from nodescope.use.answers.metrics import MetricRow
from nodescope.use.mcp.protocol.errors import ToolMisused

# What there are few of on a node: top_containers names each of them.
COUNTED_SCOPES = ("gpu", "node", "disk", "network", "filesystem", "fpga")
# Shares of time in which a container was held back.
SHARES = ("cpu_throttled", "pressure_cpu", "pressure_memory", "pressure_io")


class NotCollected(ToolMisused):
    """A metric that we know, and that this node did not measure."""


def choose_metric(text: str, rows: Sequence[MetricRow]) -> MetricRow:
    """By its name or what people call it; a miss is answered with the nearest."""
    known = {row.name: row for row in rows}
    name = text if text in known else find_plain(text)
    if name in known:
        return known[name]
    if name in PLAIN:
        needs = " and ".join(" or ".join(names) for names in PLAIN[name].inputs)
        raise NotCollected(f'"{name}" was not collected on this node: it needs {needs}')
    names = [*(row.name for row in rows if row.is_plain), *known]
    shown = clean_text(text, 80)
    raise ToolMisused(
        f'no metric "{shown}"{hint_nearest(shown, names)}; find_metrics finds one by a question, '
        f"list_metrics lists all {len(known)}"
    )
