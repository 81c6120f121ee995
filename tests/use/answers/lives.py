"""Lives of containers for tests, made of names alone."""

from nodescope.read.series_name import LABELS, Subject
from nodescope.use.answers.containers import Life, make_life


def make_named(
    container_id: str,
    node: str,
    namespace: str,
    pod: str,
    container: str,
    first_ms: int = 0,
    last_ms: int = 1,
) -> Life:
    named = {
        "l_scope": "container",
        "l_container_id": container_id,
        "l_namespace": namespace,
        "l_pod_name": pod,
        "l_container_name": container,
    }
    labels = tuple(named.get(name) or None for name in LABELS)
    return make_life(Subject(labels, {}, first_ms, last_ms), node)
