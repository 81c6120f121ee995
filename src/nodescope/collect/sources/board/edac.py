"""
Memory errors that were corrected, and those that could not be.

Reads   /sys/devices/system/edac/mc/mcN/{ce,ue}{,_noinfo}_count, mcN/csrowN/{ce,ue}_count
Needs   Linux with a driver of the memory controller; most virtual machines have none
Docs    https://docs.kernel.org/driver-api/edac.html

    3
"""

from collections.abc import Mapping

from nodescope.base.block import Table
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.collect.run.slow_source import Rows, SlowSource, list_names, pick_numbers, read_folder
from nodescope.collect.run.source import Context

FOLDER = "sys/devices/system/edac/mc"
TOTALS = ("ce_count", "ue_count")
UNPLACED = ("ce_noinfo_count", "ue_noinfo_count")
WORDS = (("ce", "correctable"), ("ue", "uncorrectable"))


def columns(level: str, sentence: str) -> tuple[Metric, ...]:
    return tuple(
        Metric(
            f"edac.{level}{short}_count",
            "counter",
            f"{word.capitalize()} memory errors {sentence}.",
            f"node_edac_{level}{word}_errors_total",
        )
        for short, word in WORDS
    )


CONTROLLERS = Table("edac", "edac", ("device",), columns("", "of a memory controller"))
ROWS = Table("edac.csrow", "edac", ("device",), columns("csrow_", "of a row of a memory controller"))


def read(context: Context) -> dict[str, dict[str, dict[str, str]]] | None:
    """{controller: {row, or empty for the controller itself: its files}}."""
    return {name: read_controller(context, name) for name in list_names(context, FOLDER, r"mc\d+")} or None


def read_controller(context: Context, name: str) -> dict[str, dict[str, str]]:
    here = f"{FOLDER}/{name}"
    rows = list_names(context, here, r"csrow\d+")
    found = {row: read_folder(context, f"{here}/{row}", TOTALS) for row in rows}
    return {"": read_folder(context, here, (*TOTALS, *UNPLACED)), **found}


def parse(found: Mapping[str, Mapping[str, Mapping[str, str]]]) -> tuple[Rows, ...]:
    controllers: dict[Entity, list[float]] = {}
    rows: dict[Entity, list[float]] = {}
    for name, parts in found.items():
        number = name.removeprefix("mc")
        labels = (("controller", number),)
        controllers[Entity("device", ("edac", number), labels)] = pick_numbers(parts[""], TOTALS)
        # Errors that the controller cannot place stand under a row of their own.
        placed = {"unknown": pick_numbers(parts[""], UNPLACED)}
        placed.update(
            {row.removeprefix("csrow"): pick_numbers(texts, TOTALS) for row, texts in parts.items() if row}
        )
        for row, values in placed.items():
            rows[Entity("device", ("edac", number, row), (*labels, ("csrow", row)))] = values
    return controllers, rows


make = SlowSource(
    "edac",
    (CONTROLLERS, ROWS),
    read,
    parse,
    "no /sys/devices/system/edac/mc/mc*: no driver of the memory controller",
)
