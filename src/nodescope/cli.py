"""
Commands: parse, call, print.

Exit codes: 0 done, 1 failed with one clear line on stderr, 2 wrong usage, 130 ended by Ctrl-C. Every
line on stderr begins with `nodescope COMMAND: `.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from typing import Any, NoReturn

from nodescope import __version__
from nodescope.base.errors import NodescopeError, SettingsRejected
from nodescope.base.text import clean_text, hint_nearest
from nodescope.commands.shared.meanings import MeaningFormatter
from nodescope.commands.shared.usage_errors import reword
from nodescope.commands.text.terminal import CleanStream

# Command -> (module of `commands`, one line for --help). Modules are imported
# when their command is called: a small command starts fast.
COMMANDS = {
    "up": ("up", "nodescope on this machine: prints the addresses to look at"),
    "viewer": ("viewer", "the web page and its API over data folders and files"),
    "agent": ("agent", "the collector: samples, holds, answers"),
    "sources": ("sources", "what this machine offers: every source ok, absent or failed, and why"),
    "settings": ("settings", "every setting, its value, where it came from, and what it means"),
    "study": ("study", "run a study on a series: change points, periods, trends and more"),
    "incidents": ("incidents", "what went wrong in a span, who did it, and whom it hit"),
    "rightsize": ("rightsize", "requests and limits that fit each workload, what they save, and the risk"),
    "demo": ("demo", "a realistic archive with known stories in it"),
    "containers": ("containers", "who is in a data folder"),
    "metrics": ("metrics", "what was measured, under plain and raw names"),
    "consolidate": ("consolidate", "merge small files, apply retention, copy finished files away"),
    "verify": ("verify", "read a whole archive or copy, and say what is lost"),
    "export": (
        "export",
        "part of an archive as Parquet, CSV, a page that opens offline, or a Perfetto trace",
    ),
    "top": ("top", "a live table of containers in the terminal"),
    "annotate": ("findings.annotate", 'a note at a moment of the data, such as "deployed 2.1 here"'),
    "watch": ("findings.watch", "what is wrong on a node, as it happens; say what is not a problem"),
    "extender": ("extender", "kube-scheduler's extender: nodes scored by what they report"),
    "advise": ("cluster.advise", "which pods should run on another node, and why; it moves nothing"),
    "adapter": ("cluster.adapter", "metrics of pods for HPA and KEDA, from the agents' last seconds"),
    "mcp": ("mcp", "answers for agents (MCP): over data folders, viewers, or a cluster"),
    "ask": ("ask", "a question in plain words, answered from data folders, viewers, or a cluster"),
    "fleet": ("fleet", "a study or a question over many nodes and days"),
    "compare-peers": ("peers.compare_peers", "which series of node_exporter or cAdvisor the agent has"),
    "push": ("peers.push", "what an agent measures, pushed to an OpenTelemetry collector (OTLP)"),
    "sample": ("sample", "one tick to stdout, then exit"),
    "service": ("system.service", "nodescope as a service of systemd: install, remove, status"),
    "completion": ("system.completion", "words at TAB for bash, zsh and fish"),
}


BEGINNING = """begin here:
  nodescope up                 this machine: prints the address of a web page
  nodescope demo               made-up data with known stories, to look around
  nodescope COMMAND --help     what a command does, with examples
"""
# An error is a line; names within it are other people's.
LINE_CHARACTERS = 4096
# Set by the shell while it asks for completions.
COMPLETING = "_ARGCOMPLETE"


class Parser(argparse.ArgumentParser):
    """argparse that answers a wrong word with the nearest right one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # `--from -15m` gives a value, not an option: argparse knows this of
        # plain negative numbers only.
        self._negative_number_matcher = re.compile(r"-\d+(\.\d+)?[a-z]*$")

    def error(self, message: str) -> NoReturn:
        choices = "invalid choice: "
        if choices in message and self.prog == "nodescope":
            wrong = message.split("'")[1]
            message = f'no command "{wrong}"{hint_nearest(wrong, COMMANDS)} (nodescope --help lists all {len(COMMANDS)})'
        if message.startswith("unrecognized arguments: "):
            wrong = message.removeprefix("unrecognized arguments: ").split()[0]
            known = [option for action in self._actions for option in action.option_strings]
            message = f"no option {wrong}{hint_option(wrong.partition('=')[0], known)} ({self.prog} --help lists all)"
            if not wrong.startswith("-"):
                message = f"{wrong} is one word too many ({self.prog} --help says what is accepted)"
        sys.stderr.write(f"{self.prog}: {reword(self._actions, message)}\n")
        raise SystemExit(2)


def hint_option(wrong: str, known: Sequence[str]) -> str:
    """A setting's name has its unit (ring_seconds), its option has not (--ring)."""
    whole = max((option for option in known if wrong.startswith(f"{option}-")), key=len, default=wrong)
    return hint_nearest(whole, known)


def build_parser(only: str | None = None) -> Parser:
    parser = Parser(
        prog="nodescope",
        description="What every container, process and device on this node does, once a second.",
        epilog=BEGINNING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"nodescope {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name, (module, line) in COMMANDS.items():
        command = commands.add_parser(name, help=line, description=line, formatter_class=MeaningFormatter)
        if only in (None, name):
            import_module(f"nodescope.commands.{module}").add_arguments(command)
    return parser


def complete(parser: Parser) -> None:
    """The words that the shell offers at TAB; ends the process."""
    import argcomplete

    argcomplete.autocomplete(parser)


def describe(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    remedy = "; run as its owner, or as root" if isinstance(error, PermissionError) else ""
    return f"{where}{error.strerror or error}{remedy}"


def main(arguments: Sequence[str] | None = None) -> int:
    """What is printed has no control characters of others: names of pods and files reach no terminal as commands."""
    out, errors = CleanStream(sys.stdout), CleanStream(sys.stderr)
    with redirect_stdout(out), redirect_stderr(errors):
        return run_command(arguments)


def run_command(arguments: Sequence[str] | None) -> int:
    # Read when a command loads numpy. Matrices here are small: threads of BLAS wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    words = list(sys.argv[1:] if arguments is None else arguments)
    # While a shell asks, the line that is being written has the command.
    line = os.environ.get("COMP_LINE", "").split()[1:] if COMPLETING in os.environ else words
    first = next((word for word in line if not word.startswith("-")), "")
    parser = build_parser(first)
    if COMPLETING in os.environ:
        complete(parser)
    options, rest = parser.parse_known_args(words)
    if options.command is None:
        parser.print_help()
        return 0
    module = import_module(f"nodescope.commands.{COMMANDS[options.command][0]}")
    if rest:
        command = Parser(prog=f"nodescope {options.command}")
        module.add_arguments(command)
        command.error(f"unrecognized arguments: {' '.join(rest)}")
    run: Callable[[argparse.Namespace], int] = module.run
    try:
        return run(options)
    except NodescopeError as error:
        sys.stderr.write(f"nodescope {options.command}: {clean_text(str(error), LINE_CHARACTERS)}\n")
        return 2 if isinstance(error, SettingsRejected) else 1
    except BrokenPipeError:
        # The reader of our output left; that is its right.
        sys.stderr.close()
        return 0
    except OSError as error:
        # A file or folder that is not ours to read, a full disk: the kernel's own words, on one line.
        sys.stderr.write(f"nodescope {options.command}: {clean_text(describe(error), LINE_CHARACTERS)}\n")
        return 1
    except KeyboardInterrupt:
        return 130
