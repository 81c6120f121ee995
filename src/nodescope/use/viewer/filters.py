"""/api/filters: by what containers can be filtered; and labels as a request names them."""

from collections import Counter
from collections.abc import Iterable, Sequence

from nodescope.use.answers.container_table import labels_of
from nodescope.use.answers.refusal import bad_request
from nodescope.use.answers.snapshots import View
from nodescope.use.answers.wire import Json

# Values of one label that a filter offers.
VALUES_SHOWN = 100


def parse_labels(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for text in texts:
        key, colon, value = text.partition(":")
        if not colon or not key:
            raise bad_request(f"labels={text[:80]!r} is not accepted; accepted: key:value, several by comma")
        pairs.append((key, value))
    return tuple(pairs)


def answer_filters(view: View) -> Json:
    lives = view.lives()
    labels: dict[str, set[str]] = {}
    for life in lives:
        for key, value in labels_of(life).items():
            labels.setdefault(key, set()).add(value)
    on_nodes = Counter(life.node for life in lives)
    return {
        "namespaces": count_names(life.namespace for life in lives),
        "qos_classes": count_names(life.qos_class for life in lives),
        "nodes": [{"name": node.name, "count": on_nodes[node.name]} for node in view.snapshot.nodes],
        # One value for each container tells nobody apart.
        "labels": {
            key: sorted(values)[:VALUES_SHOWN]
            for key, values in sorted(labels.items())
            if len(values) < max(2, len(lives))
        },
    }


def count_names(names: Iterable[str]) -> list[Json]:
    counted = Counter(name for name in names if name)
    return [{"name": name, "count": count} for name, count in sorted(counted.items())]
