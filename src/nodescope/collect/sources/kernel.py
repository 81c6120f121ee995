"""
The kernel's open files and its name.

Reads   /proc/sys/fs/file-nr, /proc/sys/kernel/{ostype,osrelease,version,hostname,domainname,arch}
Needs   Linux; arch needs 6.1
Docs    https://docs.kernel.org/admin-guide/sysctl/fs.html

    1248 0 9223372036854775807

The three numbers are: allocated, allocated but unused (always 0), the most.
"""

import platform
from collections.abc import Iterator

from nodescope.base.block import Info
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.layout import Fields
from nodescope.collect.run.source import Context, FileSource, NodeFile

COUNTS = {
    0: Metric(
        "kernel.filefd_allocated",
        kind="gauge",
        published="node_filefd_allocated",
        help="File handles in use.",
    ),
    2: Metric(
        "kernel.filefd_maximum", kind="gauge", published="node_filefd_maximum", help="The most file handles."
    ),
}
UNAME = {
    "sysname": "ostype",
    "release": "osrelease",
    "version": "version",
    "machine": "arch",
    "nodename": "hostname",
    "domainname": "domainname",
}
INFO = Info("node_uname_info", "The kernel's name, as uname gives it; always 1.", tuple(UNAME))


def describe(context: Context) -> tuple[Info, Entity]:
    """Read once: a kernel does not change while it runs."""
    words = {label: context.root.read_text(f"proc/sys/kernel/{name}") for label, name in UNAME.items()}
    if not words["machine"] and not context.root.is_fixture:
        words["machine"] = platform.machine()
    details = tuple((label, clean_text(word or "")) for label, word in words.items())
    return INFO, Entity("node", (), (), details)


def declare(context: Context) -> Iterator[NodeFile]:
    del context
    yield NodeFile("proc/sys/fs/file-nr", Fields(COUNTS, read_bytes=128))


make = FileSource("kernel", declare, absent="no /proc/sys/fs/file-nr: this is not Linux", info=describe)
