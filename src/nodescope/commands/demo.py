"""nodescope demo: a realistic archive with known stories in it."""

import argparse
import os
import sys
from pathlib import Path

from nodescope import __version__
from nodescope.base.clock import SystemClock
from nodescope.base.errors import RequestRejected
from nodescope.base.log import set_up_logging
from nodescope.base.settings_load import choose_data, read_settings
from nodescope.base.time_range import parse_moment
from nodescope.commands.shared.options import add_address, read_guards
from nodescope.commands.shared.ports import VIEWER_PORT, claim
from nodescope.commands.text.progress import clear_progress, show_progress
from nodescope.commands.viewer import add_no_token, serve

EXAMPLE = """example:
  nodescope demo --nodes 3 --hours 2
  nodescope demo --no-serve --data demo --hours 2 --containers 20 --seed 7
  nodescope containers demo
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="where to write; a folder `demo` beside the data folder"
    )
    parser.add_argument(
        "--nodes", type=int, default=1, metavar="N", help="one folder a node when more than 1"
    )
    parser.add_argument("--hours", type=float, default=6.0, metavar="H", help="6 unless given")
    parser.add_argument("--containers", type=int, default=20, metavar="N", help="20 a node unless given")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="1 unless given")
    parser.add_argument(
        "--end", metavar="T", help="when it ends: ISO 8601, epoch seconds, or -15m; now unless given"
    )
    parser.add_argument("--no-serve", action="store_true", help="write, then exit")
    add_address(parser, VIEWER_PORT)
    add_no_token(parser)


def run(options: argparse.Namespace) -> int:
    from nodescope.keep.demo.archive import add_minutes, render_truth, write_node
    from nodescope.keep.demo.fleet import plan_fleet
    from nodescope.keep.demo.story import DemoRequest
    from nodescope.keep.folder import DataFolder

    set_up_logging("warning")
    check(options)
    now_ms = SystemClock().wall_ns() // 1_000_000
    end_ms = (parse_moment(options.end, now_ms) if options.end else now_ms) // 1000 * 1000
    data = (
        options.data
        or choose_data(read_settings({}, None, os.environ).settings, os.environ).parent / "nodescope-demo"
    )
    if any(data.glob("dt=*")) or any(data.glob("*/dt=*")):
        raise RequestRejected(
            f"{data} has an archive already; look at it with: nodescope viewer {data}, or give --data a new folder"
        )
    if not options.no_serve:
        # Said before minutes of writing, not after.
        claim(options.host, options.port)
    planted, most = [], []
    rows = 0
    for number in range(options.nodes):
        node = f"demo-{number + 1}"
        folder = data / node if options.nodes > 1 else data
        request = DemoRequest(
            folder, options.hours, options.containers, options.seed, end_ms, node, number, options.nodes
        )

        def show(share: float, done: int = number) -> None:
            show_progress((done + share) / options.nodes)

        planters = plan_fleet(request) if options.nodes > 1 else None
        made = write_node(request, __version__, show, planters=planters)
        add_minutes(DataFolder(folder))
        rows += made.rows
        planted += [{"node": node, **one} for one in made.truth]
        most.append({"node": node, **made.most})
    clear_progress()
    (data / "truth.json").write_bytes(render_truth(request, planted, most))
    sys.stdout.write(f"{rows:,} samples in {data}; what was planted is in {data / 'truth.json'}\n")
    sys.stdout.flush()
    if options.no_serve:
        return 0
    return serve(options, read_guards(options).settings, [data])


def check(options: argparse.Namespace) -> None:
    for name, least in (("nodes", 1), ("containers", 1), ("hours", 0.05)):
        if getattr(options, name) < least:
            raise RequestRejected(
                f"--{name} {getattr(options, name)} is not accepted; accepted: {least} or more"
            )
