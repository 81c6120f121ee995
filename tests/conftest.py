"""
Which tests may run beside each other.

The real tests wait more than they compute, so several lanes of them share the
machine. What would disturb each other stays in one lane, in order: the tests
with real cgroups (a collector sees every cgroup of the machine), those that
share a control plane (started once for all of them), those with a pcm (only one
may run at a time), and otherwise each file. Lanes that compare a rate with the
kernel's or wait for a sample each second are marked quiet, and run afterwards,
when nothing busy runs beside them.
"""

from pathlib import Path

import pytest

# The first word of a file's name that is found here names its lane.
LANES = {
    "cgroups": "cgroups",
    "peers": "cgroups",
    "truth": "cgroups",
    "exposition": "cgroups",
    "prometheus": "cgroups",
    "pcm": "pcm",
    "gpu": "gpu",
    "kube": "cluster",
    "cluster": "cluster",
    "web": "browser",
}
QUIET = {"cgroups", "pcm"}


def lane(path: Path, root: Path) -> str:
    words = "_".join(path.relative_to(root).with_suffix("").parts).split("_")
    return next((LANES[word] for word in reversed(words) if word in LANES), path.stem)


# First: xdist reads the groups in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("real"):
            where = lane(item.path, config.rootpath)
            item.add_marker(pytest.mark.xdist_group(where))
            if where in QUIET:
                item.add_marker(pytest.mark.quiet)
