"""
The seed's three questions as a dialogue of calls, its answers held against what was planted.

    which container uses the most memory on this node?
    does its CPU spike periodically?
    when did its memory change?

The second and the third are put about every container of the node, so that
most of the true answers are No.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from tests.use.mcp.asking import Asker, asking, write_demo

# A wave of 1 % moves the median of a step's sides by no more.
LEVEL_SHARE = 0.03
# Answers have nine significant figures; a mean over pieces is summed in another order.
MEAN_SHARE = 1e-6

Story = dict[str, Any]


def hold_dialogue(folder: Path, seed: int) -> Counter[str]:
    """Asks about every container of every node; how many questions had which true answer, all given rightly."""
    truth = write_demo(folder, seed)
    right: Counter[str] = Counter()
    with asking(folder) as asker:
        for most in truth["most"]:
            node = most["node"]
            planted = [one for one in truth["planted"] if one["node"] == node]
            who = ask_the_most(asker, most)
            right["most memory"] += 1
            everybody = list_everybody(asker, node)
            assert who in everybody
            for name in sorted(everybody):
                story = {one["kind"]: one for one in planted if f"{one['pod']}/{one['container']}" == name}
                right[ask_about_spikes(asker, node, name, story)] += 1
                right[ask_about_memory(asker, node, name, story)] += 1
    return right


def list_everybody(asker: Asker, node: str) -> set[str]:
    answer = asker.ask("list_containers", node=node, limit=60)
    told = {one["container"] for one in answer["findings"]}
    return told | {name.split("/", 1)[1] for name in answer.get("names", [])}


def ask_the_most(asker: Asker, most: dict[str, Any]) -> str:
    answer = asker.ask("top_containers", by="memory", node=most["node"])
    first = answer["findings"][0]
    assert first["container"] == f"{most['pod']}/{most['container']}", answer["headline"]
    assert abs(first["evidence"]["mean"] - most["mean"]) <= MEAN_SHARE * most["mean"]
    assert first["container"] in answer["headline"]
    found: str = first["container"]
    return found


def ask_about_spikes(asker: Asker, node: str, name: str, story: Story) -> str:
    answer = asker.ask("analyze_container", container=name, node=node, study="periodicity", metric="cpu")
    spikes = story.get("cron_spikes")
    if spikes is None:
        assert answer["status"] == "none", (name, answer["headline"])
        assert answer["headline"].startswith("No: cpu")
        assert not answer["findings"]
        return "spikes: no"
    assert answer["headline"].startswith("Yes: cpu")
    check_period(answer, spikes)
    # A rate stands at the end of its second; the truth's end is exclusive.
    first = answer["findings"][0]
    assert (int(first["from"]), int(first["to"])) == (spikes["from"] + 1, spikes["to"] - 1)
    return "spikes: yes"


def check_period(answer: dict[str, Any], spikes: dict[str, Any]) -> None:
    """To the second, which is the resolution of the data, and so it is written."""
    assert answer["status"] == "found", answer["headline"]
    assert round(answer["findings"][0]["evidence"]["period_seconds"]) == spikes["period_seconds"], answer
    assert f"repeats every 5 min ({spikes['period_seconds']} s)" in answer["headline"]


def ask_about_memory(asker: Asker, node: str, name: str, story: Story) -> str:
    answer = asker.ask("analyze_container", container=name, node=node, study="changepoint", metric="memory")
    if not set(story) & set(MEMORY_STORIES):
        assert answer["status"] == "none", (name, answer["headline"], answer["findings"])
        assert answer["headline"].startswith("No: memory")
        assert not answer["findings"]
        return "memory changed: no"
    (kind,) = set(story) & set(MEMORY_STORIES)
    assert answer["status"] == ("none" if kind == "cron_spikes" else "found"), (name, answer["headline"])
    MEMORY_STORIES[kind](asker, node, name, story, answer)
    return f"memory changed: {kind}"


def check_deploy(asker: Asker, node: str, name: str, story: Story, answer: dict[str, Any]) -> None:
    del asker, node, name
    step, (change,) = story["deploy_step"], answer["findings"]
    assert int(change["at"]) == step["at"]
    for side in ("before", "after"):
        assert abs(change["evidence"][side] - step[side]) <= LEVEL_SHARE * step[side]
    assert "changed once" in answer["headline"]


def check_kill(asker: Asker, node: str, name: str, story: Story, answer: dict[str, Any]) -> None:
    """The kill is what changed it; before it a leak, at its planted pace."""
    (end,) = answer["findings"]
    assert (end["kind"], int(end["at"])) == ("oom_kill", story["oom_kill"]["at"])
    leak = story["leak"]
    answer = asker.ask("analyze_container", container=name, node=node, study="trend", metric="memory")
    growth = answer["findings"][0]["evidence"]
    assert abs(growth["slope_per_second"] - leak["slope_per_second"]) <= 0.02 * leak["slope_per_second"]
    assert growth["limit"] == leak["limit"]


def check_spikes(asker: Asker, node: str, name: str, story: Story, answer: dict[str, Any]) -> None:
    """It follows the CPU's: what it does again and again is no change, and has the planted period."""
    assert "ask for periodicity" in answer["headline"]
    answer = asker.ask("analyze_container", container=name, node=node, study="periodicity", metric="memory")
    check_period(answer, story["cron_spikes"])


def check_crashes(asker: Asker, node: str, name: str, story: Story, answer: dict[str, Any]) -> None:
    """It changed with every restart, which both tools count."""
    told = [answer, asker.ask("summarize_container", container=name, node=node)]
    for one in told:
        (crashes,) = [finding for finding in one["findings"] if finding["kind"] == "crash_loop"]
        assert crashes["evidence"]["restarts"] == story["crash_loop"]["restarts"]


MEMORY_STORIES = {
    "deploy_step": check_deploy,
    "oom_kill": check_kill,
    "cron_spikes": check_spikes,
    "crash_loop": check_crashes,
}
