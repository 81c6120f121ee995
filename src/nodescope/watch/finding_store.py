"""
The findings of a node: each with one life and one identity, kept in a small file of the data folder.

Detectors say at every look what they see. The store decides what that means
for a finding's life, gives every change a revision, and keeps all of it in
DATA/findings.json, so that a restart of the agent neither forgets nor repeats.
Who tells others (webhook, Kubernetes Events) keeps the revision it has told
last and asks for the changes behind it.
"""

import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2s
from pathlib import Path
from typing import Any

from nodescope.base.errors import RequestRejected
from nodescope.base.findings.node_finding import SEVERITIES, NodeFinding, parse_finding, rank_findings
from nodescope.base.log import Log
from nodescope.base.text import hint_nearest
from nodescope.keep.disk import Disk, read_json
from nodescope.watch.sighting import Sighting
from nodescope.watch.silence import Silence, Silences, parse_silences

log = Log("watch")

FILE_NAME = "findings.json"
VERSION = 1
# What comes back within the hour is the same finding.
REOPEN_SECONDS = 3600.0
# The numbers of a finding are told anew at this pace; a rise of its severity at once.
UPDATE_SECONDS = 300.0
# A time to the limit that moved by less than this is the same news.
MOVED_RATIO = 0.25
OPEN_MOST = 200
RESOLVED_MOST = 200
RESOLVED_SECONDS = 7 * 86_400.0
CHANGES_MOST = 500
FEEDBACK_MOST = 500
VERDICTS = ("not_a_problem", "a_problem")


