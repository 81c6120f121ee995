"""What systemd answers over D-Bus: its units, and of some kinds a few properties each."""

from collections.abc import Callable
from typing import Any

from nodescope.collect.sources.systemd.dbus import DbusConnection

SYSTEMD = "org.freedesktop.systemd1"
PATH = "/org/freedesktop/systemd1"
PROPERTIES = "org.freedesktop.DBus.Properties"
# As node_exporter leaves them out: there are hundreds, of which nobody wants to know.
LEFT_OUT = (".automount", ".device", ".mount", ".scope", ".slice")
MOST_UNITS = 2000
MICROSECOND = 1e-6


def scale_time(value: Any) -> float:
    return float(value) * MICROSECOND


# End of a unit's name -> interface, then property: key, how it is read.
Wanted = dict[str, tuple[str, Callable[[Any], Any]]]
KINDS: dict[str, tuple[str, Wanted]] = {
    ".service": (
        "Service",
        {
            "Type": ("type", str),
            "NRestarts": ("restarts", int),
            "TasksCurrent": ("tasks", int),
            "TasksMax": ("most_tasks", int),
        },
    ),
    ".timer": ("Timer", {"LastTriggerUSec": ("triggered", scale_time)}),
    ".socket": (
        "Socket",
        {
            "NAccepted": ("accepted", int),
            "NConnections": ("connections", int),
            "NRefused": ("refused", int),
        },
    ),
}
# Of every unit; 0 while it is not active.
STARTED = ("Unit", {"ActiveEnterTimestamp": ("started", scale_time)})


def ask_systemd(socket_path: str) -> dict[str, Any]:
    """Units that are loaded, the states of all, and how the system stands."""
    connection = DbusConnection(socket_path)
    try:
        (listed,) = connection.call(SYSTEMD, PATH, f"{SYSTEMD}.Manager", "ListUnits")
        chosen = [row for row in listed if row[2] == "loaded" and not row[0].endswith(LEFT_OUT)]
        return {
            "units": [describe(connection, row) for row in chosen[:MOST_UNITS]],
            "states": [row[3] for row in listed],
            "state": ask(connection, PATH, "Manager", "SystemState"),
            "version": ask(connection, PATH, "Manager", "Version"),
        }
    finally:
        connection.close()


def describe(connection: DbusConnection, row: tuple[Any, ...]) -> dict[str, Any]:
    """name, description, load state, active state, sub state, followed by, path, job's number, type, path."""
    name, state, path = row[0], row[3], row[6]
    end = name[name.rfind(".") :]
    told: dict[str, Any] = {"name": name, "state": state}
    for interface, wanted in (STARTED, KINDS.get(end, ("", {}))):
        for field, (key, read) in wanted.items():
            value = try_ask(connection, path, interface, field)
            if value is not None:
                told[key] = read(value)
    return told


def ask(connection: DbusConnection, path: str, interface: str, field: str) -> Any:
    (value,) = connection.call(SYSTEMD, path, PROPERTIES, "Get", f"{SYSTEMD}.{interface}", field)
    return value


def try_ask(connection: DbusConnection, path: str, interface: str, field: str) -> Any:
    """A property that this version of systemd does not have, or whose unit is gone meanwhile, is missing."""
    answer = connection.try_call(SYSTEMD, path, PROPERTIES, "Get", f"{SYSTEMD}.{interface}", field)
    return answer[0] if answer else None
