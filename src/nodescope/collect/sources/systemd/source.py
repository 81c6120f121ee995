"""
Units of systemd: what runs, what has failed, what is started again and again.

Reads   cgroups of services, or with systemd = "dbus" org.freedesktop.systemd1 on /run/dbus/system_bus_socket
Needs   Linux with systemd; D-Bus needs the host's bus socket
Docs    https://www.freedesktop.org/wiki/Software/systemd/dbus/

One unit, as JSON would save it:

    {"name": "sshd.service", "state": "active", "type": "notify", "restarts": 0, "tasks": 1, "most_tasks": 4915,
     "started": 1763390000.1}

Names and labels are node_exporter's. Cgroups show services that run and
nothing else: states other than active, restarts, sockets and timers need D-Bus.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from nodescope.base.block import Block, Table, make_block
from nodescope.base.entity import NODE, Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.metric import Kind, Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.slow_source import Rows
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.collect.sources.systemd.cgroup_units import read_units
from nodescope.collect.sources.systemd.manager import ask_systemd

SOCKET = "run/dbus/system_bus_socket"
STATES = ("active", "activating", "deactivating", "failed", "inactive")
# Value of the system's state -> whether all is well.
RUNNING = "running"
UNIT_STATES = Table(
    "systemd",
    "systemd",
    ("device",),
    tuple(
        Metric(
            f"systemd.state.{state}",
            "gauge",
            "1 for the state that a unit is in.",
            "node_systemd_unit_state",
            labels=(("state", state),),
        )
        for state in STATES
    ),
)
# Key of a unit, kind, published name, sentence.
COLUMNS: tuple[tuple[str, Kind, str, str], ...] = (
    ("started", "gauge", "unit_start_time_seconds", "When the unit was started, as epoch seconds."),
    ("tasks", "gauge", "unit_tasks_current", "Tasks of the unit."),
    ("most_tasks", "gauge", "unit_tasks_max", "The most tasks that the unit may have."),
    ("restarts", "counter", "service_restart_total", "Times that systemd started the service again."),
    ("triggered", "gauge", "timer_last_trigger_seconds", "When the timer ran last, as epoch seconds."),
    ("accepted", "counter", "socket_accepted_connections_total", "Connections that the socket accepted."),
    ("connections", "gauge", "socket_current_connections", "Connections of the socket now."),
    ("refused", "counter", "socket_refused_connections_total", "Connections that the socket refused."),
)
UNITS = Table(
    "systemd.unit",
    "systemd",
    ("device",),
    tuple(
        Metric(
            f"systemd.{key}",
            kind,
            sentence,
            f"node_systemd_{name}",
            unit="seconds" if name.endswith("_seconds") else "",
        )
        for key, kind, name, sentence in COLUMNS
    ),
)
MANAGER = Table(
    "systemd.manager",
    "systemd",
    ("node",),
    (
        *(
            Metric(
                f"systemd.units.{state}",
                "gauge",
                "Units by their state.",
                "node_systemd_units",
                labels=(("state", state),),
            )
            for state in STATES
        ),
        Metric(
            "systemd.running",
            "gauge",
            "1 when the system runs and no unit has failed.",
            "node_systemd_system_running",
        ),
    ),
)
VERSION = Table(
    "systemd.version",
    "systemd",
    ("device",),
    (Metric("systemd.version", "gauge", "systemd's version, as a number.", "node_systemd_version"),),
)
# The largest number stands for "not known"; of limits it is "none", which a cgroup's file calls max.
NOT_KNOWN = 2**64 - 1
UNLIMITED = ("max", NOT_KNOWN)
MOST_TASKS = [key for key, *_ in COLUMNS].index("most_tasks")
_VERSION = re.compile(r"\d{3,}(?:\.\d+)?")


class SystemdSource(CallDefaults):
    """Looks at cgroups, or asks systemd itself."""

    name = "systemd"
    pace_seconds = 60.0
    deadline_seconds = 30.0

    def __init__(self, context: Context) -> None:
        if context.settings.systemd == "never":
            raise SourceAbsent('turned off: systemd = "never"')
        self._context = context
        self._asks = context.settings.systemd == "dbus"

    def read(self) -> Any:
        """{units: [...], state, version}; the last two where systemd was asked."""
        root = self._context.root
        if self._asks:
            return root.call("systemd", lambda: ask_systemd(root.full(SOCKET)))
        units = read_units(self._context)
        if units is None:
            raise SourceAbsent("no system.slice in /sys/fs/cgroup: systemd does not run here")
        return {"units": units}

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        units = answer["units"][: self._context.limit("device")]
        states = {name_unit(one, with_type=True): list_states(one) for one in units}
        details = {name_unit(one): list_values(one) for one in units}
        tables: tuple[tuple[Table, Rows], ...] = (
            (UNIT_STATES, states),
            (UNITS, details),
            (MANAGER, summarize(answer)),
            (VERSION, name_version(answer)),
        )
        return tuple(make_block(table, rows, mono_ns) for table, rows in tables)


def name_unit(unit: Mapping[str, Any], *, with_type: bool = False) -> Entity:
    name = clean_text(str(unit["name"]))
    kind = (("type", clean_text(str(unit.get("type", "")))),) if with_type else ()
    return Entity("device", ("systemd", name), (("name", name), *kind))


def list_states(unit: Mapping[str, Any]) -> list[float]:
    return [float(unit.get("state") == state) for state in STATES]


def list_values(unit: Mapping[str, Any]) -> list[float]:
    values = [to_figure(unit.get(key)) for key, *_ in COLUMNS]
    if unit.get("most_tasks") in UNLIMITED:
        values[MOST_TASKS] = math.inf
    return values


def to_figure(value: Any) -> float:
    """A number or its text; what systemd says for "not known" is none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return NAN
    return number if 0 <= number < NOT_KNOWN else NAN


def summarize(answer: Mapping[str, Any]) -> Rows:
    """Only systemd knows all its units."""
    if "state" not in answer:
        return {}
    counts = Counter(answer["states"])
    return {NODE: [*(float(counts[state]) for state in STATES), float(answer["state"] == RUNNING)]}


def name_version(answer: Mapping[str, Any]) -> Rows:
    text = str(answer.get("version", ""))
    number = _VERSION.search(text)
    if number is None:
        return {}
    return {Entity("device", ("systemd",), (("version", clean_text(text)),)): [float(number[0])]}
