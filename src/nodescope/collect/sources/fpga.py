"""
FPGA usage and reconfigurations, as the programs that use the FPGA report them.

Reads   POST / and POST /fpga/events of the agent, through the tracker that the intake fills
Needs   a sender; nothing on the node itself tells who used an FPGA for how long
Docs    https://github.com/TUM-DSE/funky-monitor-pub

One report, as a sender posts it (milliseconds; timestamp since the epoch):

    timestamp_ms=1689181419598&reconfiguration_ms=10000&bitstream_identifier=def

Absent until the first report. Totals count every report; the windows hold
those of the last minutes, by the sender's clock.
"""

from typing import Any

from nodescope.base.block import Block, Info, Table, make_block
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.metric import Kind, Metric
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.fpga.tracker import FpgaReading

ABSENT = "no event yet: post one to /fpga/events of this agent"


def milliseconds(name: str, published: str, sentence: str) -> Metric:
    kind: Kind = "counter" if published.endswith("_total") else "gauge"
    return Metric(f"fpga.{name}", kind, sentence, published, unit="seconds", scale=1e-3)


def event_total(name: str, kind: str) -> Metric:
    """All events of one name, told apart by how they arrived."""
    return Metric(
        f"fpga.{name}",
        "counter",
        "Reports by their timestamp: in the window, too old for it, or from the future.",
        "fpga_events_total",
        labels=(("timestamp", kind),),
    )


NODE_TABLE = Table(
    "fpga",
    "fpga",
    ("fpga",),
    (
        milliseconds("usage_ms", "fpga_usage_seconds_total", "Time FPGAs were in use."),
        milliseconds(
            "reconfiguration_ms", "fpga_reconfiguration_seconds_total", "Time spent on loading bitstreams."
        ),
        Metric("fpga.sessions", "counter", "Usage sessions that ended.", "fpga_sessions_total"),
        Metric("fpga.reconfigurations", "counter", "Bitstreams loaded.", "fpga_reconfigurations_total"),
        milliseconds(
            "recent_usage_ms", "fpga_recent_usage_seconds", "Time FPGAs were in use within the window."
        ),
        milliseconds(
            "recent_reconfiguration_ms",
            "fpga_recent_reconfiguration_seconds",
            "Time spent on loading bitstreams within the window.",
        ),
        event_total("events", "window"),
        event_total("events_late", "late"),
        event_total("events_future", "future"),
    ),
)
BITSTREAM_TABLE = Table(
    "fpga.bitstream",
    "fpga",
    ("fpga",),
    (
        milliseconds(
            "bitstream.reconfiguration_ms",
            "fpga_bitstream_reconfiguration_seconds",
            "Mean time to load the bitstream, as reported lately.",
        ),
    ),
    Info("fpga_bitstream_info", "A bitstream that was loaded lately; always 1.", ()),
)
NODE_ENTITY = Entity("fpga", ("all",))


def name_bitstream(name: str) -> Entity:
    """The name is a label of its series and, as a detail, a column of the archive."""
    label = (("bitstream", name),)
    return Entity("fpga", ("bitstream", name), label, label)


class FpgaSource(CallDefaults):
    """Asks the tracker, once a second."""

    name = "fpga"
    deadline_seconds = 5.0
    is_prompt = True
    absent_pace_seconds = 1.0

    def __init__(self, context: Context) -> None:
        if context.fpga is None:
            raise SourceAbsent(ABSENT)
        self._tracker = context.fpga
        self._limit = context.limit("fpga") - 1

    def read(self) -> FpgaReading:
        if not self._tracker.heard:
            raise SourceAbsent(ABSENT)
        return self._tracker.read()

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        reading: FpgaReading = answer
        totals = reading.totals
        row = [
            totals.usage_ms,
            totals.reconfiguration_ms,
            totals.sessions,
            totals.reconfigurations,
            reading.usage_ms,
            reading.reconfiguration_ms,
            totals.events - totals.late - totals.future,
            totals.late,
            totals.future,
        ]
        # The most recent ones, in an order that does not change with every report.
        kept = sorted(reading.bitstreams[: self._limit], key=lambda one: one.name)
        bitstreams = {name_bitstream(one.name): [one.reconfiguration_ms] for one in kept}
        return (
            make_block(NODE_TABLE, {NODE_ENTITY: row}, mono_ns),
            make_block(BITSTREAM_TABLE, bitstreams, mono_ns),
        )