class FindingUnknown(RequestRejected):
    """No finding has this id."""

    status, title = 404, "not found"


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a person said about findings of one key."""

    verdict: str
    at: float


@dataclass(slots=True)
class FindingStore:
    """Written by the watcher's thread, read by all."""

    node: str
    path: Path | None = None
    """The file; None keeps everything in memory."""
    disk: Disk = field(default_factory=Disk)
    feedback: dict[str, Feedback] = field(default_factory=dict)
    silences: Silences = field(default_factory=Silences)
    refused: int = 0
    """Findings beyond OPEN_MOST."""
    revision: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    """What the watcher has learned, kept in the same file."""
    _open: dict[str, NodeFinding] = field(default_factory=dict)
    _resolved: deque[NodeFinding] = field(default_factory=lambda: deque(maxlen=RESOLVED_MOST))
    _changes: deque[NodeFinding] = field(default_factory=lambda: deque(maxlen=CHANGES_MOST))
    _counts: dict[str, int] = field(default_factory=dict)
    _news: threading.Condition = field(default_factory=threading.Condition)
    _is_unsaved: bool = False

    # -- reading, from any thread -------------------------------------------------

    def current(self) -> list[NodeFinding]:
        """Open findings, the most urgent first."""
        with self._news:
            return rank_findings(self._open.values())

    def recent(self) -> list[NodeFinding]:
        """Open findings and those that were resolved in the last week."""
        with self._news:
            return rank_findings([*self._open.values(), *self._resolved])

    def find(self, identity: str) -> NodeFinding | None:
        return next((one for one in self.recent() if one.id == identity), None)

    def changes(self, after: int) -> list[NodeFinding]:
        """
        Every change with a revision above `after`, in order, as the finding was then.

        The last 500 are kept; of findings whose changes are older there is
        the newest state, so that who was away for long misses no finding.
        """
        with self._news:
            known = (*self._open.values(), *self._resolved, *self._changes)
            found = {one.revision: one for one in known if one.revision > after}
            return [found[revision] for revision in sorted(found)]

    def wait(self, after: int, seconds: float) -> list[NodeFinding]:
        """The same, once there is one; empty when none came in time."""
        with self._news:
            self._news.wait_for(lambda: self.revision > after, timeout=seconds)
        return self.changes(after)

    def is_confirmed(self, key: str) -> bool:
        with self._news:
            return key in self._open and self._open[key].is_confirmed

    # -- the life of a finding ------------------------------------------------------

    def see(self, sighting: Sighting, now: float) -> NodeFinding | None:
        """Takes what a detector sees; gives the finding if that was news."""
        sighting = self._respect_feedback(sighting)
        with self._news:
            before = self._open.get(sighting.key)
            if before is None:
                return self._begin(sighting, now)
            after = self._mark(self._refresh(before, sighting))
            state = self._judge(before, after, sighting, now)
            self._counts[sighting.key] = sighting.count
            if state is None:
                # Its numbers are of now; nobody is told.
                self._open[sighting.key] = after
                return None
            confirmed = after.confirmed if after.confirmed is not None or not sighting.is_sure else now
            return self._tell(replace(after, state=state, confirmed=confirmed), now)

    def _begin(self, sighting: Sighting, now: float) -> NodeFinding | None:
        if len(self._open) >= OPEN_MOST:
            self.refused += 1
            return None
        if not sighting.is_sure and self._find_earlier(sighting.key, now):
            # A suspicion alone does not bring back what is over.
            return None
        state = "confirmed" if sighting.is_sure else "born"
        confirmed = now if sighting.is_sure else None
        self._counts[sighting.key] = sighting.count
        earlier = self._find_earlier(sighting.key, now)
        if earlier:
            self._resolved.remove(earlier)
            again = self._refresh(replace(earlier, times=earlier.times + 1, ended=None), sighting)
            again = replace(again, state=state, confirmed=earlier.confirmed or confirmed)
            return self._tell(self._mark(again), now)
        finding = NodeFinding(
            make_id(self.node, sighting.key, now),
            sighting.key,
            sighting.kind,
            sighting.severity,
            state,
            self.node,
            sighting.onset,
            now,
            now,
            sighting.sentence,
            confirmed=confirmed,
        )
        return self._tell(self._mark(self._refresh(finding, sighting)), now)

    def _find_earlier(self, key: str, now: float) -> NodeFinding | None:
        """A finding of this key of which somebody was told, and that ended a moment ago: it goes on."""
        return next(
            (
                one
                for one in self._resolved
                if one.key == key
                and one.confirmed is not None
                and one.ended is not None
                and 0 <= now - one.ended <= REOPEN_SECONDS
            ),
            None,
        )

    def _refresh(self, finding: NodeFinding, sighting: Sighting) -> NodeFinding:
        """What is seen now, on the same finding; its beginning is fixed once somebody was told."""
        who = sighting.subject
        return replace(
            finding,
            severity=sighting.severity,
            onset=sighting.onset if finding.confirmed is None else finding.onset,
            sentence=sighting.sentence,
            advice=sighting.advice,
            cause=sighting.cause,
            victims=sighting.victims[:8],
            victims_count=len(sighting.victims),
            time_to_limit_seconds=sighting.time_to_limit_seconds,
            evidence=dict(sighting.evidence),
            is_learned=sighting.is_learned,
            feedback=self.feedback[sighting.key].verdict if sighting.key in self.feedback else "",
            namespace=who.namespace,
            workload=who.workload,
            pod=who.pod,
            container=who.container,
            container_id=who.container_id,
            device=who.device,
            pod_uid=who.pod_uid,
        )

    def _judge(self, before: NodeFinding, after: NodeFinding, sighting: Sighting, now: float) -> str | None:
        """The state to tell; None where nothing of it is news."""
        if sighting.is_sure and not before.is_confirmed:
            return "confirmed"
        if not before.is_confirmed:
            return None
        if before.silenced != after.silenced:
            return "updated"
        is_worse = SEVERITIES.index(after.severity) < SEVERITIES.index(before.severity)
        if is_worse or sighting.count > self._counts.get(before.key, 0):
            return "updated"
        told = next((one for one in reversed(self._changes) if one.id == before.id), before)
        return "updated" if now - before.updated >= UPDATE_SECONDS and has_moved(told, after, now) else None

    def resolve(self, key: str, now: float, sentence: str = "") -> NodeFinding | None:
        """It is over. Of one that was never confirmed nobody was told: its `confirmed` is None."""
        with self._news:
            finding = self._open.pop(key, None)
            self._counts.pop(key, None)
            if finding is None:
                return None
            words = sentence or finding.sentence
            ended = replace(finding, state="resolved", ended=now, sentence=words, time_to_limit_seconds=None)
            ended = self._stamp(ended, now)
            self._resolved.append(ended)
            return ended

    def _tell(self, finding: NodeFinding, now: float) -> NodeFinding:
        told = self._stamp(finding, now)
        self._open[finding.key] = told
        return told

    def _stamp(self, finding: NodeFinding, now: float) -> NodeFinding:
        self.revision += 1
        told = replace(finding, updated=now, revision=self.revision)
        self._changes.append(told)
        self._is_unsaved = True
        self._news.notify_all()
        return told

    # -- what people say ------------------------------------------------------------

    def judge(self, identity: str, verdict: str, now: float) -> NodeFinding:
        """Keeps what a person says about a finding; it holds for all later ones of its key."""
        if verdict not in VERDICTS:
            raise RequestRejected(
                f"verdict={verdict[:40]!r} is not accepted; accepted: {', '.join(VERDICTS)}"
            )
        finding = self.find(identity)
        if finding is None:
            known = [one.id for one in self.recent()]
            raise FindingUnknown(f'no finding "{identity[:40]}"{hint_nearest(identity, known)}')
        with self._news:
            self.feedback.pop(finding.key, None)
            if verdict == "not_a_problem":
                self.feedback[finding.key] = Feedback(verdict, now)
                while len(self.feedback) > FEEDBACK_MOST:
                    del self.feedback[next(iter(self.feedback))]
            self._is_unsaved = True
            kept = self._open.get(finding.key)
            if kept is None:
                return finding
            said = "" if verdict == "a_problem" else verdict
            severity = "curious" if said else kept.severity
            state = "updated" if kept.is_confirmed else kept.state
            return self._tell(replace(kept, feedback=said, severity=severity, state=state), now)

    def _respect_feedback(self, sighting: Sighting) -> Sighting:
        if sighting.key not in self.feedback:
            return sighting
        return replace(sighting, severity="curious")

    # -- silences -------------------------------------------------------------------

    def _mark(self, finding: NodeFinding) -> NodeFinding:
        silenced = self.silences.find(finding)
        return finding if silenced == finding.silenced else replace(finding, silenced=silenced)

    def silence(self, given: object, now: float) -> Silence:
        """Keeps what a person asks for; findings that it is about are marked at once."""
        with self._news:
            added = self.silences.add(given, now)
            self._is_unsaved = True
        self.apply_silences(now)
        return added

    def end_silence(self, identity: str, now: float) -> Silence:
        with self._news:
            ended = self.silences.end(identity)
            self._is_unsaved = True
        self.apply_silences(now)
        return ended

    def list_silences(self, now: float) -> list[Silence]:
        """Those that hold, the first to end first."""
        with self._news:
            held = [one for one in self.silences.kept.values() if one.until > now]
        return sorted(held, key=lambda one: one.until)

    def apply_silences(self, now: float) -> None:
        """Marks what is silenced now, and takes the mark from what is not any more; each is a change."""
        with self._news:
            self._is_unsaved |= self.silences.expire(now)
            for finding in list(self._open.values()):
                marked = self._mark(finding)
                if marked.silenced != finding.silenced:
                    state = "updated" if finding.is_confirmed else finding.state
                    self._tell(replace(marked, state=state), now)

    # -- the file -----------------------------------------------------------------------

    def load(self) -> None:
        """What an earlier run left; a damaged file costs what cannot be read of it."""
        content = read_json(self.path) if self.path else {}
        findings = list(parse_all(content.get("findings")))
        with self._news:
            self._open = {one.key: one for one in findings if one.is_open}
            self._resolved.extend(one for one in findings if not one.is_open)
            self._changes.extend(parse_all(content.get("changes")))
            seen = [one.revision for one in (*findings, *self._changes)]
            self.revision = max([*seen, read_whole(content.get("revision"))], default=0)
            self.feedback = dict(parse_feedback(content.get("feedback")))
            self.silences = parse_silences(content.get("silences"))
            extra = content.get("learned")
            self.extra = extra if isinstance(extra, dict) else {}

    @property
    def is_unsaved(self) -> bool:
        return self._is_unsaved

    def save(self, now: float, *, always: bool = False) -> None:
        """Where something has changed; a disk that is full is tried again with the next change."""
        if self.path is None or not (self._is_unsaved or always):
            return
        with self._news:
            while self._resolved and now - (self._resolved[0].ended or 0.0) > RESOLVED_SECONDS:
                self._resolved.popleft()
            content = {
                "version": VERSION,
                "node": self.node,
                "revision": self.revision,
                "findings": [one.to_json() for one in (*self._open.values(), *self._resolved)],
                "changes": [one.to_json() for one in list(self._changes)[-RESOLVED_MOST:]],
                "feedback": {key: asdict(said) for key, said in self.feedback.items()},
                "silences": [one.to_json() for one in self.silences.kept.values()],
                "learned": self.extra,
            }
            self._is_unsaved = False
        try:
            self.disk.write_whole(self.path, json.dumps(content, allow_nan=False).encode())
        except OSError as error:
            self._is_unsaved = True
            log.warning("findings not saved", path=str(self.path), error=str(error))


