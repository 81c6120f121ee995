"""
The policy `rank`: the original plugin's own rule, weights 1-2-2.

Over the N nodes that have a state, with pos the place of the first node of
the same value in ascending order:

    usage = (N - pos) / N      reconfiguration likewise
    locality = 1 if the pod names no bitstream or the node has it, else 0
    score = trunc(100 * (1 * locality + 2 * usage + 2 * reconfiguration) / 5)

given as they are, from 0 to 100. A node without a state has 0, as there; one
whose state is broken as well, where the original would not place the pod at all.
"""

from bisect import bisect_left
from collections.abc import Sequence

from nodescope.use.scheduler.node import AnnotatedNode
from nodescope.use.scheduler.pod_request import PodRequest
from nodescope.use.scheduler.rating import NodeRating

LOCALITY, USAGE, RECONFIGURATION = 1, 2, 2


def judge_rank(pod: PodRequest, nodes: Sequence[AnnotatedNode], now_ms: int) -> list[NodeRating]:
    """A rating for every node, in the order given."""
    recent = {node.name: node.fpga.recent(now_ms) for node in nodes if node.fpga}
    usages = sorted(one.usage_ms for one in recent.values())
    loads = sorted(one.reconfiguration_ms for one in recent.values())
    ratings = []
    for node in nodes:
        one = recent.get(node.name)
        if one is None or node.fpga is None:
            ratings.append(NodeRating(node.name, 0, confidence=0.0, reasons=(node.fpga_reason,)))
            continue
        usage = derive_share(usages, one.usage_ms)
        reconfiguration = derive_share(loads, one.reconfiguration_ms)
        locality = float(not pod.bitstream or pod.bitstream in node.fpga.bitstreams)
        points = LOCALITY * locality + USAGE * usage + RECONFIGURATION * reconfiguration
        percent = int(100 * points / (LOCALITY + USAGE + RECONFIGURATION))
        facts = {"locality": locality, "usage": usage, "reconfiguration": reconfiguration, "percent": percent}
        ratings.append(NodeRating(node.name, percent, facts=facts))
    return ratings


def derive_share(ordered: Sequence[float], value: float) -> float:
    """(N - pos) / N: 1 for the least, and for all that are equal to it."""
    return (len(ordered) - bisect_left(ordered, value)) / len(ordered)
