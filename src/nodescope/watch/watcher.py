"""
The watcher: a thread that looks at the ring's newest samples and keeps the store of findings.

The tick does not know of it. A look takes references under the ring's lock and
computes on this thread; when the node is busy, or looks cost more than
their budget, they become rarer.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isnan

from nodescope.base.clock import Clock, thread_cpu_ns
from nodescope.base.findings.event_form import make_event
from nodescope.base.frame import Event, Outcome
from nodescope.hold.ring import Ring
from nodescope.watch.detect import Detector, Learner, build_detectors
from nodescope.watch.finding_store import FindingStore
from nodescope.watch.grouping import find_waiting, group_sightings
from nodescope.watch.learned import LEARNED_KINDS, HourProfile, read_levels, read_profile
from nodescope.watch.look import Eyes, NodeLook
from nodescope.watch.sighting import Sighting

LOOK_SECONDS = 10.0
# Rarer than this, a leak of minutes would be over before it is told.
LONGEST_SECONDS = 60.0
# Of a core.
BUDGET_RATIO = 0.003
# Somebody on the node waits for a CPU for so much of the time: others need it more.
BUSY_WAIT = 0.5
# The newest cost counts for a fifth.
COST_WEIGHT = 0.2
STOP_SECONDS = 5.0

Guard = Callable[[str, Callable[[], None], None], tuple[None, Outcome]]


@dataclass(slots=True)
class WatcherStatus:
    """For /status and /metrics."""

    looks: int = 0
    cost_seconds: float = 0.0
    """CPU time of all looks."""
    look_seconds: float = LOOK_SECONDS
    """From one look to the next, as it is now."""
    last_failure: str = ""


@dataclass(slots=True)
class Watcher:
    ring: Ring
    store: FindingStore
    clock: Clock
    guard: Guard
    tell: Callable[[Event], None]
    """Takes every change as an event of the archive."""
    detectors: Mapping[str, Detector] = field(default_factory=build_detectors)
    status: WatcherStatus = field(default_factory=WatcherStatus)
    containers: int = 0
    profile: HourProfile = field(default_factory=HourProfile)
    _eyes: Eyes = field(default_factory=Eyes)
    _sighted: dict[str, float] = field(default_factory=dict)
    """By key: when it was last seen."""
    _told: int = 0
    _seen_mono_ns: int = 0
    _cost_seconds: float = 0.0
    _is_busy: bool = False
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    # -- the thread -------------------------------------------------------------------

    def start(self) -> None:
        self.load()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread:
            self._thread.join(timeout=STOP_SECONDS)
        self._save(self.clock.wall_ns() / 1e9, always=True)

    def load(self) -> None:
        self.store.load()
        learned = self.store.extra.get("hours")
        self.profile = read_profile(learned if isinstance(learned, dict) else {})
        levels = self.store.extra.get("levels")
        for kind, detector in self.detectors.items():
            if isinstance(detector, Learner):
                detector.recall(read_levels(levels.get(kind) if isinstance(levels, dict) else None))
        # What was told before is not told again.
        self._told = self.store.revision

    def _save(self, now: float, *, always: bool = False) -> None:
        """What was learned is copied only where the store writes."""
        if always or self.store.is_unsaved:
            self.store.extra["hours"] = self.profile.to_json()
            self.store.extra["levels"] = {
                kind: detector.remember()
                for kind, detector in self.detectors.items()
                if isinstance(detector, Learner)
            }
            self.store.save(now, always=always)

    def _run(self) -> None:
        deadline_ns = self.clock.mono_ns()
        while not self.clock.wait_until(deadline_ns, self._stopping):
            before_ns = thread_cpu_ns()
            _, outcome = self.guard("watch", self.step, None)
            self.status.last_failure = outcome.reason if outcome.state == "failed" else ""
            self._pace((thread_cpu_ns() - before_ns) / 1e9)
            deadline_ns = self.clock.mono_ns() + round(self.status.look_seconds * 1e9)

    def _pace(self, cost_seconds: float) -> None:
        """The next look comes when this one's cost is within the budget, and later on a busy node."""
        self.status.cost_seconds += cost_seconds
        self._cost_seconds += COST_WEIGHT * (cost_seconds - self._cost_seconds)
        wanted = max(LOOK_SECONDS, self._cost_seconds / BUDGET_RATIO)
        if self._is_busy:
            wanted = max(wanted, 2 * LOOK_SECONDS)
        self.status.look_seconds = min(wanted, LONGEST_SECONDS)

    # -- one look -----------------------------------------------------------------------

    def step(self) -> None:
        newest = self.ring.newest()
        if newest is None or newest.mono_ns <= self._seen_mono_ns:
            return
        # Events are of the frames since the last look; all but the newest are headers only.
        frames = self.ring.headers(self._seen_mono_ns, newest.mono_ns) if self._seen_mono_ns else []
        events = [event for frame in frames for event in frame.events]
        self._seen_mono_ns = newest.mono_ns
        look = self._eyes.look(newest.at_ns / 1e9, self.ring.latest(), newest.outcomes, events)
        self.take(look)

    def take(self, look: NodeLook) -> None:
        """Lets all detectors look, and keeps what they see."""
        self.status.looks += 1
        self.containers = len(look.containers)
        wait = look.wait.get("cpu", 0.0)
        self._is_busy = not isnan(wait) and wait >= BUSY_WAIT
        seen = [sighting for detector in self.detectors.values() for sighting in detector.look(look)]
        told = self.store.current() if find_waiting(seen) else []
        for sighting in group_sightings(seen, told):
            self._note(sighting, look.at)
        self._end_old(look.at)
        self.store.apply_silences(look.at)
        self._tell_changes()
        self._save(look.at)

    def _note(self, sighting: Sighting, now: float) -> None:
        if sighting.is_sure or not self.store.is_confirmed(sighting.key):
            # What was told is over once nothing sure is seen; a suspicion does not keep it.
            self._sighted[sighting.key] = now
        if sighting.kind in LEARNED_KINDS and sighting.is_sure:
            # Asked by its beginning: it may last into other hours.
            if self.profile.knows(sighting.key, sighting.onset):
                sighting = replace(
                    sighting,
                    severity="curious",
                    is_learned=True,
                    sentence=f"{sighting.sentence} It is so at this hour on most days.",
                )
            self.profile.note(sighting.key, sighting.onset)
        self.store.see(sighting, now)

    def _end_old(self, now: float) -> None:
        """Findings that no detector has seen for long enough are over."""
        for finding in self.store.current():
            detector = self.detectors.get(finding.kind)
            quiet = detector.quiet_seconds if detector else 0.0
            last = self._sighted.setdefault(finding.key, now)
            if now - last > quiet:
                del self._sighted[finding.key]
                self.store.resolve(finding.key, now)

    def _tell_changes(self) -> None:
        for finding in self.store.changes(self._told):
            self._told = finding.revision
            self.tell(make_event(finding))
