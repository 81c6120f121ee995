"""The patch in YAML on a real kube-apiserver: accepted as it is, and it changes requests and limits and nothing else."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.control_plane import ControlPlane, run_control_plane
from tests.use.answers.rightsizing.test_advice import NEED

from nodescope.use.answers.rightsizing.advice import advise
from nodescope.use.answers.rightsizing.patch import KINDS, render_patch

pytestmark = pytest.mark.real

BEFORE = {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"cpu": "4", "memory": "4Gi"}}
AFTER = {
    "requests": {"cpu": "550m", "memory": "696Mi"},
    "limits": {"cpu": "1200m", "memory": "784Mi"},
}
# A Rollout is a kind of its own controller, which this cluster does not have.
BUILT_IN = tuple(kind for kind, (version, _) in KINDS.items() if version in ("apps/v1", "batch/v1"))


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    for plane in run_control_plane(tmp_path_factory.mktemp("plane"), "kubectl"):
        plane.kubectl("create", "namespace", "shop")
        yield plane


def make_workload(kind: str) -> dict[str, Any]:
    """With two containers, of which only the first is sized."""
    version, way = KINDS[kind]
    labels = {"app": "web"}
    containers = [
        {"name": "app", "image": "web:1", "args": ["--serve"], "resources": BEFORE},
        {"name": "proxy", "image": "proxy:1"},
    ]
    template: dict[str, Any] = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec: dict[str, Any] = {"selector": {"matchLabels": labels}, "template": template}
    if kind == "StatefulSet":
        spec["serviceName"] = "web"
    if kind == "CronJob":
        template["spec"]["restartPolicy"] = "Never"
        spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template}}}
    assert way[0] == "spec"
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": spec,
    }


def read_containers(plane: ControlPlane, kind: str) -> list[dict[str, Any]]:
    found = json.loads(plane.kubectl("get", kind, "web", "--namespace=shop", "--output=json"))
    for word in KINDS[kind][1]:
        found = found[word]
    return list(found["containers"])


@pytest.mark.parametrize("kind", BUILT_IN)
def test_the_patch_is_accepted_and_sizes_one_container(
    plane: ControlPlane, kind: str, tmp_path: Path
) -> None:
    workload, patch = tmp_path / "workload.yaml", tmp_path / "patch.yaml"
    workload.write_text(yaml.safe_dump(make_workload(kind)))
    plane.kubectl("create", "-f", workload)
    app, proxy = read_containers(plane, kind)
    assert app["resources"] == BEFORE
    patch.write_text(render_patch([advise(replace(NEED, kind=kind))]))
    words = ("apply", "--server-side", "--force-conflicts", "-f", patch)
    plane.kubectl(*words, "--dry-run=server")
    assert read_containers(plane, kind) == [app, proxy]
    plane.kubectl(*words)
    assert read_containers(plane, kind) == [{**app, "resources": AFTER}, proxy]


def test_a_patch_of_a_name_that_is_not_there_makes_nothing(plane: ControlPlane, tmp_path: Path) -> None:
    """A partial object is refused where there is nothing to complete: no pods without an image begin."""
    patch = tmp_path / "patch.yaml"
    patch.write_text(render_patch([advise(replace(NEED, workload="gone"))]))
    with pytest.raises(AssertionError, match="Required value"):
        plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", patch)
