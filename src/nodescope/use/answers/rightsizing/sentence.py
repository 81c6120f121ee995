"""Right-sizing in words: the same sentences in viewer, command and MCP."""

from collections.abc import Callable, Iterator, Sequence

from nodescope.base.quantity import render_count, render_quantity, render_seconds
from nodescope.base.time_range import render_moment
from nodescope.use.answers.rightsizing.advice import (
    DAY_SECONDS,
    FITS,
    GROWS,
    NOT_YET,
    SIZED,
    SizeAdvice,
    is_held_back,
)
from nodescope.use.answers.rightsizing.need import ContainerNeed

WEEK_SECONDS = 7 * DAY_SECONDS
# Page cache beside the memory that is kept: from this share on it is worth a word.
MUCH_CACHE = 0.25


def name_need(need: ContainerNeed) -> str:
    """shop/catalog, container app; the container only where it is called otherwise."""
    full = f"{need.namespace}/{need.workload}" if need.namespace else need.workload
    return (
        f'"{full}"' if need.container in ("", need.workload) else f'"{full}" (container "{need.container}")'
    )


def render_advice(advice: SizeAdvice) -> str:
    """What to set, per replica, and what that saves."""
    need = advice.need
    if advice.state == NOT_YET:
        return f"{name_need(need)}: {render_not_yet(advice)}."
    if advice.state == FITS:
        return f"{name_need(need)} fits as it is: {render_use(need)}."
    if advice.state != SIZED:
        return f"{name_need(need)}: neither CPU nor memory was measured, so its size cannot be told."
    parts = [*render_side("request", advice), *render_side("limit", advice)]
    return f"{name_need(need)}: {', '.join(parts)}{render_saved(advice)}."


def render_side(side: str, advice: SizeAdvice) -> Iterator[str]:
    """`request 0.4 cores (now 4) and 640 MiB (now 8 GiB)`."""
    words = []
    for resource, unit in (("cpu", "cores"), ("memory", "bytes")):
        then, now = (getattr(one, f"{resource}_{side}") for one in (advice, advice.need))
        if then is not None:
            words.append(f"{render_quantity(then, unit)} ({render_now(now, unit, side, advice.need)})")
    if words:
        yield f"{side} {' and '.join(words)}"


def render_now(value: float | None, unit: str, side: str, need: ContainerNeed) -> str:
    if value is not None:
        return f"now {render_quantity(value, '' if unit == 'cores' else unit)}"
    return "now not known" if side == "request" and not need.is_specified else "now none"


def render_saved(advice: SizeAdvice) -> str:
    need = advice.need
    each = f" for each of {need.replicas} replicas" if need.replicas > 1 else ""
    pairs = ((advice.saved_cores, "cores"), (advice.saved_bytes, "bytes"))
    changes = render_changes(pairs)
    if changes:
        return f"{each}; {changes}" if need.replicas else f"; none is running now: {changes}"
    if need.is_specified and need.cpu_request is None and need.memory_request is None:
        return f"{each}; it has no requests, so the scheduler counts it as nothing"
    return each


def render_changes(pairs: Sequence[tuple[float | None, str]]) -> str:
    """`saves 3.6 cores, needs 1 GiB more`."""
    saved = [render_quantity(value, unit) for value, unit in pairs if value is not None and value > 0]
    more = [render_quantity(-value, unit) for value, unit in pairs if value is not None and value < 0]
    words = [f"saves {' and '.join(saved)}"] if saved else []
    return ", ".join([*words, *([f"needs {' and '.join(more)} more"] if more else [])])


def render_not_yet(advice: SizeAdvice) -> str:
    need = advice.need
    seen = f"not yet, it was seen for {render_seconds(need.seen_seconds)}, which is less than a day"
    ready = f"from {render_moment(advice.ready_ms)} on it can be said"
    return f"{seen}; {ready}. So far {render_use(need)}"


def render_use(need: ContainerNeed) -> str:
    """What it used at most, of what it requests, or of its limit where no request is known."""
    rows = (
        (need.cpu_busy, need.cpu_request, need.cpu_limit, "cores", "in its busiest minute"),
        (
            need.memory_most,
            need.memory_request,
            need.memory_limit,
            "bytes",
            "of memory that cannot be reclaimed",
        ),
    )
    words = []
    for used, request, limit, unit, what in rows:
        of = ""
        if request is not None or limit is not None:
            whole = limit if request is None else request
            of = f" ({render_quantity(whole or 0.0, unit)} {'its limit' if request is None else 'requested'})"
        words.append("" if used is None else f"{render_quantity(used, unit)} {what}{of}")
    known = [word for word in words if word]
    return f"it used at most {' and '.join(known)}" if known else "nothing was measured"


