"""
pcm-sensor-server: the same counters over HTTP, as whole numbers.

    GET /persecond/1   Accept: application/json

    {"Interval us": 1000214, "Sockets": [{"Socket ID": 0, "Cores": [{"Threads": [
       {"OS ID": 0, "Core Counters": {"Instructions Retired Any": 123456, ...},
        "Energy Counters": {"Thermal Headroom": 56, "CStateResidency[0]": 0.01, ...}}]}],
       "Uncore": {"Uncore Counters": {"DRAM Reads": 1800000, "Package Joules Consumed": 3.7}},
       "Core Aggregate": {...}}], "Core Aggregate": {...}, "Uncore Aggregate": {...}}

Counts are of the interval that `Interval us` names; nothing is rounded, so a
core that is almost idle has a ratio where the CSV prints 0.00. The server
samples once a second by itself: two questions may get one answer, and the
second is left out. `OS ID` is the number Linux gives the core.
"""

import json
from collections import Counter
from contextlib import closing
from typing import Any

import numpy as np

from nodescope.base.errors import HttpFailed, ParseError, SourceFailed
from nodescope.collect.sources.pcm.cell import ANYTHING, NAN, SHARE, judge_number
from nodescope.collect.sources.pcm.columns import GAUGES, PAIRS, STATES, Numbers, Pairs
from nodescope.serve.http_client import HttpClient, parse_endpoint

# The server answers from memory; a second and a half is one in trouble.
ANSWER_SECONDS = 1.5
# 4,096 threads of about 1.5 KB each.
ANSWER_BYTES = 16 * 2**20

_CORE = {
    "instructions": "Instructions Retired Any",
    "cycles": "Clock Unhalted Thread",
    "l3_misses": "L3 Cache Misses",
    "l3_hits": "L3 Cache Hits",
    "l2_misses": "L2 Cache Misses",
    "reference": "Clock Unhalted Ref",
    "ticks": "Invariant TSC",
    "occupancy": "L3 Cache Occupancy",
}
_UNCORE = {
    "read": "DRAM Reads",
    "written": "DRAM Writes",
    "energy": "Package Joules Consumed",
    "dram_energy": "DRAM Joules Consumed",
}


def read_server(url: str) -> bytes:
    """One second of counters; SourceFailed says what to look at."""
    address = url.rstrip("/") + "/persecond/1"
    if not address.startswith(("http://", "https://")):
        raise SourceFailed(f"pcm_url = {url!r} is not an address; accepted: http://HOST:9738")
    try:
        with closing(HttpClient(parse_endpoint(url), ANSWER_SECONDS, ANSWER_BYTES)) as client:
            return client.read("/persecond/1", {"Accept": "application/json"}).body
    except HttpFailed as error:
        if error.status:
            raise SourceFailed(f"{address} answered {error.status}: is this pcm-sensor-server?") from error
        raise SourceFailed(f"{address}: {error.reason}; is pcm-sensor-server running there?") from error


class Reading:
    """One answer: the interval, the things it names, their pairs and gauges."""

    def __init__(self, body: bytes | str) -> None:
        self.missing: Counter[str] = Counter()
        self.pairs: dict[str, Pairs] = {}
        self.gauges: dict[str, dict[str, Numbers]] = {}
        self.things: dict[str, list[tuple[str, str]]] = {}
        self.seconds = 0.0
        self.mark: tuple[float, ...] = ()
        try:
            self._take_apart(json.loads(body))
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
            raise ParseError(f"pcm-sensor-server: not the answer we know: {error!r}") from error

    def _take_apart(self, content: dict[str, Any]) -> None:
        self.seconds = float(content["Interval us"]) / 1e6
        if not 0 < self.seconds < 3600:
            raise ValueError(f"an interval of {self.seconds} s")
        sockets = content["Sockets"]
        cores = [
            (str(thread["OS ID"]), str(socket["Socket ID"]), thread)
            for socket in sockets
            for core in socket["Cores"]
            for thread in core["Threads"]
        ]
        cores.sort(key=lambda one: int(one[0]))
        self.things = {
            "system": [("system", "")],
            "socket": [(str(socket["Socket ID"]), "") for socket in sockets],
            "core": [(name, socket) for name, socket, _ in cores],
        }
        self._take("system", [content.get("Core Aggregate", {})], [content.get("Uncore Aggregate", {})])
        self._take(
            "socket",
            [socket.get("Core Aggregate", {}) for socket in sockets],
            [socket.get("Uncore", {}) for socket in sockets],
        )
        self._take("core", [thread for _, _, thread in cores], [{}] * len(cores))
        tops, times = self.pairs["core"]["frequency"]
        known = ~np.isnan(tops)
        if known.any():
            self.pairs["system"]["frequency"] = (
                np.array([tops[known].mean()]),
                np.array([times[known].mean()]),
            )
        # Enough to tell one sample from the next.
        self.mark = (self.seconds, *self.pairs["system"]["ipc"][0].tolist(), *self.pairs["system"]["ipc"][1])

    def _take(self, level: str, basics: list[dict[str, Any]], uncores: list[dict[str, Any]]) -> None:
        number = {
            key: self._numbers([basic.get("Core Counters", {}) for basic in basics], name)
            for key, name in _CORE.items()
        }
        number |= {
            key: self._numbers([uncore.get("Uncore Counters", {}) for uncore in uncores], name)
            for key, name in _UNCORE.items()
        }
        energies = [basic.get("Energy Counters", {}) for basic in basics]
        states = {
            state: self._numbers(energies, f"CStateResidency[{state.removeprefix('c')}]") for state in STATES
        }
        self.pairs[level] = _derive(level, number, states, self.seconds)
        self.gauges[level] = dict(
            zip(GAUGES, (self._numbers(energies, "Thermal Headroom"), number["occupancy"] * 1024.0))
        )

    def _numbers(self, objects: list[dict[str, Any]], name: str) -> Numbers:
        return np.array([self._number(one, name) for one in objects], dtype=np.float64)

    def _number(self, one: dict[str, Any], name: str) -> float:
        value = one.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return NAN
        bounds = SHARE if name.startswith("CState") else ANYTHING
        good, reason = judge_number(float(value), name, bounds)
        if reason:
            self.missing[reason] += 1
        return good


def _derive(level: str, number: dict[str, Numbers], states: dict[str, Numbers], seconds: float) -> Pairs:
    time = np.full(len(number["cycles"]), seconds)
    # Cycles while awake, by reference cycles while awake, by ticks of all time:
    # the frequency of a core that runs, as PCM's AFREQ has it.
    with np.errstate(divide="ignore", invalid="ignore"):
        active = number["cycles"] / number["reference"] * number["ticks"]
    active = np.where(np.isfinite(active), active, np.nan)
    if level != "core":
        # The aggregate counts every core's ticks; the frequency is a mean.
        active = np.full(len(active), np.nan)
    pairs: Pairs = {
        "work": (number["instructions"], number["cycles"]),
        "ipc": (number["instructions"], number["cycles"]),
        "cache": (number["l3_misses"], number["l3_misses"] + number["l3_hits"]),
        "l3_misses": (number["l3_misses"], time),
        "l2_misses": (number["l2_misses"], time),
        "frequency": (active, time),
        "memory_read": (number["read"], time),
        "memory_written": (number["written"], time),
        "memory": (number["read"] + number["written"], time),
        "energy": (number["energy"], time),
        "dram_energy": (number["dram_energy"], time),
        **{state: (share * seconds, time) for state, share in states.items()},
    }
    return {name: pairs[name] for name in PAIRS[level]}
