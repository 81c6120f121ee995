"""
Services of systemd as their cgroups show them: which run, since when, with how many tasks.

A unit has its cgroup from its start until its last process has left. So a service
that is there is active; whether one that is not there ended well or failed,
only systemd itself can tell.
"""

from collections.abc import Iterator

from nodescope.collect.run.source import Context

BASE = "sys/fs/cgroup"
# v2; beside v1 controllers; systemd's own hierarchy; where only controllers are mounted.
PLACES = (BASE, f"{BASE}/unified", f"{BASE}/systemd", f"{BASE}/pids", f"{BASE}/memory")
SYSTEM = "system.slice"
# Slices in slices: system.slice/system-getty.slice is two deep.
DEPTH = 6
# A large machine has some 200 services.
MOST_UNITS = 1000
# Below these are pods, and what users started.
FOREIGN = ("kubepods", "kubelet", "user-")


def read_units(context: Context) -> list[dict[str, str]] | None:
    """Name, tasks, most tasks and start of each service that runs; None where there is no systemd."""
    place = next((one for one in PLACES if context.root.exists(f"{one}/{SYSTEM}")), None)
    if place is None:
        return None
    found: list[dict[str, str]] = []
    for folder in list_services(context, place, 0):
        if len(found) >= MOST_UNITS:
            break
        if is_populated(context, folder):
            found.append(read_unit(context, folder, place))
    return found


def list_services(context: Context, folder: str, depth: int) -> Iterator[str]:
    """Folders of services, slice by slice."""
    for name in sorted(context.root.folders(folder)):
        if name.endswith(".service"):
            yield f"{folder}/{name}"
        elif name.endswith(".slice") and depth < DEPTH and not name.startswith(FOREIGN):
            yield from list_services(context, f"{folder}/{name}", depth + 1)


def is_populated(context: Context, folder: str) -> bool:
    """Whether a process is in a cgroup or below it; v1 tells of the cgroup itself only."""
    events = context.root.read_text(f"{folder}/cgroup.events")
    if events is not None:
        return "populated 1" in events
    return bool(context.root.read_text(f"{folder}/cgroup.procs")) or any(context.root.folders(folder))


def read_unit(context: Context, folder: str, place: str) -> dict[str, str]:
    # Beside v1 controllers the tasks are counted in a hierarchy of their own.
    counted = (
        folder if context.root.exists(f"{folder}/pids.current") else folder.replace(place, f"{BASE}/pids", 1)
    )
    made_ns = context.root.made_at_ns(folder)
    told = {
        "name": folder.rpartition("/")[2],
        "tasks": context.root.read_text(f"{counted}/pids.current"),
        "most_tasks": context.root.read_text(f"{counted}/pids.max"),
        "started": str(made_ns / 1e9) if made_ns else None,
    }
    return {key: text for key, text in told.items() if text is not None} | {"state": "active"}
