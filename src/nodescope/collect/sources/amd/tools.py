"""
Running rocm-smi and amd-smi, and laying their answers beside the kernel's files.

Each call starts an interpreter and costs some hundred milliseconds, so they are
asked rarely, only stdout is parsed, and stderr serves for the reason alone. What
the kernel's files say is never overwritten: a tool fills in what they lack.
"""

from collections.abc import Callable, Mapping
from typing import Any

from nodescope.base.errors import ParseError
from nodescope.collect.sources.amd.amd_smi import parse_amd_smi
from nodescope.collect.sources.amd.rocm_smi import ARGUMENTS, parse_rocm_smi
from nodescope.collect.sources.gpu.vendor_tool import find_tool, run_tool

# What a dashboard asks for first; auto runs a tool for a card that lacks one.
WANTED = ("utilization", "memory_used", "memory_total", "power")

Run = Callable[[list[str]], tuple[str, str]]


def read_tools(run: Run = run_tool, find: Callable[[str], str | None] = find_tool) -> dict[str, Any] | None:
    """The first tool with a reading; None when there is no tool; ParseError with every tool's reason."""
    reasons = []
    for name, ask in (("amd-smi", ask_amd_smi), ("rocm-smi", ask_rocm_smi)):
        program = find(name)
        if program is None:
            continue
        try:
            answer = ask(run, program)
        except ParseError as error:
            reasons.append(str(error))
            continue
        if any(gpu["readings"] for gpu in answer["gpus"]):
            return {**answer, "tool": name, "reasons": reasons}
        reasons.append(f"{name}: every value is N/A")
    if reasons:
        raise ParseError("; ".join(reasons))
    return None


def ask_amd_smi(run: Run, program: str) -> dict[str, Any]:
    """Readings, then who is who and who computes; the latter two may fail."""
    answer = parse_amd_smi(*run([program, "metric", "--json"]))
    by_index = {gpu["index"]: gpu for gpu in answer["gpus"]}
    for command in ("list", "process"):
        try:
            more = parse_amd_smi(*run([program, command, "--json"]))
        except ParseError:
            continue
        for gpu in more["gpus"]:
            known = by_index.get(gpu["index"])
            if known is not None:
                known |= {key: value for key, value in gpu.items() if key != "readings" and value != ""}
    return answer


def ask_rocm_smi(run: Run, program: str) -> dict[str, Any]:
    return parse_rocm_smi(*run([program, *ARGUMENTS]))


def is_wanting(cards: list[dict[str, Any]]) -> bool:
    """Whether a card that is awake lacks what everybody asks for."""
    return any(
        not card["readings"].get("asleep") and any(key not in card["readings"] for key in WANTED)
        for card in cards
    )


def fill_in(cards: list[dict[str, Any]], answer: Mapping[str, Any]) -> None:
    """A tool's readings for the same cards, matched by their place on the bus, else by number."""
    by_place = {gpu["pci_bus_id"]: gpu for gpu in answer["gpus"] if gpu.get("pci_bus_id")}
    same_number = len(answer["gpus"]) == len(cards)
    for card in cards:
        gpu = by_place.get(card["pci_bus_id"])
        if gpu is None and same_number and not any(card["pci_bus_id"] == place for place in by_place):
            other = answer["gpus"][card["index"]]
            gpu = other if not other.get("pci_bus_id") or not card["pci_bus_id"] else None
        if gpu is None or card["readings"].get("asleep"):
            continue
        for key, value in gpu["readings"].items():
            card["readings"].setdefault(key, value)
        if not card.get("name") or card["name"].startswith("1002:"):
            card["name"] = gpu.get("name") or card.get("name", "")


def make_cards(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tool's own cards, where the kernel's files are hidden."""
    cards = []
    seen: set[str] = set()
    for gpu in answer["gpus"]:
        place = gpu.get("pci_bus_id", "")
        unique = str(gpu.get("unique_id", "")).removeprefix("0x")
        uuid = unique or gpu.get("uuid") or (f"pci-{place}" if place else f"amd-{gpu['index']}")
        if uuid in seen:
            # The two dies of one MI250 share their unique id.
            uuid = f"{uuid}@{place or gpu['index']}"
        seen.add(uuid)
        cards.append({**gpu, "uuid": uuid, "readings": {"up": 1, **gpu["readings"]}})
    return cards