def has_moved(before: NodeFinding, after: NodeFinding, now: float) -> bool:
    """Whether somebody who was told `before` would want to know."""
    if before.severity != after.severity or before.cause != after.cause or before.times != after.times:
        return True
    if set(after.victims) - set(before.victims):
        return True
    first, last = before.time_to_limit_seconds, after.time_to_limit_seconds
    if first is None or last is None:
        return first is not last
    # It counts down by itself: told is a moment, not a length.
    moved = abs((before.updated + first) - (now + last))
    return moved > MOVED_RATIO * max(first, 60.0)


def make_id(node: str, key: str, now: float) -> str:
    """Short enough to type, and no other finding of this node has it."""
    return blake2s(f"{node}|{key}|{now:.3f}".encode(), digest_size=5).hexdigest()


def parse_all(rows: object) -> Iterable[NodeFinding]:
    for row in rows if isinstance(rows, list) else ():
        finding = parse_finding(row) if isinstance(row, Mapping) else None
        if finding:
            yield finding


def parse_feedback(rows: object) -> Iterable[tuple[str, Feedback]]:
    for key, row in rows.items() if isinstance(rows, dict) else ():
        with suppress(TypeError, KeyError, ValueError):
            if row["verdict"] in VERDICTS:
                yield str(key), Feedback(row["verdict"], float(row["at"]))


def read_whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
