"""A GPU that was there and is not: it fell off the bus, or its driver stopped answering."""

from dataclasses import dataclass, field

from nodescope.base.time_range import render_time
from nodescope.watch.look import GPU_SOURCES, NodeLook
from nodescope.watch.sighting import FindingSubject, Sighting

# Devices are believed after so many looks; a reading that failed once is no loss.
LEAST_LOOKS = 3
SURE_SECONDS = 45.0


@dataclass(slots=True)
class GpuTrack:
    looks: int = 0
    gone: float | None = None
    """Since when it is not there."""


@dataclass(slots=True)
class LostGpus:
    quiet_seconds: float = 30.0
    _known: dict[tuple[str, str], GpuTrack] = field(default_factory=dict)

    def look(self, look: NodeLook) -> list[Sighting]:
        for source in GPU_SOURCES:
            self._note(source, look.gpus.get(source, frozenset()), look.at)
        return [
            describe_loss(source, device, track.gone, look)
            for (source, device), track in self._known.items()
            if track.gone is not None and track.looks >= LEAST_LOOKS
        ]

    def _note(self, source: str, there: frozenset[str], now: float) -> None:
        for device in there:
            track = self._known.setdefault((source, device), GpuTrack())
            track.looks, track.gone = track.looks + 1, None
        for (known, device), track in self._known.items():
            if known == source and device not in there and track.gone is None:
                track.gone = now


def describe_loss(source: str, device: str, gone: float, look: NodeLook) -> Sighting:
    outcome = look.outcomes.get(source)
    is_failed = outcome is not None and outcome.state != "ok"
    reason = outcome.reason if outcome and is_failed else "the driver no longer lists it"
    return Sighting(
        "gpu_loss",
        "hurt",
        FindingSubject(device=f"{source} {device}"),
        gone,
        f"GPU {device} is gone since {render_time(gone)}: {reason}.",
        is_sure=look.at - gone >= SURE_SECONDS,
        advice="nodescope sources",
        cause=reason,
        evidence={"source": source, "is_source_failed": is_failed},
    )
