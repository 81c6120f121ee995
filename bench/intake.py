"""
What a thousand FPGA events a second cost the agent.

The agent samples once a second beside it, as it always does; what it takes
while nobody sends is taken off. The anchor is our server with nothing behind
it, which answers `ok`: what is above it is reading, checking and folding.
"""

import sys
import time
from contextlib import AbstractContextManager

from tests.cluster.trials import flood
from tests.integration.peers.servers import Server, agent_running, free_port, program_running

from bench.result import Goal, Options, Row

RATE = 1000
SECONDS = 15.0
QUIET_SECONDS = 5.0
# With a connection each, making and ending it is nearly all there is, and is
# the stack's: there, what we add is what has a goal.
SENDERS = {
    True: ("kept connections", Goal(0.5, "ours")),
    False: ("a connection each", Goal(1.25, "ratio")),
}


def run(options: Options) -> list[Row]:
    seconds = min(SECONDS, options.seconds)
    rows = []
    for kept, (senders, goal) in SENDERS.items():
        ours, rate = measure(agent_running(), seconds, kept)
        bare, _ = measure(bare_running(), seconds, kept)
        rows.append(
            Row(
                f"{RATE} FPGA events/s, {senders}: CPU of the agent",
                ours,
                "core",
                bare,
                "bare server, same stack",
                goal,
                f"{rate:.0f} events/s sent, all answered ok",
            )
        )
    return rows


def bare_running() -> AbstractContextManager[Server]:
    port = free_port()
    return program_running("bare", [sys.executable, "-m", "bench.bare", str(port)], port)


def measure(starting: AbstractContextManager[Server], seconds: float, kept: bool) -> tuple[float, float]:
    """Cores that the events take, and how many a second were answered."""
    with starting as server:
        time.sleep(QUIET_SECONDS / 2)
        before, began = server.cpu_seconds(), time.monotonic()
        time.sleep(QUIET_SECONDS)
        idle_cores = (server.cpu_seconds() - before) / (time.monotonic() - began)
        before, began = server.cpu_seconds(), time.monotonic()
        count = round(RATE * seconds)
        answered = flood(f"http://127.0.0.1:{server.port}", count, seconds, kept=kept)
        took = time.monotonic() - began
        if answered != count:
            raise RuntimeError(f"{count - answered} of {count} events were not answered ok")
        return (server.cpu_seconds() - before) / took - idle_cores, count / took
