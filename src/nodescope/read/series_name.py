"""What a series is called: an id for machines, a name for people."""

from nodescope.base.workload import Workload, find_workload, read_details
from nodescope.keep.label_columns import ID_COLUMNS, LABELS, OTHER_COLUMNS, Identity, Subject
from nodescope.read.files.catalog import SHORT_CHARACTERS

__all__ = ["LABELS", "Identity", "Subject", "id_of", "labels_of", "name_of", "scope_of", "workload_of"]


def scope_of(subject: Subject) -> str:
    return subject.label("l_scope") or "node"


def id_of(subject: Subject, node: str = "") -> str:
    """
    A container's full id; else scope and what tells it apart, `disk:sda`.

    Container ids are unique in the world; where several nodes are served, the
    others have their node behind them: `disk:sda@worker-1`.
    """
    scope = scope_of(subject)
    if scope == "container":
        return subject.label("l_container_id") or ""
    place = f"{scope}:{join_ids(subject, scope)}".rstrip(":")
    return f"{place}@{node}" if node else place


def name_of(subject: Subject, node: str = "") -> str:
    """pod/container, else what there is: a shortened id, a device, a path, the node."""
    scope = scope_of(subject)
    pod, container = subject.label("l_pod_name"), subject.label("l_container_name")
    named = "/".join(part for part in (pod, container) if part)
    if scope in ("container", "pod") and named:
        device = subject.label("l_device")
        return f"{named} {device}" if scope == "pod" and device else named
    if scope == "container":
        return (subject.label("l_container_id") or "")[:SHORT_CHARACTERS]
    if scope == "node":
        return subject.label("l_node_name") or "node"
    if scope == "process":
        return f"{subject.details.get('name') or 'process'} {subject.label('l_pid') or ''}".strip()
    short = (name_gpu(subject) if scope == "gpu" else "") or name_place(subject, scope)
    return f"{short} on {node}" if node else short


def join_ids(subject: Subject, scope: str) -> str:
    """What tells it apart in its scope."""
    parts = (subject.label(column) for column in ID_COLUMNS.get(scope, OTHER_COLUMNS))
    return "/".join(part for part in parts if part)


def name_place(subject: Subject, scope: str) -> str:
    plain = join_ids(subject, scope) or scope
    return plain if scope in ("disk", "network", "filesystem", "service") else f"{scope} {plain}"


def name_gpu(subject: Subject) -> str:
    """
    `GPU 0, A100-SXM4-40GB`; a part of one by what it is: `GPU 0, nvlink 3`. Empty where its index is not known.

    A uuid says nothing to a person; it stays in the labels.
    """
    details = subject.details
    index = details.get("gpu_index") or details.get("gpu")
    if not index:
        return ""
    device = subject.label("l_device") or ""
    kind, _, rest = device.partition("/")
    if kind == "process":
        what = f"{details.get('name') or 'process'} {details.get('pid') or ''}"
    elif kind in ("nvlink", "xid"):
        what = f"{kind} {rest}"
    else:
        what = (details.get("name") or details.get("modelName") or "").removeprefix("NVIDIA ")
    return f"GPU {index}, {what}".strip(" ,")


def labels_of(subject: Subject) -> dict[str, str]:
    """Names that are known of it, without the column's prefix."""
    named = {name.removeprefix("l_"): value for name, value in zip(LABELS, subject.labels) if value}
    return {**{key: value for key, value in subject.details.items() if value}, **named}


def workload_of(subject: Subject, node: str = "") -> Workload:
    """As the agent wrote it; in older archives from the owner that the API named, else from names."""
    namespace, details = subject.label("l_namespace") or "", subject.details
    return read_details(namespace, details) or find_workload(
        namespace=namespace,
        pod=subject.label("l_pod_name") or "",
        container=subject.label("l_container_name") or "",
        image=details.get("image") or "",
        node=node or subject.label("l_node_name") or "",
        owner=details.get("owner") or "",
        service=subject.label("l_service") or "",
        container_id=subject.label("l_container_id") or "",
    )
