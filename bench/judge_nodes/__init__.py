"""
Nodes that judge the watcher: a second generator, with models of its own.

`tests/watch/nodes.py` was written together with the detectors. These nodes were written
from what clusters do and from what docs/guides/watcher.md promises, without reading the
detectors. Nothing here may import `nodescope.watch.detect`, `tests.watch` or
`tests.stories`: only the agent's own path (ring, watcher, store), the tables of its
sources and the fields of a finding. A node is changed when it is wrong about clusters,
never because a detector fails on it.

    python -m bench.watcher_judge --help

`shapes` are courses over time, `workload` is who runs, `machine` divides the node among
them and counts as the kernel does, `tables` makes frames of that, `healthy` and `trouble`
are the nodes, `replay` leads them through the watcher.
"""
