"""
Other PCMs on the machine: two of them program the same counters and both give nonsense.

PCM does not notice (intel/pcm #860); the signs are giant and negative values.
So the process table is looked at before pcm is started and while it runs.
"""

import re
from pathlib import Path

from nodescope.collect.files.roots import NodeRoot

# Tools that program counters; the kernel cuts a process' name at 15 characters.
_TOOLS = "core|iio|latency|memory|numa|pcie|power|raw|sensor|sensor-serv(er)?|tsx|bw-histogra(m)?"
_PCM = re.compile(rf"pcm(-({_TOOLS}))?(\.x)?")
# Deeper than any chain of wrappers.
DEPTH = 16
# What may stand before the program on a command line.
_WRAPPERS = re.compile(r"(python[\d.]*|bash|dash|sh|env|stdbuf|sudo|setpriv|nice|taskset|timeout)")


def find_others(root: NodeRoot, own_pid: int | None) -> list[tuple[int, str]]:
    """(pid, name) of every PCM that is not ours."""
    own = None if own_pid is None else _identify(NodeRoot(Path("/")), str(own_pid))
    found = []
    for folder in root.folders("proc"):
        if not folder.isdigit():
            continue
        name = _find_name(root, folder)
        if name and not _is_ours(root, folder, own):
            found.append((int(folder), name))
    return found


def _is_ours(root: NodeRoot, pid: str, own: tuple[str, str] | None) -> bool:
    """Our child, or what our child started: sudo and scripts stand between."""
    for _ in range(DEPTH):
        if own is None or pid in ("", "0", "1"):
            return False
        if _identify(root, pid) == own:
            return True
        fields = (root.read_text(f"proc/{pid}/stat") or "").rpartition(")")[2].split()
        pid = fields[1] if len(fields) > 1 else ""
    return False


def _find_name(root: NodeRoot, pid: str) -> str | None:
    """The PCM tool that a process is, by its name or its command line."""
    comm = root.read_text(f"proc/{pid}/comm") or ""
    if _PCM.fullmatch(comm):
        # A thread of ours between fork and exec still has our own name.
        return comm if _state(root, pid) != "Z" else None
    if not _WRAPPERS.fullmatch(comm):
        return None
    words = (root.read_text(f"proc/{pid}/cmdline") or "").split("\0")
    for word in words[:4]:
        base = word.rpartition("/")[2]
        if _PCM.fullmatch(base):
            return base
    return None


def _state(root: NodeRoot, pid: str) -> str:
    stat = root.read_text(f"proc/{pid}/stat") or ""
    return stat.rpartition(")")[2].split()[0] if ")" in stat else "Z"


def _identify(root: NodeRoot, pid: str) -> tuple[str, str]:
    """
    Who a process is, seen from any pid namespace: innermost pid and start time.

    An agent in a container sees the host's /proc, where its child has another
    number; the last number of NSpid is the one the agent knows.
    """
    status = root.read_text(f"proc/{pid}/status") or ""
    numbers = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [pid])
    return numbers[-1] if numbers else pid, _start_of(root.read_text(f"proc/{pid}/stat") or "")


def _start_of(stat: str) -> str:
    """Field 22 of proc(5): ticks since boot."""
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def describe_others(others: list[tuple[int, str]]) -> str:
    listed = ", ".join(f"{name} (pid {pid})" for pid, name in others[:3])
    return (
        f"another PCM runs: {listed}; two at once give nonsense in both. "
        "Stop it, or, if it is pcm-sensor-server, read from it with --pcm-url http://localhost:9738"
    )
