"""
Units on Dask: a cluster of processes on this machine, or a scheduler that is running already.

A few units per worker are submitted at a time, the next when an answer comes
in: the scheduler never holds a million of them. The units of a lost worker are
done by another one; a unit that kills four workers in a row is named and left out.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any

from nodescope import __version__
from nodescope.base.errors import RequestRejected
from nodescope.read.files.file_survey import SurveyFault
from nodescope.use.fleet.unit import Job, Unit, UnitAnswer
from nodescope.use.fleet.worker import run_unit

# Enough that no worker waits for the network between two units.
AHEAD = 4
CONNECT_SECONDS = 10


@contextmanager
def open_cluster(scheduler: str | None, workers: int, memory_bytes: int) -> Iterator[Any]:
    """A Dask client; the embedded cluster ends with it."""
    # Two seconds of import that other commands do not need.
    from distributed import Client, LocalCluster  # noqa: PLC0415

    logging.getLogger("distributed").setLevel(logging.ERROR)
    with ExitStack() as stack:
        if scheduler:
            client = stack.enter_context(connect(Client, scheduler))
            check_versions(client, scheduler)
        else:
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address=None,
                    memory_limit=memory_bytes,
                    silence_logs=logging.CRITICAL,
                )
            )
            client = stack.enter_context(Client(cluster))
        yield client


def connect(client: Callable[..., Any], scheduler: str) -> Any:
    try:
        return client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise RequestRejected(
            f"no Dask scheduler answers at {scheduler}: {str(error).splitlines()[0]}"
        ) from error


def read_version() -> str:
    return __version__


def check_versions(client: Any, scheduler: str) -> None:
    """All workers must run the same version of the studies."""
    try:
        found = client.run(read_version)
    except ModuleNotFoundError as error:
        raise RequestRejected(
            f"the workers of {scheduler} have no nodescope; install {__version__}"
        ) from error
    if not found:
        raise RequestRejected(f"the scheduler {scheduler} has no workers")
    others = sorted({version for version in found.values() if version != __version__})
    if others:
        raise RequestRejected(
            f"workers of {scheduler} have nodescope {', '.join(others)}; this is {__version__}"
        )


def run_units(client: Any, units: Sequence[Unit], job: Job) -> Iterator[UnitAnswer]:
    """Answers as they come in, in any order."""
    from distributed import as_completed  # noqa: PLC0415

    waiting = iter(units)
    running: dict[Any, Unit] = {}
    done = as_completed([])

    def start(most: int) -> None:
        for unit in islice(waiting, most):
            future = client.submit(run_unit, unit, job, pure=False)
            running[future] = unit
            done.add(future)

    start(AHEAD * max(1, sum(client.nthreads().values())))
    for future in done:
        yield read_result(future, running.pop(future))
        start(1)


def read_result(future: Any, unit: Unit) -> UnitAnswer:
    error = future.exception()
    if error is None:
        part: UnitAnswer = future.result()
        return part
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    if type(error).__name__ == "KilledWorker":
        reason = "four workers were lost while working on it; give them more memory (--memory)"
    return UnitAnswer(unit, faults=[SurveyFault(unit.name, f"{type(error).__name__}: {reason}")])