# -- the risk ------------------------------------------------------------------------


def tell_kills(need: ContainerNeed) -> str:
    at = f" at a limit of {render_quantity(need.killed_at, 'bytes')}" if need.killed_at else ""
    times = f"{need.oom_kills} times" if need.oom_kills > 1 else "once"
    return f"it was OOM-killed {times}{at}, so what it wanted was not seen; the limit is raised by half"


def tell_growth(need: ContainerNeed) -> str:
    share = render_quantity((need.growth or 1.0) - 1.0, "ratio")
    return f"its memory still grows ({share} more in the last quarter of its time than in the one before): no limit holds for a leak"


def tell_throttling(need: ContainerNeed) -> str:
    share = render_quantity(need.throttled or 0.0, "ratio")
    return (
        f"its CPU limit held it back in {share} of the scheduler's periods, so it may need more than was seen"
    )


def tell_cache(need: ContainerNeed) -> str:
    cache = render_quantity(need.cache_mean or 0.0, "bytes")
    return f"{cache} of page cache is not counted; with less memory it reads from the disk more often"


def tell_unknown_cache(need: ContainerNeed) -> str:
    del need
    return "page cache was not measured and is counted as needed, so less may be enough"


def tell_span(need: ContainerNeed) -> str:
    seen = render_seconds(need.seen_seconds)
    if need.seen_seconds < 0.98 * WEEK_SECONDS:
        return f"{seen} were seen, so a peak that comes once a week may be missing"
    return f"a load above that of the last {seen}"


# What may go wrong, the gravest first; the last holds always.
RISKS: tuple[tuple[Callable[[ContainerNeed], bool], Callable[[ContainerNeed], str]], ...] = (
    (lambda need: need.oom_kills > 0, tell_kills),
    (lambda need: (need.growth or 1.0) > GROWS, tell_growth),
    (is_held_back, tell_throttling),
    (lambda need: need.memory_most is not None and not need.is_cache_known, tell_unknown_cache),
    (lambda need: (need.cache_mean or 0.0) > MUCH_CACHE * (need.memory_most or 0.0), tell_cache),
    (lambda need: need.seen_ms >= 0, tell_span),
)


def render_risk(advice: SizeAdvice) -> str:
    if advice.state != SIZED:
        return ""
    return next(f"Risk: {tell(advice.need)}." for is_so, tell in RISKS if is_so(advice.need))


# -- all of them ----------------------------------------------------------------------


def render_total(advices: Sequence[SizeAdvice]) -> str:
    """One sentence about all; of one container its own."""
    if not advices:
        return "There is no container to size in this span."
    if len(advices) == 1:
        return render_advice(advices[0])
    sized = [one for one in advices if one.state == SIZED]
    if not sized:
        return render_none(advices)
    changes = render_changes((add_up(sized, "saved_cores"), add_up(sized, "saved_bytes")))
    saved = f", which {changes} in total" if changes else ""
    later = sum(one.state == NOT_YET for one in advices)
    rest = f"; {later} {'was' if later == 1 else 'were'} seen for less than a day" if later else ""
    return (
        f"{len(sized)} of {render_count(len(advices), 'container')} should be sized otherwise{saved}{rest}."
    )


def render_none(advices: Sequence[SizeAdvice]) -> str:
    waiting = [one for one in advices if one.state == NOT_YET]
    if not waiting:
        return f"All {len(advices)} containers fit as they are."
    seen = render_seconds(max(one.need.seen_seconds for one in waiting))
    ready = render_moment(min(one.ready_ms for one in waiting))
    most = max(waiting, key=lambda one: one.weight)
    unused = (
        f" So far {name_need(most.need)} leaves the most unused: {render_use(most.need)}."
        if most.weight
        else ""
    )
    return f"Not yet: none of {len(advices)} containers was seen for a day, at most {seen}; from {ready} on it can be said.{unused}"


def add_up(advices: Sequence[SizeAdvice], name: str) -> tuple[float | None, str]:
    known = [value for one in advices if (value := getattr(one, name)) is not None]
    return (sum(known) if known else None, "cores" if name == "saved_cores" else "bytes")
