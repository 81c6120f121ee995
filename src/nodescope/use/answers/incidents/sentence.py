"""An incident in one sentence: the same for the viewer, the command line and MCP."""

from nodescope.base.quantity import render_bytes, render_count, render_quantity, render_seconds
from nodescope.base.time_range import render_moment
from nodescope.use.answers.incidents.incident import Change, Incident, IncidentList
from nodescope.use.answers.incidents.signal import BY_NAME

LACKS = {
    "cpu": "waited for CPU",
    "memory": "lacked memory",
    "disk": "waited for the disk",
    "network": "got less of the network",
    "memory bandwidth": "ran slower",
    "GPU": "got less of the GPU",
}
MOST_NAMED = 3
IMAGE_CHARACTERS = 48
# Less is the noise of a container that was killed for another reason.
GREW = 1.2
# A limit below this share of the one before was lowered.
LOWERED = 0.95


def render_incident(one: Incident) -> str:
    said = RENDERERS[one.kind](one)
    return f"{said} {one.notes[0]}" if one.notes else said


def render_list(found: IncidentList) -> str:
    """The answer in one sentence."""
    span = f"{render_moment(found.from_ms)} to {render_moment(found.to_ms)}"
    if found.incidents:
        more = len(found.incidents) - 1
        rest = f" {render_count(more, 'more incident')} beside it." if more else ""
        return f"{render_incident(found.incidents[0])}{rest}"
    looked = f"{render_count(found.workloads, 'workload')} of {found.node}, {span}"
    if found.asked:
        return f'No: nobody was seen to take anything from "{found.asked}", and it did nothing unusual ({looked}).'
    return f"No: nothing unusual was seen that hurt anybody ({looked})."


def quote(name: str) -> str:
    return f'"{name}"'


def amount(change: Change, value: float | None) -> str:
    return "nothing" if value is None else render_quantity(value, change.unit)


def what(change: Change) -> str:
    return BY_NAME[change.metric].words if change.metric in BY_NAME else change.metric


def render_from(one: Incident) -> str:
    """`from 04:10 on`, or `from 04:10 until 05:31`."""
    end = f"until {render_moment(one.to_ms)}" if one.is_over else "on"
    return f"from {render_moment(one.from_ms)} {end}"


def render_taken(one: Incident) -> str:
    cause = one.causes[0]
    verb = "started and took" if one.is_new else "took"
    before = "" if one.is_new else f" (before: {amount(cause, cause.before)})"
    took = f"{quote(cause.workload)} {verb} {amount(cause, cause.after)} of {what(cause)}{before}"
    return f"{took} {render_from(one)}{render_victims(one)}."


def render_victims(one: Incident) -> str:
    if not one.victims:
        return "; who lacked it could not be seen"
    return f"; {join_names(one)} then {LACKS.get(one.resource, 'waited')} ({render_worst(one)})"


def render_worst(one: Incident) -> str:
    """The figures of the one that lost most, by name where there are several."""
    first = one.victims[0]
    name = f"{quote(first.workload)}: " if one.victims_count > 1 else ""
    return f"{name}{render_before_after(first)}"


def render_before_after(change: Change) -> str:
    if change.metric == "oom_kill":
        return "OOM-killed"
    return f"{what(change)} {amount(change, change.before)} before, {amount(change, change.after)} then"


def join_names(one: Incident) -> str:
    names = [quote(victim.workload) for victim in one.victims[:MOST_NAMED]]
    more = one.victims_count - len(names)
    if more > 0:
        return f"{', '.join(names)} and {more} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def render_oom_kill(one: Incident) -> str:
    cause = one.causes[0]
    limit = f" (its memory limit is {render_bytes(one.limit)})" if one.limit else ""
    grew = ""
    if cause.before is not None and cause.after is not None and cause.after > GREW * cause.before:
        levels = f"from {amount(cause, cause.before)} to {amount(cause, cause.after)}"
        seconds = (one.killed_ms - one.from_ms) / 1000
        grew = f" after its {what(cause)} grew {levels} in {render_seconds(seconds)}"
    times = f" {one.kills} times, last" if one.kills > 1 else ""
    return f"{quote(cause.workload)} was OOM-killed{times} at {render_moment(one.killed_ms)}{grew}{limit}."


def render_throttled(one: Incident) -> str:
    cause = one.causes[0]
    limit = f" of {render_quantity(one.limit, 'cores')}" if one.limit else ""
    if one.limit and one.limit_before and one.limit < LOWERED * one.limit_before:
        limit += f", which was lowered from {render_quantity(one.limit_before, 'cores')},"
    wanted = ""
    if len(one.causes) > 1:
        cpu = one.causes[1]
        wanted = f"; its CPU use went from {amount(cpu, cpu.before)} to {amount(cpu, cpu.after)}"
    shares = f"{amount(cause, cause.after)} of periods, {amount(cause, cause.before)} before"
    return (
        f"{quote(cause.workload)} was throttled by its own CPU limit{limit} {render_from(one)} "
        f"({shares}){wanted}."
    )


def render_deploy(one: Incident) -> str:
    changes = ", ".join(
        f"{amount(change, change.after)} of {what(change)} (before: {amount(change, change.before)})"
        for change in one.causes
    )
    each = "" if one.victims else " per replica"
    image = (
        f" with image {quote(short_image(one.image_after))} (before: {quote(short_image(one.image_before))})"
    )
    name = quote(one.causes[0].workload)
    return f"{name} uses {changes}{each} since {render_moment(one.from_ms)},{image}{render_victims(one)}."


def short_image(image: str) -> str:
    """Without its registry: shop/api:2.0.0 is api:2.0.0; a digest to twelve characters."""
    name = image.rpartition("/")[2]
    stem, at, digest = name.partition("@sha256:")
    return f"{stem}{at}{digest[:12]}"[-IMAGE_CHARACTERS:]


def render_crash_loop(one: Incident) -> str:
    cause = one.causes[0]
    before = "; before it was not" if one.is_new else ""
    times = render_count(round(cause.after or 0), "time")
    return f"{quote(cause.workload)} was restarted {times} {render_from(one)}{before}."


def render_change(one: Incident) -> str:
    cause = one.causes[0]
    levels = f"from {amount(cause, cause.before)} to {amount(cause, cause.after)}"
    stayed = "; it fell back at " + render_moment(one.to_ms) if one.is_over else " and stayed there"
    return f"{capital(what(cause))} of {quote(cause.workload)} rose {levels} at {render_moment(one.from_ms)}{stayed}; nobody was seen to suffer."


def render_unexplained(one: Incident) -> str:
    lacks = LACKS.get(one.resource, "waited")
    return (
        f"{join_names(one)} {lacks} from {render_moment(one.from_ms)} on ({render_worst(one)}); "
        f"nobody was seen who took it."
    )


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


RENDERERS = {
    "taken": render_taken,
    "oom_kill": render_oom_kill,
    "throttled": render_throttled,
    "deploy": render_deploy,
    "crash_loop": render_crash_loop,
    "change": render_change,
    "unexplained": render_unexplained,
}
