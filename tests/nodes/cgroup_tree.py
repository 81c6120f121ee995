"""The cgroups of a node as files below /sys/fs/cgroup: version 2, version 1, or both (hybrid)."""

from collections.abc import Iterable, Mapping

from tests.nodes.cgroup_text import Group, cgroup1, cgroup2
from tests.nodes.kernel_text import CGROUP, MIB, Files, lines

CONTROLLERS = "cpuset cpu io memory hugetlb pids rdma misc"


def with_parents(groups: Iterable[Group]) -> dict[str, Group]:
    """Every cgroup on the way to the listed ones, too."""
    known = {group.path: group for group in groups}
    for path in list(known):
        parts = path.split("/")
        for depth in range(1, len(parts)):
            parent = "/".join(parts[:depth])
            known.setdefault(
                parent, Group(parent, cpu_usec=9_000_000, cores=0.4, anon=96 * MIB, is_inner=True)
            )
    return dict(sorted(known.items()))


def cgroup2_tree(groups: Iterable[Group], at: float) -> Files:
    files: Files = {
        f"{CGROUP}/cgroup.controllers": f"{CONTROLLERS}\n",
        f"{CGROUP}/cgroup.subtree_control": "cpu io memory pids\n",
        f"{CGROUP}/cgroup.procs": "2\n",
        f"{CGROUP}/cpu.stat": lines(
            {"usage_usec": 9_999_000, "user_usec": 6_000_000, "system_usec": 3_999_000}
        ),
    }
    for path, group in with_parents(groups).items():
        files |= {
            f"{CGROUP}/{path}/{name}": text for name, text in offered(group, cgroup2(group, at)).items()
        }
    return files


def offered(group: Group, files: Mapping[str, str]) -> Mapping[str, str]:
    """A slice has few files here: nobody reads the others."""
    kept = ("cgroup.procs", "cgroup.events", "cpu.stat", "memory.events", "cpuacct.usage", "pids.current")
    return {name: text for name, text in files.items() if name in kept or not group.is_inner}


def cgroup1_tree(groups: Iterable[Group], at: float) -> Files:
    files: Files = {}
    for controller in ("cpu,cpuacct", "memory", "pids", "blkio"):
        files[f"{CGROUP}/{controller}/cgroup.procs"] = "2\n"
    for path, group in with_parents(groups).items():
        for controller, found in cgroup1(group, at).items():
            mine = offered(group, found)
            files |= {f"{CGROUP}/{controller}/{path}/{name}": text for name, text in mine.items()}
    return files


def hybrid_tree(groups: Iterable[Group], at: float) -> Files:
    """v1 controllers, and a v2 tree that has cpu.stat and pressure only."""
    files = cgroup1_tree(groups, at)
    here = ("cgroup.procs", "cgroup.events", "cpu.stat", "cpu.pressure", "memory.pressure", "io.pressure")
    base = f"{CGROUP}/unified"
    files |= {f"{base}/cgroup.controllers": "\n", f"{base}/cgroup.procs": "2\n"}
    for path, group in with_parents(groups).items():
        found = cgroup2(group, at)
        # Without the cpu controller there are no quota lines.
        found["cpu.stat"] = "".join(found["cpu.stat"].splitlines(keepends=True)[:3])
        files |= {f"{base}/{path}/{name}": found[name] for name in here}
    return files


def no_tree(groups: Iterable[Group], at: float) -> Files:
    del groups, at
    return {}
