"""
How much pods slow each other down, by who places them: see bench/interference_replay.py.

The goal is 60 % of the way from stock to the oracle, in the mean over all pods, with PCM on all
nodes and on half of them. Seeds are printed; `--rounds N` takes the first N of them.
"""

import statistics
import sys

from bench.interference import KINDS, make_trace
from bench.interference_replay import ORACLE, POLICIES, PROFILES, STOCK, TLP, TODAY, Slowdown, replay
from bench.result import Goal, Options, Row

# The generator and the model were looked at with seeds 1 to 3; these are not among them.
SEEDS = (101, 102, 103, 104, 105, 106)
# What may be left of the way to the oracle.
LEFT = 0.4
HALF = "profiles, PCM on half of the nodes"


def run(options: Options) -> list[Row]:
    seeds = SEEDS[: min(options.rounds, len(SEEDS))]
    rows = []
    for kind in KINDS:
        found = {policy: [replay_seed(policy, kind, seed) for seed in seeds] for policy in (*POLICIES, HALF)}
        rows += describe(kind, found)
        print(f"{kind}, seeds {', '.join(map(str, seeds))}: done", file=sys.stderr, flush=True)
    return rows


def replay_seed(policy: str, kind: str, seed: int) -> Slowdown:
    trace = make_trace(kind, seed)
    return replay(PROFILES, trace, 0.5) if policy == HALF else replay(policy, trace)


def describe(kind: str, found: dict[str, list[Slowdown]]) -> list[Row]:
    means = {policy: statistics.fmean(one.mean for one in runs) for policy, runs in found.items()}
    highs = {policy: statistics.fmean(one.p95 for one in runs) for policy, runs in found.items()}
    others = ", ".join(f"{name} {means[name]:.3f} / {highs[name]:.2f}" for name in (TLP, TODAY))
    most = means[STOCK] - means[ORACLE]
    return [
        Row(
            f"{kind}, {policy}: what is left of the way from stock to the oracle",
            (means[policy] - means[ORACLE]) / most,
            "",
            goal=Goal(LEFT, "ours"),
            remark=f"mean / p95: {means[policy]:.3f} / {highs[policy]:.2f}; stock {means[STOCK]:.3f} / "
            f"{highs[STOCK]:.2f}, {others}, oracle {means[ORACLE]:.3f} / {highs[ORACLE]:.2f}",
        )
        for policy in (PROFILES, HALF)
    ]
