"""
From flags, environment and TOML to settings, each with its origin.

Order of precedence: flag, NODESCOPE_*, the seeds' names, TOML, default. A key
we do not know, or a value that does not fit, is refused by name. The world
(arguments, environment, the file's content) is handed in.
"""

import os
import re
import tomllib
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodescope.base.errors import SettingsRejected
from nodescope.base.quantity import parse_bytes, parse_seconds, render_bytes, render_seconds
from nodescope.base.settings import FIELDS, Settings
from nodescope.base.text import hint_nearest

PREFIX = "NODESCOPE_"
UNITS = ("_seconds", "_bytes", "_days", "_ratio")
BOUNDS = (("least", "at least"), ("most", "at most"))
# Read where no other settings file is named.
SYSTEM_CONFIG = Path("/etc/nodescope.toml")

# Environment variables with our prefix that are not settings of the agent: where the settings file is,
# what a resting process hands on to itself, and what the project's own tests read.
NOT_SETTINGS = frozenset({"CONFIG", "KEPT", "SAMPLES", "RENEW_GOLDEN"})

# Variables that the kubelet makes of every Service of a namespace unless a pod says
# enableServiceLinks: false; of a Service called nodescope-mcp they have our prefix.
SERVICE_LINK = re.compile(
    r"(?P<service>[A-Z0-9_]+?)_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)

# Names that the requirement documents fix; each becomes one of our settings.
SEED_NAMES = {
    "NODE_NAME": "node",
    "CLUSTER_NAME": "cluster",
    "COLLECTION_INTERVAL": "gpu_interval_seconds",
    "LOG_LEVEL": "log_level",
    "METRICS_PATH": "metrics_path",
    "KUBECONFIG": "kubeconfig",
}

TRUE_WORDS = ("true", "yes", "on", "1")
FALSE_WORDS = ("false", "no", "off", "0")

_TYPES: Mapping[str, Any] = typing.get_type_hints(Settings)


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings in force, and for each where it came from."""

    settings: Settings
    origins: Mapping[str, str]


def parse_boolean(text: str) -> bool:
    if text.lower() in TRUE_WORDS:
        return True
    if text.lower() in FALSE_WORDS:
        return False
    raise ValueError(text)


def parse_ratio(text: str) -> float:
    return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)


def parse_days(text: str) -> float:
    """A plain number is days; a duration has its unit."""
    try:
        return float(text.removesuffix("days"))
    except ValueError:
        return parse_seconds(text) / 86400


def _parser(key: str) -> tuple[Callable[[str], object], str]:
    """How a field's text becomes its value, and what it takes, in words."""
    kind = _TYPES[key]
    if kind is bool:
        return parse_boolean, "true or false"
    if key.endswith("_seconds"):
        return parse_seconds, "seconds, or a duration such as 500ms or 2m"
    if key.endswith("_bytes"):
        return parse_bytes, "bytes, or a size such as 64MiB"
    if key.endswith("_ratio"):
        return parse_ratio, "a share such as 0.05 or 5%"
    if key.endswith("_days"):
        return parse_days, "days, or a duration such as 12h"
    if kind in (int, float):
        return kind, "a whole number" if kind is int else "a number"
    if kind is Path or (isinstance(kind, types.UnionType) and Path in kind.__args__):
        return Path, "text"
    if kind == tuple[str, ...]:
        return lambda text: tuple(part.strip() for part in text.split(",") if part.strip()), "text"
    return str, "text"


def show_value(key: str, value: object) -> str:
    """As people write it (64 MiB, 2 min, 5%); what is shown may be given back as it is."""
    if value is None or value in ("", ()):
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, (int, float)):
        return show_number(key, value)
    return str(value)


def show_number(key: str, value: float) -> str:
    if key.endswith("_bytes"):
        return render_bytes(value)
    if key.endswith("_seconds"):
        return render_seconds(value)
    if key.endswith("_ratio"):
        return f"{100 * value:g}%"
    return f"{value:g} days" if key.endswith("_days") else f"{value:g}"


def show_bounds(key: str) -> list[str]:
    """`at least 30 s`, `at most 1 h`; none for a setting without them."""
    bounds = FIELDS[key].metadata
    return [
        f"{words} {show_number(key, bounds[name])}" for name, words in BOUNDS if bounds.get(name) is not None
    ]


def _accepted(key: str) -> str:
    bounds = FIELDS[key].metadata
    if bounds.get("choices"):
        return "one of " + ", ".join(bounds["choices"])
    return ", ".join([_parser(key)[1], *show_bounds(key)])


def _fits(parsed: object, bounds: Mapping[str, Any]) -> bool:
    if bounds.get("choices"):
        return parsed in bounds["choices"]
    if isinstance(parsed, bool) or not isinstance(parsed, (int, float)):
        return True
    least, most = bounds.get("least"), bounds.get("most")
    return (least is None or parsed >= least) and (most is None or parsed <= most)


def parse_setting(key: str, value: object, origin: str) -> object:
    """One value from text, or from TOML's own types, checked against its bounds."""
    try:
        parsed = _parse(key, value)
    except ValueError:
        parsed = None
    if parsed is None or not _fits(parsed, FIELDS[key].metadata):
        raise SettingsRejected(f"{origin}: {key} = {value!r} is not accepted; accepted: {_accepted(key)}")
    return parsed


