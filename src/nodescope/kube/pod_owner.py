"""Who made a pod, as the API server tells it."""

from collections.abc import Iterable, Mapping
from typing import Any

# What makes ReplicaSets, and the label in which it puts the hash that ends their names.
TEMPLATE_HASHES = {"Deployment": "pod-template-hash", "Rollout": "rollouts-pod-template-hash"}


def parse_owner(owners: Iterable[Mapping[str, Any]], labels: Mapping[str, Any]) -> str:
    """The controller, as Kind/name; a ReplicaSet is told as the Deployment (or Rollout) whose hash it ends in."""
    for owner in owners:
        if owner.get("controller"):
            kind, name = str(owner.get("kind")), str(owner.get("name"))
            for above, label in TEMPLATE_HASHES.items():
                ending = f"-{labels.get(label)}"
                if kind == "ReplicaSet" and label in labels and name.endswith(ending):
                    return f"{above}/{name.removesuffix(ending)}"
            return f"{kind}/{name}"
    return ""
