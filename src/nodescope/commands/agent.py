"""nodescope agent: the collector."""

import argparse
import asyncio
import os
import signal
from contextlib import ExitStack, suppress
from functools import partial

from nodescope.base.log import Log, set_up_logging
from nodescope.base.settings_load import read_settings
from nodescope.collect.files.native import describe_reader
from nodescope.commands.shared.options import add_settings, gather_flags
from nodescope.serve.allocator import settle_allocator
from nodescope.serve.server import answer_probes, build_server, open_socket, warn_if_open
from nodescope.wiring import Parts, build_agent_app, build_parts, connect_archive, settle_process

EXAMPLE = """example:
  nodescope agent --listen 0.0.0.0:9100 --token-file /etc/nodescope/token
  curl -s 'localhost:9100/metrics?window_seconds=20'
"""
log = Log("agent")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_settings(parser)


def run(options: argparse.Namespace) -> int:
    settle_allocator()
    loaded = read_settings(gather_flags(options), options.config, os.environ)
    set_up_logging(loaded.settings.log_level)
    return serve(build_parts(loaded, environment=os.environ))


def serve(parts: Parts) -> int:
    """Samples and answers until a signal ends it."""
    settings = parts.loaded.settings
    connect_archive(parts, os.environ)
    server = build_server(build_agent_app(parts), settings, parts.own.connections)
    with ExitStack() as stack, suppress(KeyboardInterrupt):
        warn_if_open(settings.listen, settings)
        sockets = [stack.enter_context(open_socket(address)) for address in settings.listen]
        if settings.fpga_listen:
            sockets.append(stack.enter_context(open_socket(settings.fpga_listen, "--fpga-listen")))
        if parts.archiver:
            parts.archiver.start()
            stack.callback(parts.archiver.stop)
        # uvicorn hands a signal on when it has stopped: both mean an orderly end.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        stack.callback(parts.sampler.stop)
        parts.sampler.start()
        if parts.watcher:
            stack.callback(parts.watcher.stop)
            parts.watcher.start()
        for thread in parts.make_threads():
            stack.callback(thread.stop)
            thread.start()
        judge = partial(parts.agent.judge_probe, server.pulse)
        stack.enter_context(answer_probes(settings.probe_listen, judge))
        settle_process()
        reader = describe_reader(settings.reader)
        log.info("agent started", node=parts.node, listen=",".join(settings.listen), reader=reader)
        asyncio.run(server.serve(sockets=sockets))
    log.info("agent stopped", ticks=parts.sampler.counters.ticks)
    return 0
