"""
AMD GPUs under the names of AMD's device-metrics-exporter, for dashboards that ask for them.

The same values, in its units and with its labels. What needs its profiler
(gpu_prof_*) cannot be had from the driver, and is not published.
https://instinct.docs.amd.com/projects/device-metrics-exporter/
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodescope.base.block import Block, Table, make_block
from nodescope.base.entity import Entity, Labels
from nodescope.base.metric import Kind, Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.layout import NAN

MIB = 2.0**20
# Name, our key, multiply, divide, help.
ROWS = (
    ("gpu_health", "up", 1, 1, "1 when the GPU answers, 0 when it was there and no longer does."),
    ("gpu_edge_temperature", "temperature_edge", 1, 1, "Temperature at the edge (in C)."),
    ("gpu_junction_temperature", "temperature_junction", 1, 1, "Temperature of the hottest spot (in C)."),
    ("gpu_memory_temperature", "temperature_memory", 1, 1, "Temperature of the memory (in C)."),
    ("gpu_package_power", "power_now", 1, 1, "Power of the package now (in W)."),
    ("gpu_average_package_power", "power_mean", 1, 1, "Mean power of the package (in W)."),
    ("gpu_power_usage", "power", 1, 1, "Power of the package (in W)."),
    ("gpu_energy_consumed", "energy", 1e6, 1, "Energy used since the driver was loaded (in uJ)."),
    ("gpu_gfx_activity", "utilization", 1, 1, "Share of time in which the GPU computed (in %)."),
    ("gpu_umc_activity", "memory_busy", 1, 1, "Share of time in which memory was used (in %)."),
    ("gpu_total_vram", "memory_total", 1, MIB, "Memory of the GPU (in MB of 2^20 bytes)."),
    ("gpu_used_vram", "memory_used", 1, MIB, "Memory in use (in MB of 2^20 bytes)."),
    ("gpu_free_vram", "memory_free", 1, MIB, "Memory that can be had (in MB of 2^20 bytes)."),
    ("gpu_total_visible_vram", "visible_total", 1, MIB, "Memory that the CPU can address (in MB)."),
    ("gpu_used_visible_vram", "visible_used", 1, MIB, "Such memory in use (in MB)."),
    ("gpu_total_gtt", "gtt_total", 1, MIB, "System memory that the GPU may map (in MB)."),
    ("gpu_used_gtt", "gtt_used", 1, MIB, "Such memory in use (in MB)."),
    ("gpu_ecc_correct_total", "ecc.corrected", 1, 1, "Memory errors that were corrected."),
    ("gpu_ecc_uncorrect_total", "ecc.uncorrected", 1, 1, "Memory errors that were not."),
    ("pcie_speed", "pcie_speed", 1, 1, "Speed of the PCIe link now (in GT/s)."),
    ("pcie_max_speed", "pcie_max_speed", 1, 1, "The most speed of the PCIe link (in GT/s)."),
    ("pcie_bandwidth", "pcie_bandwidth", 1, 1, "Use of the PCIe link, as the firmware has it."),
    ("pcie_replay_count", "pcie_replays", 1, 1, "Packets that PCIe had to send again."),
    ("pcie_replay_rollover_count", "pcie_replay_rollovers", 1, 1, "Overflows of that count."),
    ("pcie_recovery_count", "pcie_recoveries", 1, 1, "Recoveries of the PCIe link."),
    ("pcie_nack_sent_count", "pcie_nacks_sent", 1, 1, "Packets that the GPU refused."),
    ("pcie_nack_received_count", "pcie_nacks_received", 1, 1, "Packets that were refused to the GPU."),
)


def make_row(name: str, sentence: str) -> Metric:
    """AMD's counters have no _total, which a linter asks of them: untyped, but for two."""
    is_counter = name.startswith("gpu_ecc") or name.endswith("_count") or name == "gpu_energy_consumed"
    kind: Kind = "counter" if is_counter else "gauge"
    return Metric(f"gpu.amd.{name}", kind, sentence, name, untyped=is_counter and not name.endswith("_total"))


CARDS = Table(
    "amd.amd_names", "amd", ("gpu",), tuple(make_row(name, sentence) for name, _, _, _, sentence in ROWS)
)
UNITS = Table(
    "amd.units.amd_names",
    "amd",
    ("gpu",),
    (
        Metric(
            "gpu.amd.gpu_gfx_busy_instantaneous",
            "gauge",
            "Share of time in which a compute unit (XCC) was busy just now (in %).",
            "gpu_gfx_busy_instantaneous",
        ),
    ),
)
STACKS = Table(
    "amd.stacks.amd_names",
    "amd",
    ("gpu",),
    (
        Metric(
            "gpu.amd.gpu_hbm_temperature",
            "gauge",
            "Temperature of a stack of memory (in C).",
            "gpu_hbm_temperature",
        ),
    ),
)
NODES = Table(
    "amd.nodes.amd_names",
    "amd",
    ("gpu",),
    (Metric("gpu.amd.gpu_nodes_total", "gauge", "GPUs of this node.", "gpu_nodes_total", untyped=True),),
)


def make_blocks(answer: Mapping[str, Any], mono_ns: int) -> Iterator[Block]:
    driver = clean_text(str(answer.get("driver") or ""))
    cards = [(list_labels(card, driver), card) for card in answer["gpus"]]
    yield make_block(CARDS, {name_card(labels, card): list_cells(card) for labels, card in cards}, mono_ns)
    for table, prefix, words in (
        (UNITS, "unit_busy.", ("gpu_partition_id", "xcc_index")),
        (STACKS, "temperature_hbm.", ("hbm_index",)),
    ):
        rows = {}
        for labels, card in cards:
            for key, value in card["readings"].items():
                if key.startswith(prefix):
                    places = key.removeprefix(prefix).split(".")
                    rows[name_card((*labels, *zip(words, places)), card, key)] = (value,)
        if rows:
            yield make_block(table, rows, mono_ns)
    yield make_block(NODES, {Entity("gpu", ("amd", "all")): (float(len(cards)),)}, mono_ns)


def name_card(labels: Labels, card: Mapping[str, Any], *more: str) -> Entity:
    return Entity("gpu", (str(card["uuid"]), "amd_names", *more), labels)


def list_cells(card: Mapping[str, Any]) -> list[float]:
    readings = card["readings"]
    return [
        readings[key] * times / per if readings.get(key) is not None else NAN
        for _, key, times, per, _ in ROWS
    ]


def list_labels(card: Mapping[str, Any], driver: str) -> Labels:
    """Whose it is: the one pod, or the one job of Slurm, that computes on it."""
    owners = [process.get("owner") or {} for process in card.get("processes") or ()]
    words = {
        "gpu_id": card["index"],
        "gpu_uuid": card["uuid"],
        "serial_number": card.get("serial"),
        "card_model": card.get("model"),
        "card_series": card.get("name"),
        "card_vendor": "Advanced Micro Devices Inc.",
        "driver_version": driver,
        "vbios_version": card.get("vbios_version"),
        **{key: pick_one(owners, key) for key in ("namespace", "pod", "container", "job_id")},
    }
    return tuple((key, clean_text(str(word if word is not None else ""))) for key, word in words.items())


def pick_one(owners: list[Mapping[str, str]], key: str) -> str:
    """Of several pods none: a GPU that is shared belongs to nobody."""
    found = {owner[key] for owner in owners if owner.get(key)}
    return found.pop() if len(found) == 1 else ""
