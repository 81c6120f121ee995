"""
Paging and OOM kills of the node, since boot.

Reads   /proc/vmstat
Needs   Linux; oom_kill needs 4.13
Docs    https://docs.kernel.org/admin-guide/sysctl/vm.html

    pgpgin 1384201
    oom_kill 0

Of some 180 lines those are kept that node_exporter keeps: oom_kill, pgpg*,
pswp*, pg*fault*. They are published without a type, as there.
"""

import re
from collections.abc import Iterator

from nodescope.base.metric import Metric
from nodescope.collect.files.layout import KeyValues
from nodescope.collect.run.source import Context, FileSource, NodeFile, read_offered

PATH = "proc/vmstat"
KEPT = re.compile(r"(oom_kill|pgpg|pswp|pg.*fault)[a-z0-9_]*")


def row(key: str) -> Metric:
    return Metric(
        f"vmstat.{key}",
        kind="counter",
        published=f"node_vmstat_{key}",
        help=f"{key} as vmstat has it, since boot.",
        untyped=True,
    )


def declare(context: Context) -> Iterator[NodeFile]:
    text = read_offered(context, PATH)
    keys = [line.split()[0] for line in text.splitlines() if line.strip()]
    wanted = {key: row(key) for key in keys if KEPT.fullmatch(key)}
    if wanted:
        yield NodeFile(PATH, KeyValues(wanted, read_bytes=16384))


make = FileSource("vmstat", declare, absent="no /proc/vmstat: this is not Linux")
