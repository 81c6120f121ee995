"""
Time each core spent in each idle state: the substitute for PCM's C-state residency.

Reads   /sys/devices/system/cpu/cpuN/cpuidle/stateM/{name,time}
Needs   a cpuidle driver; in a virtual machine the states are not the hardware's
Docs    https://docs.kernel.org/admin-guide/pm/cpuidle.html

    C1E
    48210377

Microseconds since boot. The kernel adds a sleep when the core wakes, so a long
one arrives late and all at once: it is spread over the time that went by,
nothing of it is lost. POLL is a busy loop and counts as awake.
"""

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nodescope.base.block import Block, Table
from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.cores import FOLDER, list_cores, name_core
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.source import CallDefaults, Context

ABSENT = (
    "no cpuidle states in /sys/devices/system/cpu: the kernel has no idle driver, as in many virtual machines"
)

# 2^64 has 20 digits.
TIME_BYTES = 64


def make_table(states: tuple[str, ...]) -> Table:
    return Table(
        "cpuidle",
        "cpuidle",
        ("cpu",),
        (
            *(
                Metric(
                    f"cpuidle.{state}.time",
                    "counter",
                    "Time a core spent in an idle state, since boot.",
                    "cpuidle_state_seconds_total",
                    unit="seconds",
                    scale=1e-6,
                    labels=(("state", state),),
                )
                for state in states
            ),
            Metric("cpuidle.asleep", "counter", "Time asleep, spread over the time that went by."),
            Metric("cpuidle.seconds", "counter", "Time in which sleep was counted."),
        ),
    )


@dataclass(slots=True)
class Sleep:
    """One core: what it slept, and what of it is still to be spread."""

    at_seconds: float
    slept_us: dict[str, int] = field(default_factory=dict)
    """By state, as it was last read."""
    owed_seconds: float = 0.0
    asleep_seconds: float = 0.0
    total_seconds: float = 0.0

    def add(self, states: dict[str, int | None], at_seconds: float) -> tuple[float, float]:
        """asleep(t2) - asleep(t1) <= t2 - t1, and in the long run the sum of all times asleep."""
        elapsed, self.at_seconds = at_seconds - self.at_seconds, at_seconds
        for state, microseconds in states.items():
            if state != "POLL" and microseconds is not None:
                # A count that went back is a core that was taken out and put in again.
                before = self.slept_us.get(state, microseconds)
                self.owed_seconds += max(0, microseconds - before) / 1e6
                self.slept_us[state] = microseconds
        credit_seconds = min(self.owed_seconds, elapsed)
        self.owed_seconds -= credit_seconds
        self.asleep_seconds += credit_seconds
        self.total_seconds += elapsed
        return self.asleep_seconds, self.total_seconds


class CpuidleSource(CallDefaults):
    """Reads the time of every state of every core."""

    name = "cpuidle"
    deadline_seconds = 20.0
    is_prompt = True

    def __init__(self, context: Context) -> None:
        self.pace_seconds = context.settings.interval_seconds
        self._root = context.root
        self._descriptors = context.descriptors
        self._kept: dict[str, int] = {}
        """Open descriptors, by path."""
        self._sleep: dict[str, Sleep] = {}
        cores = list_cores(self._root, "cpuidle/state0/time")
        self._files = {core: self._list_states(core) for core in cores}
        if not self._files:
            raise SourceAbsent(ABSENT)
        self._states = tuple(dict.fromkeys(state for files in self._files.values() for state in files))
        self._table = make_table(self._states)
        self._entities = tuple(map(name_core, self._files))

    def _list_states(self, core: str) -> dict[str, str]:
        """{name: path of its time}; two states of one name are told apart by their number."""
        root, folder = self._root, f"{FOLDER}/cpu{core}/cpuidle"
        files: dict[str, str] = {}
        for name in sorted(root.folders(folder)):
            if name.startswith("state"):
                word = clean_text(root.read_text(f"{folder}/{name}/name") or name)
                files[word if word not in files else f"{word} {name}"] = f"{folder}/{name}/time"
        return files

    def read(self) -> Any:
        """{core: {state: microseconds or None}}."""
        answer = {
            core: {state: self._read_time(path) for state, path in files.items()}
            for core, files in self._files.items()
        }
        if not any(value is not None for states in answer.values() for value in states.values()):
            raise SourceFailed("the time of no idle state can be read")
        return answer

    def _read_time(self, path: str) -> int | None:
        """None where it cannot be read; the file of a core that came back is opened again."""
        try:
            if path in self._kept:
                text = os.pread(self._kept[path], TIME_BYTES, 0)
            elif self._descriptors.take(self.name):
                self._kept[path] = -1
                self._kept[path] = self._root.open(path)
                text = os.pread(self._kept[path], TIME_BYTES, 0)
            else:
                self._descriptors.give_back(self.name, kept=False)
                text = self._root.read(path)
        except OSError:
            self._drop(path)
            return None
        return int(text) if text.strip().isdigit() else None

    def _drop(self, path: str) -> None:
        descriptor = self._kept.pop(path, None)
        if descriptor is None:
            return
        self._descriptors.give_back(self.name)
        if descriptor >= 0:
            os.close(descriptor)

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        values = np.full((len(self._files), len(self._table.metrics)), NAN)
        for row, core in enumerate(self._files):
            states = answer.get(core, {})
            for column, state in enumerate(self._states):
                if states.get(state) is not None:
                    values[row, column] = states[state]
            values[row, -2:] = self._sleep.setdefault(core, Sleep(mono_ns / 1e9)).add(states, mono_ns / 1e9)
        return (Block(self._table, self._entities, values, mono_ns),)

    def close(self) -> None:
        for path in list(self._kept):
            self._drop(path)
