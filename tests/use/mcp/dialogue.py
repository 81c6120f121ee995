"""
The seed's three questions as a dialogue of calls, its answers held against what was planted.

    which container uses the most memory on this node?
    does its CPU spike periodically?
    when did its memory change?
"""

from pathlib import Path
from typing import Any

from tests.use.mcp.asking import Asker, asking, write_demo

# A wave of 1 % moves the median of a step's sides by no more.
LEVEL_SHARE = 0.03


def hold_dialogue(folder: Path, seed: int) -> int:
    """Asks about every container of every node; returns how many questions were answered rightly."""
    truth = write_demo(folder, seed)
    answered = 0
    with asking(folder) as asker:
        for most in truth["most"]:
            planted = [one for one in truth["planted"] if one["node"] == most["node"]]
            who = ask_the_most(asker, most)
            answered += 1
            names = asker.ask("list_containers", node=most["node"], limit=60)
            everybody = {one["container"] for one in names["findings"]} | {
                name.split("/", 1)[1] for name in names.get("names", [])
            }
            assert who in everybody
            for name in sorted(everybody):
                story = {one["kind"]: one for one in planted if f"{one['pod']}/{one['container']}" == name}
                answered += ask_about(asker, most["node"], name, story)
    return answered


def ask_the_most(asker: Asker, most: dict[str, Any]) -> str:
    answer = asker.ask("top_containers", by="memory", node=most["node"])
    first = answer["findings"][0]
    assert first["container"] == f"{most['pod']}/{most['container']}", answer["headline"]
    assert abs(first["evidence"]["mean"] - most["mean"]) <= 1e-3 * most["mean"]
    assert first["container"] in answer["headline"]
    found: str = first["container"]
    return found


def ask_about(asker: Asker, node: str, name: str, story: dict[str, Any]) -> int:
    if "crash_loop" in story:
        return ask_about_crashes(asker, node, name, story["crash_loop"])
    ask_about_spikes(asker, node, name, story.get("cron_spikes"))
    if "cron_spikes" in story:
        # Its memory follows its spikes: changes, and no step that was planted.
        return 1
    ask_about_memory(asker, node, name, story)
    return 2


def ask_about_spikes(asker: Asker, node: str, name: str, spikes: dict[str, Any] | None) -> None:
    answer = asker.ask("analyze_container", container=name, node=node, study="periodicity", metric="cpu")
    if spikes is None:
        assert answer["status"] == "none", (name, answer["headline"])
        assert answer["headline"].startswith("No: cpu")
        return
    assert answer["status"] == "found", answer["headline"]
    assert answer["headline"].startswith("Yes: cpu")
    first = answer["findings"][0]
    # A sample is a second: no estimate is finer.
    assert abs(first["evidence"]["period_seconds"] - spikes["period_seconds"]) <= 1
    assert "repeats about every 5 min" in answer["headline"]
    assert abs(first["from"] - spikes["from"]) <= 2
    assert abs(first["to"] - spikes["to"]) <= 2


def ask_about_memory(asker: Asker, node: str, name: str, story: dict[str, Any]) -> None:
    answer = asker.ask("analyze_container", container=name, node=node, study="changepoint", metric="memory")
    step, kill = story.get("deploy_step"), story.get("oom_kill")
    if step:
        (change,) = answer["findings"]
        assert answer["status"] == "found"
        assert int(change["at"]) == step["at"]
        for side in ("before", "after"):
            assert abs(change["evidence"][side] - step[side]) <= LEVEL_SHARE * step[side]
        assert "changed once" in answer["headline"]
    elif kill:
        (end,) = answer["findings"]
        assert (end["kind"], int(end["at"])) == ("oom_kill", kill["at"])
        ask_about_leak(asker, node, name, story["leak"])
    else:
        assert answer["status"] == "none", (name, answer["headline"], answer["findings"])
        assert answer["headline"].startswith("No: memory")
        assert not answer["findings"]


def ask_about_leak(asker: Asker, node: str, name: str, leak: dict[str, Any]) -> None:
    answer = asker.ask("analyze_container", container=name, node=node, study="trend", metric="memory")
    growth = answer["findings"][0]["evidence"]
    assert abs(growth["slope_per_second"] - leak["slope_per_second"]) <= 0.02 * leak["slope_per_second"]
    assert growth["limit"] == leak["limit"]


def ask_about_crashes(asker: Asker, node: str, name: str, loop: dict[str, Any]) -> int:
    answer = asker.ask("summarize_container", container=name, node=node)
    (crashes,) = [one for one in answer["findings"] if one["kind"] == "crash_loop"]
    assert crashes["evidence"]["restarts"] == loop["restarts"]
    return 1