def _parse(key: str, value: object) -> object:
    if isinstance(value, (list, tuple)):
        return tuple(map(str, value)) if _TYPES[key] == tuple[str, ...] else None
    if isinstance(value, bool) and _TYPES[key] is not bool:
        return None
    return _parser(key)[0](str(value))


def _known(key: str, written: str, origin: str) -> str:
    if key not in FIELDS:
        # Its option may lack the unit: --ring is ring_seconds.
        whole = next((f"{key}{unit}" for unit in UNITS if f"{key}{unit}" in FIELDS), key)
        raise SettingsRejected(
            f"{origin}: no setting {written!r}{hint_nearest(whole, FIELDS)} (nodescope settings lists all {len(FIELDS)})"
        )
    return key


def flatten_toml(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """`[process] top = 25` and `process_top = 25` are the same setting."""
    flat: dict[str, Any] = {}
    for key, value in content.items():
        name = f"{prefix}_{key}" if prefix else key
        if isinstance(value, Mapping):
            flat.update(flatten_toml(value, name))
        else:
            flat[name] = value
    return flat


def is_service_link(variable: str, environment: Mapping[str, str]) -> bool:
    """Whether the kubelet made this variable of a Service, whose address is then there as well."""
    match = SERVICE_LINK.fullmatch(variable)
    return match is not None and f"{match['service']}_SERVICE_HOST" in environment


def load_settings(
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    toml: Mapping[str, Any],
    toml_path: str = "the settings file",
    defaults: Mapping[str, Any] | None = None,
) -> LoadedSettings:
    """Lay the four origins over the defaults (a command may have its own); the later wins."""
    chosen: dict[str, Any] = dict(defaults or {})
    origins = dict.fromkeys(FIELDS, "default")

    def lay(key: str, value: object, origin: str) -> None:
        chosen[key] = parse_setting(key, value, origin)
        origins[key] = origin

    for written, value in flatten_toml(toml).items():
        lay(_known(written, written, toml_path), value, toml_path)
    for variable, key in SEED_NAMES.items():
        if environment.get(variable):
            text = environment[variable]
            lay(key, text.lower() if key == "log_level" else text, variable)
    for variable, value in sorted(environment.items()):
        name = variable.removeprefix(PREFIX)
        if (
            variable.startswith(PREFIX)
            and name not in NOT_SETTINGS
            and not is_service_link(variable, environment)
        ):
            lay(_known(name.lower(), variable, "environment"), value, variable)
    for key, value in flags.items():
        lay(_known(key, key, "command line"), value, "command line")
    port = environment.get("EXPORTER_PORT", "")
    # A Service that is called exporter has an address there.
    if port and not ("://" in port and is_service_link("EXPORTER_PORT", environment)):
        # One more listener, as the GPU exporter's own variable asks; on the
        # address of the first listener, so that loopback stays loopback.
        if not port.isdigit() or not 0 < int(port) <= 65535:
            raise SettingsRejected(
                f"EXPORTER_PORT = {port!r} is not accepted; accepted: a port from 1 to 65535"
            )
        listen = chosen.get("listen", Settings().listen)
        extra = f"{listen[0].rpartition(':')[0]}:{port}"
        if extra not in listen:
            chosen["listen"] = (*listen, extra)
            origins["listen"] = f"{origins['listen']} and EXPORTER_PORT"
    return LoadedSettings(Settings(**chosen), origins)


def read_settings(
    flags: Mapping[str, object],
    config: Path | None,
    environment: Mapping[str, str],
    defaults: Mapping[str, Any] | None = None,
) -> LoadedSettings:
    """Settings from flags, environment and the TOML file: the one that is named, or the usual one if it is there."""
    path = config or find_config(environment)
    toml: dict[str, Any] = {}
    if path:
        try:
            toml = tomllib.loads(path.read_text())
        except OSError as error:
            raise SettingsRejected(f"{path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsRejected(f"{path}: not TOML: {error}") from error
    return load_settings(flags, environment, toml, str(path), defaults)


def find_config(environment: Mapping[str, str], system: Path = SYSTEM_CONFIG) -> Path | None:
    """The settings file that nobody named on the command line: the environment's, the user's, the system's."""
    if environment.get("NODESCOPE_CONFIG"):
        return Path(environment["NODESCOPE_CONFIG"])
    home = environment.get("HOME")
    own = environment.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    candidates = [Path(own) / "nodescope.toml"] if own else []
    # A home that may not be entered, of whoever started us with fewer rights, has no file for us.
    return next((path for path in (*candidates, system) if os.path.isfile(path)), None)


def choose_data(settings: Settings, environment: Mapping[str, str]) -> Path:
    """The data folder: as set, else where the XDG rules put a program's state."""
    if settings.data:
        return settings.data
    state = environment.get("XDG_STATE_HOME")
    try:
        return (Path(state) if state else Path.home() / ".local" / "state") / "nodescope"
    except RuntimeError as error:
        raise SettingsRejected(
            "this user has no home folder to keep data in; name one: --data DIR"
        ) from error
