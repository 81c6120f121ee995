"""
Packets that each core took from its network queues, and those it had no room or time for.

Reads   /proc/net/softnet_stat
Needs   Linux; the number of the core needs 5.9
Docs    https://docs.kernel.org/admin-guide/sysctl/net.html

    0058598b 00000000 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000

Hexadecimal, one line a core that is online; the same in every namespace.
"""

from nodescope.base.block import Table
from nodescope.base.metric import Kind, Metric
from nodescope.collect.files.cores import name_core
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.slow_source import Rows, SlowSource, read_network
from nodescope.collect.run.source import Context

# Place in a line, kind, published name, sentence.
COLUMNS: tuple[tuple[int, Kind, str, str], ...] = (
    (0, "counter", "processed_total", "Packets taken from the queue."),
    (1, "counter", "dropped_total", "Packets dropped because the queue was full."),
    (2, "counter", "times_squeezed_total", "Times that the budget ran out with packets left."),
    (8, "counter", "cpu_collision_total", "Collisions with another core on sending."),
    (9, "counter", "received_rps_total", "Wake-ups by another core to take packets."),
    (10, "counter", "flow_limit_count_total", "Times that the limit of a flow was reached."),
    (11, "gauge", "backlog_len", "Packets in the queue now."),
)
CORE = 12
TABLE = Table(
    "softnet",
    "softnet",
    ("cpu",),
    tuple(
        Metric(f"softnet.{name.removesuffix('_total')}", kind, sentence, f"node_softnet_{name}")
        for _, kind, name, sentence in COLUMNS
    ),
)


def read(context: Context) -> str | None:
    return read_network(context, "softnet_stat")


def parse(text: str) -> tuple[Rows, ...]:
    rows = {}
    for number, line in enumerate(text.splitlines()):
        words = [int(word, 16) for word in line.split() if is_hexadecimal(word)]
        core = words[CORE] if len(words) > CORE else number
        rows[name_core(str(core))] = [
            float(words[place]) if place < len(words) else NAN for place, *_ in COLUMNS
        ]
    return (rows,)


def is_hexadecimal(word: str) -> bool:
    return 0 < len(word) <= 16 and all(letter in "0123456789abcdef" for letter in word)


make = SlowSource(
    "softnet",
    (TABLE,),
    read,
    parse,
    "no /proc/net/softnet_stat: the kernel has no networking",
    pace_seconds=10.0,
    is_prompt=True,
)
