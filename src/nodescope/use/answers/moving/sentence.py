"""Advice about moving pods in words."""

from nodescope.base.quantity import render_count, render_quantity
from nodescope.use.answers.moving.advice import Advice, MoveAdvice
from nodescope.use.answers.moving.node_state import RunningPod

RESOURCES = {"cpu": "cores", "memory": "memory", "bus": "memory bandwidth"}


def render_headline(advice: Advice) -> str:
    if advice.moves:
        nodes = len({move.source for move in advice.moves})
        return f"{render_count(len(advice.moves), 'pod')} should run elsewhere, to relieve {render_count(nodes, 'node')}."
    if advice.crowded:
        return f"{render_count(len(advice.crowded), 'node')} crowded, and no move would help."
    if advice.stays:
        return "No node is crowded by its pods; tasks wait for other reasons."
    return "No node is crowded: nothing to move."


def render_move(move: MoveAdvice) -> str:
    what = RESOURCES[move.resource]
    return (
        f"Move {move.pod.full_name} from {move.source} to {move.target}: it uses {render_use(move.pod)}. "
        f"On {move.source} {move.reason}. Its {what} in use go from {move.source_before:.0%} to about "
        f"{move.source_after:.0%}, those of {move.target} from {move.target_before:.0%} to {move.target_after:.0%}."
    )


def render_use(pod: RunningPod) -> str:
    parts = [
        f"{pod.cores:.2g} cores" if pod.cores is not None else "",
        render_quantity(pod.memory_bytes, "bytes") if pod.memory_bytes is not None else "",
        f"{pod.bandwidth:.2g} GB/s" if pod.bandwidth is not None else "",
    ]
    return ", ".join(part for part in parts if part) or "an unknown amount"
