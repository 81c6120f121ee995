"""Options that several commands share, derived from the settings themselves."""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from nodescope.base.errors import SettingsRejected
from nodescope.base.quantity import parse_seconds
from nodescope.base.settings import FIELDS
from nodescope.base.settings_load import LoadedSettings, read_settings
from nodescope.base.time_range import parse_moment
from nodescope.commands.shared.meanings import SETTING

# Settings whose option has another name or form than --the-setting VALUE.
SHORT = {"interval_seconds": "--interval", "ring_seconds": "--ring", "copy_rate_bytes": "--copy-rate"}
REPEATED = (
    "listen",
    "allow_host",
    "label",
    "sources_exclude",
    "archive_include",
    "archive_exclude",
    "alertmanager_url",
)
SWITCHES = {
    "archive": "--no-archive",
    "kubernetes": "--no-kubernetes",
    "pss": "--no-pss",
    "pcm_per_core": "--no-pcm-per-core",
    "watch": "--no-watch",
    "lease": "--no-lease",
}
# Off unless the option is there; it has no value either.
TURNED_ON = ("kubernetes_events",)

# Who may ask, for every server: flags of the same names.
GUARDS = {
    "token_file": "ask for this token",
    "tls_cert": "serve HTTPS",
    "tls_key": "the certificate's key",
    "tls_client_ca": "ask clients for a certificate",
}

Number = TypeVar("Number", int, float)


def add_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, nargs="+", metavar="PATH", help="a data folder, or Parquet files")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for scripts")


def add_containers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--container", action="append", metavar="C", help="id, its beginning, or a name; may be repeated"
    )


def add_span(parser: argparse.ArgumentParser, example: str = "-15m") -> None:
    parser.add_argument("--from", dest="start", metavar="T", help=f"ISO 8601, epoch seconds, or {example}")
    parser.add_argument("--to", dest="end", metavar="T", help="ISO 8601, epoch seconds, or -15m")


def read_span(options: argparse.Namespace, newest_ms: int) -> tuple[int | None, int | None]:
    """From and to, each None unless given; relative times count from the newest sample."""
    from_ms = parse_moment(options.start, newest_ms) if options.start else None
    to_ms = parse_moment(options.end, newest_ms) if options.end else None
    return from_ms, to_ms


def read_quantity(
    options: argparse.Namespace, name: str, parse: Callable[[str], Number], examples: str
) -> Number:
    """An option such as 2m or 1GiB, as a number."""
    text: str = getattr(options, name)
    try:
        return parse(text)
    except ValueError:
        raise SettingsRejected(f"--{name} {text} is not accepted; accepted: {examples}") from None


def add_interval(parser: argparse.ArgumentParser, usual: str) -> None:
    """Of a command that looks again and again."""
    parser.add_argument(
        "--interval", default=usual, metavar="T", help=f"how often to look; {usual} unless given"
    )


def read_interval(options: argparse.Namespace) -> float:
    """Seconds."""
    return read_quantity(options, "interval", parse_interval, "500ms to 1h")


def parse_interval(text: str) -> float:
    seconds = parse_seconds(text)
    if not 0.5 <= seconds <= 3600:
        raise ValueError(text)
    return seconds


def add_address(parser: argparse.ArgumentParser, port: int) -> None:
    """Where to listen, and who may ask."""
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on; 127.0.0.1 unless given"
    )
    parser.add_argument("--port", type=int, default=port, metavar="N", help=f"{port} unless given; 0 for any")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="one more name to answer to, such as a Service's; may be repeated",
    )
    parser.add_argument(
        "--probe-listen", metavar="HOST:PORT", help="one more listener, for probes alone; none unless given"
    )
    for name, about in GUARDS.items():
        parser.add_argument(name_option(name), type=Path, metavar="FILE", help=about)
    parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML file with settings")


def read_guards(options: argparse.Namespace, *more: str) -> LoadedSettings:
    """Token and TLS as the agent has them, from flags, environment and TOML; more names further options."""
    flags = {name: getattr(options, name) for name in (*GUARDS, *more) if getattr(options, name, None)}
    if getattr(options, "probe_listen", None) is not None:
        flags["probe_listen"] = options.probe_listen
    return read_settings(flags, options.config, os.environ, {"log_level": "warning"})


def name_option(setting: str) -> str:
    return SWITCHES.get(setting) or SHORT.get(setting) or f"--{setting.replace('_', '-')}"


def add_settings(parser: argparse.ArgumentParser, *, port: bool = True) -> None:
    """Every setting as an option; unset options leave the setting alone."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML file with settings")
    for name in FIELDS:
        names, form = [name_option(name)], {"metavar": "VALUE", "help": SETTING}
        if name in SWITCHES:
            form = {"action": "store_const", "const": "false", "help": SETTING}
        elif name in TURNED_ON:
            form = {"action": "store_const", "const": "true", "help": SETTING}
        elif name in REPEATED:
            form |= {"action": "append"}
        if name == "kubernetes":
            names.append("--no-k8s")
        parser.add_argument(*names, dest=name, **form)  # type: ignore[arg-type]
    if port:
        parser.add_argument("--port", type=int, metavar="N", help="short for --listen 127.0.0.1:N")


def gather_flags(options: argparse.Namespace) -> dict[str, Any]:
    """What was really given on the command line."""
    flags = {name: getattr(options, name) for name in FIELDS if getattr(options, name, None) is not None}
    if getattr(options, "port", None) is not None:
        flags["listen"] = [*flags.get("listen", []), f"127.0.0.1:{options.port}"]
    return flags


def render_flags(flags: Mapping[str, Any]) -> Iterator[str]:
    """The same flags as words, for a child of ours."""
    for name, value in flags.items():
        for one in value if isinstance(value, list) else [value]:
            yield from (name_option(name), *([] if name in (*SWITCHES, *TURNED_ON) else [str(one)]))
